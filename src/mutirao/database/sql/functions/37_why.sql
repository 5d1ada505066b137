-- Why an instance moves or does not: for each task whether its condition holds, what its job waits for, and what fired it last.
--
--   moment     how the instance stands, or stood at a row of its trace       35_why_moment.sql
--   condition  each condition on that state, part by part                    34_why_condition.sql
--   job        what a pending job waits for                                  36_why_job.sql
--
-- Nothing here writes: it may be asked of a standby.

-- What keeps a task without a job from firing; its condition first, since that is what people ask for.
create or replace function mutirao.why_idle(r mutirao.rule, w mutirao.work, condition jsonb, final jsonb) returns text
language sql stable
return case
  when not r.enabled then 'disabled'
  when r.task = any (w.pending) then 'pending'
  when r.task = any (w.failed) then 'failed'
  when r.task = any (w.fired) then 'fired_once'
  when condition -> 'holds' <> 'true' then case when w.failed <> '{}' and w.kind = 'now' and r.task = any (mutirao.blocked_tasks(w)) then 'blocked' else 'condition' end
  when w.hold is not null then w.hold
  when final -> 'holds' = 'true' then 'final'
  when w.reasons @> '[{"code": "runaway"}]' then 'runaway'
  else 'next_look' end;

create or replace function mutirao.idle_words(stands text, condition jsonb, verb text) returns text
language sql immutable
return case stands
  when 'disabled' then 'is disabled'
  when 'pending' then 'had a job already'
  when 'failed' then 'had failed for good, and keeps its place'
  when 'fired_once' then 'fires once, and has'
  when 'condition' then verb || ': ' || mutirao.tree_words(condition)
  when 'delayed' then 'would fire, but the instance starts later'
  when 'suspended' then 'would fire, but the instance is suspended'
  when 'cancelled' then 'would fire, but the instance is being cancelled'
  when 'undoing' then 'would fire, but the instance is being rolled back'
  when 'blocked' then 'is blocked by what has failed: ' || mutirao.tree_words(condition)
  when 'alarm' then verb || ': ' || mutirao.tree_words(condition)
  when 'final' then 'would fire, but the final condition holds, and then nothing fires'
  when 'runaway' then 'would fire, but the instance has fired more often than its flow allows'
  when 'next_look' then 'holds, and fires when the instance is written or looked at next' end;

-- The last firing up to a row; with its reason only where somebody asked for this task.
create or replace function mutirao.last_firing(instance bigint, task int, at bigint, told boolean) returns jsonb
language plpgsql stable as $$
declare
  r mutirao.trace;
  rule mutirao.rule;
  tree jsonb;
  facts jsonb;
  names text[];
begin
  select * into r from mutirao.trace x where x.instance = last_firing.instance and last_firing.task = any (x.fired) and (last_firing.at is null or x.id <= last_firing.at) order by x.id desc limit 1;
  if not found then return null; end if;
  facts := jsonb_build_object('row', r.id, 'at', r.at, 'kind', r.kind, 'task', (select t.name from mutirao.task t where t.id = r.task), 'writer', r.writer, 'event', mutirao.row_words(r),
    'times', (select count(*) from mutirao.trace x where x.instance = last_firing.instance and last_firing.task = any (x.fired) and (last_firing.at is null or x.id <= last_firing.at)));
  if told then
    select * into rule from mutirao.rule x where x.version = r.version and x.task = last_firing.task;
    tree := mutirao.why_fired(rule, r, mutirao.moment_at(instance, r.id));
    facts := facts || jsonb_build_object('condition', tree, 'changes', (
      select coalesce(jsonb_object_agg(c.key, c.value), '{}') from jsonb_each(mutirao.row_changes(r)) c where tree -> 'values' ? c.key));
  end if;
  return facts;
end $$;

create or replace function mutirao.firing_words(fired jsonb) returns text
language sql stable
return format('fired at row %s of the trace, after %s%s', fired ->> 'row', fired ->> 'event', coalesce(': ' || (
  select string_agg(format('%s %s → %s', c.key, mutirao.short_json(coalesce(c.value -> 'before', 'null')), mutirao.short_json(coalesce(c.value -> 'after', 'null'))), ', ' order by c.key)
  from jsonb_each(fired -> 'changes') c), ''));

create or replace function mutirao.alarm_words(w mutirao.work, task int) returns text
language sql stable
return (
  select case when a.due_at = 'infinity' then 'starts when the instance is written next'
    when a.due_at > mutirao.now() then format('starts in %s', mutirao.span_words(a.due_at - mutirao.now()))
    else format('has been due for %s, for which a clock must be running,', mutirao.span_words(mutirao.now() - a.due_at)) end || ' whatever they do'
  from mutirao.alarm a where w.kind = 'now' and w.hold is null and a.instance = w.instance and a.task = alarm_words.task);
comment on function mutirao.alarm_words(mutirao.work, int) is 'When a task starts that does not wait for ever; null: it has no alarm.';

-- A compensation is fired by no row of the trace: it is told by the rows in which it undid something.
create or replace function mutirao.why_undone(r mutirao.rule, w mutirao.work, fired_row bigint, out stands text, out says text)
language plpgsql stable as $$
declare
  is_compensation boolean := r.stands_by is not distinct from 'compensation';
  until bigint := coalesce((w.note ->> 'row')::bigint, 9223372036854775807);
begin
  stands := 'undoing';
  select case when is_compensation then format('is to undo %s, once what follows is undone', mutirao.task_names(array_agg(distinct u.task)))
    else 'is to be undone by ' || mutirao.task_names(array_agg(distinct u.compensation)) end into says
  from mutirao.still_to_undo(w) u where r.task in (u.compensation, u.task) having count(*) > 0;
  if says is null then
    stands := 'undone';
    select case when not is_compensation then 'has been undone' || case when u.task = d.task then '' else ' by ' || mutirao.task_names(array[u.task]) end
        when u.kind = 'skip' then format('was skipped, to undo %s,', n.name) else 'undid ' || n.name end || format(' at row %s of the trace', u.id) into says
    from mutirao.trace u join mutirao.trace d on d.instance = u.instance and d.id = (u.note ->> 'undoes')::bigint join mutirao.task n on n.id = d.task
    where u.instance = w.instance and u.id <= until and u.kind in ('compensate', 'skip') and r.task = case when is_compensation then u.task else d.task end
      and u.id > coalesce(fired_row, 0)
    order by u.id desc limit 1;
  end if;
end $$;
comment on function mutirao.why_undone(mutirao.rule, mutirao.work, bigint) is
  'Whether a rollback is to undo, or has undone, what a task did since it last fired; of a compensation, what it is to undo or has undone.';

create or replace function mutirao.why_task(r mutirao.rule, w mutirao.work, at bigint, final jsonb, told boolean) returns mutirao.explanation
language plpgsql stable as $$
declare
  found_row mutirao.trace;
  j mutirao.job;
  e mutirao.explanation;
  is_past boolean := at is not null;
  undone record;
  alarm text;
begin
  e.task := (select t.name from mutirao.task t where t.id = r.task);
  e.fired := mutirao.last_firing(w.instance, r.task, at, told);
  if is_past then
    select * into found_row from mutirao.trace x where x.instance = w.instance and x.id = why_task.at;
    e.condition := mutirao.why_fired(r, found_row, w);
  else
    e.condition := mutirao.why_rule(r, w);
    select * into j from mutirao.job x where x.instance = w.instance and x.task = r.task;
  end if;
  e.holds := (e.condition ->> 'holds')::boolean;
  undone := mutirao.why_undone(r, w, (e.fired ->> 'row')::bigint);
  if j.id is not null then
    e.job := mutirao.why_job(j, r, w);
    e.stands := j.status;
    e.answer := format('%s %s', e.task, e.job ->> 'says');
  elsif is_past and (e.fired ->> 'row')::bigint = at then
    e.stands := 'fired';
    e.answer := format('%s %s', e.task, mutirao.firing_words(e.fired));
  elsif undone.says is not null and (undone.stands = 'undoing' or w.hold = 'undoing' or w.kind = 'closed' or r.stands_by = 'compensation') then
    e.stands := case when w.kind = 'closed' then 'closed' else undone.stands end;
    e.answer := format('%s %s', e.task, undone.says);
  elsif w.kind = 'closed' then
    e.stands := 'closed';
    e.answer := case when e.fired is null then format('%s never fired: ', e.task) || case when e.holds then 'nothing fires once an instance is final' else mutirao.tree_words(e.condition) end
      else format('%s has ended: it %s%s', e.task, case when (e.fired ->> 'times')::int > 1 then format('fired %s times, and last ', e.fired ->> 'times') else '' end, mutirao.firing_words(e.fired)) end;
  else
    e.stands := mutirao.why_idle(r, w, e.condition, final);
    alarm := case when e.stands in ('condition', 'blocked') then mutirao.alarm_words(w, r.task) end;
    e.stands := case when alarm is null then e.stands else 'alarm' end;
    e.answer := format('%s %s', e.task, mutirao.idle_words(e.stands, e.condition,
        case when is_past then 'did not fire' when e.fired is null then 'has not fired' else 'does not fire now' end || coalesce(', and ' || alarm, '')))
      || coalesce('; it last fired at row ' || (e.fired ->> 'row') || coalesce(', and ' || undone.says, ''), '');
  end if;
  return e;
end $$;

-- A job that outlived its task: the version that the instance goes by has it no more, and what runs may finish.
create or replace function mutirao.why_left_over(w mutirao.work, names text[]) returns setof mutirao.explanation
language sql stable as $$
  select t.name, format('%s, which the flow has no more, %s', t.name, f.facts ->> 'says'), j.status::text, null::boolean, null::jsonb, f.facts, mutirao.last_firing(w.instance, t.id, null, false)
  from mutirao.job j join mutirao.task t on t.id = j.task cross join lateral (select mutirao.why_job(j, null, w)) f(facts)
  where w.kind = 'now' and j.instance = w.instance and t.name <> all (names || '_EXCPT'::text)
$$;

-- In the past, of a task that the version which the row went by lacks, while another version has it.
create or replace function mutirao.why_absent(w mutirao.work, task text, at bigint) returns mutirao.explanation
language plpgsql stable as $$
declare
  e mutirao.explanation;
begin
  e.task := task;
  e.stands := 'absent';
  e.fired := mutirao.last_firing(w.instance, (select t.id from mutirao.task t where t.flow = w.flow and t.name = why_absent.task), at, true);
  e.answer := format('%s is no task of %s%s%s', task, mutirao.version_words(w.version),
    (select format('; row %s removed its job %s', r.id, j ->> 'job') from mutirao.trace r, jsonb_array_elements(r.note -> 'removed') j
     where r.instance = w.instance and r.id = why_absent.at and j ->> 'task' = why_absent.task limit 1),
    coalesce('; it ' || mutirao.firing_words(e.fired), '; it had never fired'));
  return e;
end $$;

create or replace function mutirao.why_final(r mutirao.rule, w mutirao.work, v mutirao.version, tree jsonb) returns mutirao.explanation
language plpgsql stable as $$
declare
  e mutirao.explanation;
  unhandled int[] := array(select unnest(w.failed) except select unnest(v.handled));
  rest text := concat_ws(', ', mutirao.task_names(w.pending), mutirao.task_names(unhandled) || ' (failed)');
begin
  e.task := '_FINAL';
  e.condition := tree;
  e.holds := (tree ->> 'holds')::boolean;
  e.stands := case when w.kind = 'closed' then 'closed' when e.holds and rest <> '' then 'final_blocked' when e.holds then 'final' when v.ends = 'quiet' then 'quiet' else 'condition' end;
  e.answer := case
    when e.stands = 'final_blocked' then format('the final condition holds, but there is still %s', rest)
    when e.holds then 'the final condition holds'
    when r.task is null and v.ends = 'final' then 'the flow has no final condition'
    else concat_ws('; ', case when tree is not null then 'the final condition does not hold: ' || mutirao.tree_words(tree) end,
      case when v.ends = 'quiet' then 'it ends when nothing is left to do' || case when rest <> '' then ': there is still ' || rest else '' end end) end;
  return e;
end $$;

create or replace function mutirao.reason_words(reason jsonb) returns text
language sql immutable
return case reason ->> 'code'
  when 'nothing_fires' then 'nothing is pending, and no condition holds'
  when 'final_blocked' then 'each pending job would end it, and waits for the others'
  when 'runaway' then format('it fired %s times without an end', reason ->> 'firings')
  when 'condition_failed' then format('the condition of %s raises "%s"', coalesce(reason ->> 'task', '?'), mutirao.error_words(reason))
  when 'task_failed' then format('%s has failed for good: %s', reason ->> 'task', mutirao.error_words(reason))
  when 'compensation_failed' then format('%s, which undoes, has failed for good: %s', reason ->> 'task', mutirao.error_words(reason))
  else coalesce(nullif(mutirao.error_words(reason), ''), reason ->> 'code') end;

create or replace function mutirao.why_instance(w mutirao.work, at bigint, tasks mutirao.explanation[]) returns mutirao.explanation
language plpgsql stable as $$
declare
  e mutirao.explanation;
  r mutirao.trace;
  pending text;
begin
  e.stands := w.note ->> 'status';
  if at is not null then
    select * into r from mutirao.trace x where x.instance = w.instance and x.id = why_instance.at;
    e.answer := format('row %s of instance %s: %s%s; it %s', at, w.instance, mutirao.row_words(r), case when r.state is null then ', which wrote nothing' else '' end,
      coalesce('fired ' || mutirao.task_names(r.fired), 'fired nothing'));
    e.fired := jsonb_build_object('row', r.id, 'at', r.at, 'kind', r.kind, 'writer', r.writer, 'event', mutirao.row_words(r), 'changes', mutirao.row_changes(r));
    return e;
  end if;
  select * into r from mutirao.trace x where x.instance = w.instance and x.kind = case w.hold when 'suspended' then 'suspend' else 'cancel' end order by x.id desc limit 1;
  select string_agg(t.answer, '; ' order by t.n) filter (where t.n <= 2) || case when count(*) > 2 then format('; and %s more', count(*) - 2) else '' end into pending
  from (select x.answer, row_number() over () as n from unnest(tasks) x where x.job is not null or x.stands = 'alarm') t;
  e.answer := format('instance %s %s', w.instance, case
    when w.kind = 'closed' then format('is %s, since %s', e.stands, mutirao.span_words(mutirao.now() - (w.note ->> 'closed_at')::timestamptz))
      || case when e.stands = 'closed.aborted' then coalesce(': cancelled by ' || r.writer, '') else '' end
    when w.hold = 'suspended' then format('is suspended by %s%s: nothing starts until it is resumed', r.writer, coalesce(' (' || (r.note ->> 'reason') || ')', ''))
    when w.hold = 'delayed' then (select case when d.due_at > mutirao.now() then format('starts in %s', mutirao.span_words(d.due_at - mutirao.now()))
      else format('has been due to start for %s: a clock must be running', mutirao.span_words(mutirao.now() - d.due_at)) end from mutirao.delayed d where d.instance = w.instance)
    when w.hold = 'undoing' and w.reasons is null then format('is being rolled back%s: %s', coalesce((
      select format(' by %s%s', x.writer, coalesce(' (' || (x.note ->> 'reason') || ')', ''))
      from mutirao.trace x where x.instance = w.instance and x.kind = 'roll_back' order by x.id desc limit 1), ''), coalesce(pending, 'nothing is pending'))
    when w.hold = 'cancelled' then format('is being cancelled by %s: it closes when %s has ended', r.writer, mutirao.task_names(w.pending))
    when w.reasons is not null then format('is an exception: %s', (select string_agg(mutirao.reason_words(x), '; ') from jsonb_array_elements(w.reasons) x))
    else format('is %s: %s', e.stands, coalesce(pending, 'nothing is pending')) end);
  return e;
end $$;

create or replace function mutirao.why_rank(stands text) returns int
language sql immutable
return coalesce(array_position(array['failed', 'parked', 'waiting', 'ready', 'running', 'held', 'fired', 'next_look', 'alarm', 'delayed', 'suspended', 'cancelled', 'undoing', 'runaway', 'blocked', 'final', 'pending', 'condition', 'closed', 'undone', 'fired_once', 'disabled'], stands), 7);

create or replace function mutirao.why(instance bigint, task text default null, at bigint default null) returns setof mutirao.explanation
language plpgsql stable security definer as $$
declare
  w mutirao.work := mutirao.moment_now(instance);
  v mutirao.version;
  r mutirao.rule;
  final_rule mutirao.rule;
  final jsonb;
  names text[];
  found mutirao.explanation[] := '{}';
begin
  if at is not null then
    w := mutirao.moment_at(instance, at);
  end if;
  select * into v from mutirao.version x where x.id = w.version;
  names := array(select t.name from mutirao.rule x join mutirao.task t on t.id = x.task where x.version = v.id and t.name <> '_FINAL' order by x.position);
  if task = 'final' and 'final' <> all (names) then
    task := '_FINAL';
  elsif at is not null and task <> all (names || '_FINAL'::text) and exists (select from mutirao.task t where t.flow = w.flow and t.name = why.task) then
    return next mutirao.why_absent(w, task, at);
    return;
  elsif task <> all (names || '_FINAL'::text) then
    perform mutirao.refuse('unknown_task', format('%s has no task "%s"; %s', mutirao.version_words(v.id), task,
      coalesce('did you mean "' || mutirao.nearest_name(task, names) || '"?', 'it has ' || array_to_string(names, ', '))));
  end if;
  select x.* into final_rule from mutirao.rule x join mutirao.task t on t.id = x.task where x.version = v.id and t.name = '_FINAL' and x.enabled;
  final := case when final_rule.task is not null then mutirao.why_rule(final_rule, w) end;
  for r in select x.* from mutirao.rule x join mutirao.task t on t.id = x.task
    where x.version = v.id and t.name <> '_FINAL' and (why.task is null or t.name = why.task) order by x.position
  loop
    found := found || mutirao.why_task(r, w, at, final, told => task is not null);
  end loop;
  if task is null then
    found := found || array(select l from mutirao.why_left_over(w, names) l);
  end if;
  found := array(select found[n] from generate_subscripts(found, 1) n order by mutirao.why_rank(found[n].stands), n);
  if task is null then
    return next mutirao.why_instance(w, at, found);
  end if;
  return query select * from unnest(found);
  if task is null or task = '_FINAL' then
    return next mutirao.why_final(final_rule, w, v, final);
  end if;
end $$;
comment on function mutirao.why(bigint, text, bigint) is
  'Why an instance, or one task of it, moves or does not: now, or at a row of its trace. One row about the instance, one about each task, one about its end.';
