-- Why, at which moment: how an instance stands now, or stood when a row of its trace was written.

create or replace function mutirao.moment_now(instance bigint) returns mutirao.work
language plpgsql stable as $$
declare
  i mutirao.instance;
  c mutirao.closed;
  v mutirao.version;
  w mutirao.work;
begin
  select * into i from mutirao.instance x where x.id = moment_now.instance;
  if found then
    w := mutirao.work_of(i, 'now', null, jsonb_build_object('status', i.status));
    select x.* into v from mutirao.flow f join mutirao.version x on x.id = f.version where f.id = i.flow and f.live;
    if v.id <> i.version then  -- as it will be when it follows
      w.version := v.id;
      select mutirao.state_as(i.state, l.gone, v.defaults, l.changed, l.types), mutirao.latest_as(i.id, i.latest, o.named, v.named) into w.state, w.latest
      from mutirao.version o cross join lateral mutirao.lens(o, v) l where o.id = i.version;
    end if;
    return w;
  end if;
  select * into c from mutirao.closed x where x.id = moment_now.instance;
  if not found then
    perform mutirao.refuse('unknown_instance', format('there is no instance %s', moment_now.instance));
  end if;
  return row(1, 'closed', c.id, c.flow, c.version, null, null, null, null, null, c.state, '{}', '{}', c.fired, c.reached, c.latest, null,
    0, null, null, c.firings, c.priority, c.started_at, null, jsonb_build_object('status', c.status, 'closed_at', c.closed_at))::mutirao.work;
end $$;
comment on function mutirao.moment_now(bigint) is 'How an instance stands, open or closed, under the version that it goes by.';

-- As mutirao.migrate_work does it, but with the rows up to this one: jobs go, tasks become others, and terms that the version before
-- had no need to keep are found in the trace.
create or replace function mutirao.moment_migrated(w mutirao.work, r mutirao.trace, v mutirao.version) returns mutirao.work
language plpgsql stable as $$
declare
  b mutirao.batch;
  gone int[] := array(select t.id from jsonb_array_elements(r.note -> 'removed') x join mutirao.task t on t.flow = r.flow and t.name = x ->> 'task');
  renamings jsonb := mutirao.renamings(r.instance);
  fired int[];
  done int[];
begin
  select * into b from mutirao.batch x where x.id = (r.note ->> 'batch')::bigint;
  select mutirao.mapped(b, array_agg(distinct mutirao.task_since(renamings, x.id, f.task, r.id))),
    mutirao.mapped(b, array_agg(distinct mutirao.task_since(renamings, x.id, x.task, r.id)) filter (where x.kind in ('finish', 'skip')))
    into fired, done
  from mutirao.trace x left join lateral unnest(x.fired) f(task) on true where x.instance = r.instance and x.id < r.id;
  w.pending := mutirao.mapped(b, array(select unnest(w.pending) except select unnest(gone)));
  w.failed := mutirao.mapped(b, array(select unnest(w.failed) except select unnest(gone)));
  w.fired := array(select unnest(mutirao.mapped(b, w.fired) || fired) intersect select unnest(v.once));
  w.reached := array(select x.term from (
    select unnest(mutirao.mapped_terms(b, w.reached)) union select mutirao.term(t, s.state) from unnest(done) t, unnest('{succeeded,running}'::text[]) s(state)
    union select mutirao.term(t, s.state) from unnest(w.failed) t, unnest('{failed,running}'::text[]) s(state) union select mutirao.term(t, 'ready') from unnest(fired) t) x(term)
    where x.term = any (v.terms));
  w.latest := mutirao.renamed(w.latest - array(select t.name from mutirao.task t where t.id = any (gone)), b.arguments -> 'tasks');
  return w;
end $$;

-- What a row did before its conditions were looked at. What it fired came after that.
create or replace function mutirao.moment_after(w mutirao.work, r mutirao.trace, v mutirao.version) returns mutirao.work
language plpgsql stable as $$
declare
  undone int[] := '{}';
  gone int[];
  again int;
  reaches text;
begin
  case
    when r.kind in ('finish', 'skip') then
      reaches := 'succeeded';
      w.failed := array_remove(w.failed, r.task);
      w.pending := array_remove(w.pending, r.task);
      undone := case r.kind when 'skip' then array[r.task] else '{}' end;
    when r.kind in ('fail', 'drop') then
      reaches := 'failed';
      w.pending := array_remove(w.pending, r.task);
      w.failed := case r.kind when 'fail' then w.failed || r.task else w.failed end;
    when r.kind = 'reach' then
      reaches := case when r.attempt is null then 'ready' else 'running' end;
    when r.kind = 'retry' and r.task = any (w.failed) then  -- by a person
      reaches := case when r.task = any (v.gated) then 'synchronizing' else 'ready' end;
      w.failed := array_remove(w.failed, r.task);
      w.pending := w.pending || r.task;
      w.reached := mutirao.terms_without_end(v, w.reached, r.task);
      undone := array[r.task];
    when r.kind = 'removed' then
      w.pending := array_remove(w.pending, r.task);
      w.failed := array_remove(w.failed, r.task);
      w.fired := array_remove(w.fired, r.task);
      w.latest := w.latest - (select t.name from mutirao.task t where t.id = r.task);
    when r.kind = 'repair' then
      undone := array(select unnest(w.failed) except select unnest(v.handled));
      w.failed := array(select unnest(w.failed) except select unnest(undone));
      w.fired := array(select unnest(w.fired) except select unnest(undone));
    when r.kind = 'compensate' then
      w.pending := array_remove(w.pending, r.task);
    when r.kind in ('rolled_back', 'go_back') and r.note ? 'since' then
      again := (select t.id from mutirao.task t where r.kind = 'go_back' and t.flow = r.flow and t.name = r.note ->> 'task');
      gone := array(
        select f.task from mutirao.trace t cross join unnest(t.fired) f(task) where t.instance = r.instance and t.id >= (r.note ->> 'since')::bigint and t.id < r.id
        union select again);
      w.pending := array(select unnest(w.pending) except select unnest(gone));
      w.failed := array(select unnest(w.failed) except select unnest(gone));
      w := mutirao.marked_before(w, (r.note ->> 'since')::bigint, again, r.id);
    when r.kind = 'migrate' then
      w := mutirao.moment_migrated(w, r, v);
    else null;
  end case;
  w.hold := case when r.kind = 'cancel' or w.hold = 'cancelled' then 'cancelled'
    when r.kind = 'roll_back' or w.hold = 'undoing' and r.kind <> 'rolled_back' then 'undoing'
    else case r.status when 'open.notrunning.suspended' then 'suspended' when 'open.notrunning' then 'delayed' end end;
  if undone <> '{}' then
    w.reached := mutirao.terms_without(w.reached, undone);
    w.latest := w.latest - array(select t.name from mutirao.task t where t.id = any (undone));
  end if;
  if r.kind in ('finish', 'skip', 'fail') and r.task = any (v.standing) then
    w.reached := mutirao.reached_by(v, w.reached, r.task, r.kind = 'fail');
    w.latest := mutirao.latest_by(v, w.latest, r.task, r.kind = 'fail');
  elsif reaches is not null then
    w.reached := mutirao.reached_with(w.reached, v.terms, array[r.task], reaches);
    w.latest := mutirao.latest_with(w.latest, array[r.task], array[r.task], reaches);
  end if;
  w.state := coalesce(r.state, w.state);
  w.version := r.version;
  w.note := jsonb_build_object('status', r.status, 'row', r.id);
  return w;
end $$;

create or replace function mutirao.moment_with(w mutirao.work, starts int[], v mutirao.version) returns mutirao.work
language plpgsql stable as $$
begin
  w.pending := w.pending || starts;
  w.fired := w.fired || array(select unnest(starts) intersect select unnest(v.once));
  w.reached := mutirao.reached_with(w.reached, v.terms, mutirao.without(starts, v.gated), 'ready');
  w.latest := mutirao.latest_fired(w.latest, starts, starts, v.gated);
  return w;
end $$;
comment on function mutirao.moment_with(mutirao.work, int[], mutirao.version) is 'The same moment once these tasks have fired.';

create or replace function mutirao.moment_at(instance bigint, at bigint) returns mutirao.work
language plpgsql stable as $$
declare
  r mutirao.trace;
  v mutirao.version;
  starts int[] := '{}';
  w mutirao.work := row(1, 'past', instance, null, null, null, null, null, null, null, '{}', '{}', '{}', '{}', '{}', '{}', null, 0, null, null, 0, 0, null, null, null)::mutirao.work;
begin
  for r in select * from mutirao.trace x where x.instance = moment_at.instance and x.id <= moment_at.at order by x.id loop
    if v.id is distinct from r.version then
      select * into v from mutirao.version x where x.id = r.version;
    end if;
    w := mutirao.moment_after(case when starts = '{}' then w else mutirao.moment_with(w, starts, v) end, r, v);
    starts := array_remove(r.fired, (select f.exception_task from mutirao.flow f where f.id = r.flow));
    w.flow := r.flow;
  end loop;
  if r.id is distinct from at then
    perform mutirao.refuse('wrong_call', format('instance %s has no trace row %s%s', instance, at, (
      select format('; it has %s from %s to %s', count(*), min(x.id), max(x.id)) from mutirao.trace x where x.instance = moment_at.instance having count(*) > 0)));
  end if;
  return w;
end $$;
comment on function mutirao.moment_at(bigint, bigint) is
  'How an instance stood when the conditions were looked at for this row of its trace: told by the rows up to it.';

------------------------------------------------------------------------------------------------------------- a firing

create or replace function mutirao.row_words(r mutirao.trace) returns text
language sql stable as $$
  select format(case r.kind
      when 'start' then 'the start' when 'finish' then '%s done' when 'fail' then '%s failed for good' when 'skip' then '%s skipped' when 'drop' then '%s ended, not kept'
      when 'reach' then '%s ' || case when r.attempt is null then 'ready again' else 'running' end
      when 'look' then 'a new version' when 'removed' then 'the job of %s removed' when 'reopen' then 'a new version'
      when 'migrate' then 'the move to another version' when 'due' then 'its time to start' when 'set' then 'a change from outside'
      when 'retry' then '%s tried again' when 'parked' then '%s parked' when 'roll_back' then 'the order to roll back' when 'compensate' then '%s, which undoes, done'
      when 'rolled_back' then 'the end of the rollback' when 'alarm' then 'a time to wait that has passed'
      when 'start_task' then 'a start by hand' when 'go_back' then 'going back' else r.kind end, (select t.name from mutirao.task t where t.id = r.task))
    || case when r.writer in ('clock', 'mutirao') then '' else ', by ' || r.writer end
$$;
comment on function mutirao.row_words(mutirao.trace) is 'What a row of the trace tells, for the middle of a sentence.';

create or replace function mutirao.row_changes(r mutirao.trace) returns jsonb
language sql stable as $$
  select coalesce(jsonb_object_agg(n.name, jsonb_build_object('before', b.state -> n.name, 'after', r.state -> n.name)), '{}')
  from (select coalesce((select x.state from mutirao.trace x where x.instance = r.instance and x.id < r.id and x.state is not null order by x.id desc limit 1), '{}') as state) b,
    lateral (select jsonb_object_keys(b.state || r.state)) n(name)
  where coalesce(b.state -> n.name, 'null') <> coalesce(r.state -> n.name, 'null')
$$;
comment on function mutirao.row_changes(mutirao.trace) is 'What a row of the trace changed, by attribute: before and after.';

-- Where some rule waits for a task to be ready, one look goes on with what it has fired itself.
create or replace function mutirao.why_fired(rule mutirao.rule, r mutirao.trace, w mutirao.work) returns jsonb
language plpgsql stable as $$
declare
  tree jsonb := mutirao.why_rule(rule, w);
  v mutirao.version;
begin
  if tree -> 'holds' <> 'true' and rule.task = any (r.fired) then
    select * into v from mutirao.version x where x.id = rule.version;
    tree := mutirao.why_rule(rule, mutirao.moment_with(w, r.fired[: array_position(r.fired, rule.task) - 1], v));
  end if;
  return tree;
end $$;
comment on function mutirao.why_fired(mutirao.rule, mutirao.trace, mutirao.work) is 'The condition of a task, part by part, as the look for this row of the trace saw it.';
