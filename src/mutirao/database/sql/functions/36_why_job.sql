-- What a job waits for, and who is there to do it.

create or replace function mutirao.announce(worker text, tasks int[], host text default null, program text default null) returns void
language plpgsql security definer as $$
declare
  at timestamptz := mutirao.now();
begin
  if worker is null or tasks is null then
    perform mutirao.refuse('wrong_call', 'a worker announces its name and the numbers of its tasks: mutirao.task_ids answers those');
  end if;
  insert into mutirao.worker as w (name, tasks, host, program, started_at, seen_at) values (worker, tasks, host, program, at, at)
  on conflict (name) do update set tasks = excluded.tasks, host = excluded.host, program = excluded.program, seen_at = excluded.seen_at, stopped_at = null,
    started_at = case when w.stopped_at is null then w.started_at else excluded.started_at end;
end $$;
comment on function mutirao.announce(text, int[], text, text) is 'A worker says that it is there and does these tasks; again every ten seconds, or it is taken for dead.';

create or replace function mutirao.leave(worker text) returns void
language sql security definer begin atomic
  update mutirao.worker w set stopped_at = mutirao.now() where w.name = worker and w.stopped_at is null;
end;
comment on function mutirao.leave(text) is 'A worker says that it stops.';

create or replace function mutirao.clock_workers(room int, out done int, out next_at timestamptz)
language plpgsql as $$
begin
  with silent as (
    select w.name from mutirao.worker w where w.seen_at < mutirao.now() - interval '1 day' limit room for update skip locked),
  forgotten as (
    delete from mutirao.worker w using silent s where w.name = s.name returning w.name)
  select count(*) into done from forgotten;
  done := done + mutirao.forget_pace(room - done);
end $$;
comment on function mutirao.clock_workers(int) is 'Forgets workers that have been silent for a day, and what workers did before that.';

create or replace function mutirao.is_alive(w mutirao.worker) returns boolean
language sql stable
return w.stopped_at is null and w.seen_at > mutirao.now() - interval '30 seconds';

---------------------------------------------------------------------------------------------------------------- in words

create or replace function mutirao.span_words(length interval) returns text
language sql immutable strict as $$
  select case when s < 1 then format('%s ms', round(s * 1000)) when s < 60 then format('%s s', round(s, 1)) when s < 3600 then format('%s min', round(s / 60))
    when s < 172800 then format('%s h', round(s / 3600)) else format('%s d', round(s / 86400)) end
  from (select greatest(extract(epoch from length), 0)) x(s)
$$;

create or replace function mutirao.error_words(error jsonb) returns text
language sql immutable
return (select left(regexp_replace(coalesce(error ->> 'error', error ->> 'code', ''), '^.*\n(?=.)', ''), 200));
comment on function mutirao.error_words(jsonb) is 'The last line of an error.';

create or replace function mutirao.task_names(tasks int[]) returns text
language sql stable
return (select string_agg(t.name, ', ' order by t.id) from mutirao.task t where t.id = any (tasks));

create or replace function mutirao.counted(number bigint, one text, many text) returns text
language sql immutable
return format('%s %s', number, case number when 1 then one else many end);

--------------------------------------------------------------------------------------------------------- what it waits for

create or replace function mutirao.jobs_ahead(j mutirao.job, most int) returns bigint
language sql stable
-- Two ranges of the index job_ready, so that a long backlog behind it is not read.
return (select count(*) from (
  (select from mutirao.job o where o.task = j.task and o.status = 'ready' and o.role is null and not o.by_clock and o.priority > j.priority limit most)
  union all
  (select from mutirao.job o where o.task = j.task and o.status = 'ready' and o.role is null and not o.by_clock and o.priority = j.priority and o.id < j.id limit most)) ahead);

-- Those that announced themselves, and those that have a job of the task without having done so.
create or replace function mutirao.workers_of(task int) returns text[]
language sql stable
return array(
  select w.name from mutirao.worker w where mutirao.is_alive(w) and w.tasks @> array[workers_of.task]
  union
  select j.worker from mutirao.job j where j.status = 'running' and j.lease_until > mutirao.now() and j.task = workers_of.task and j.worker is not null
  order by 1 limit 20);

create or replace function mutirao.run_words(number text) returns text
language sql immutable
return case number when '1' then 'one of it runs' else number || ' of it run' end;

create or replace function mutirao.limit_words(used jsonb) returns text
language sql stable
return case used ->> 'keeps_back'
  when 'at_once' then format('%s already, and no more may at once', mutirao.run_words(used ->> 'at_once'))
  when 'per_second' then format('no more than %s of it may begin in a second; the next in %s', used ->> 'per_second', mutirao.span_words((used ->> 'opens_at')::timestamptz - mutirao.now()))
  when 'each' then format('%s already for %s = %s, and no more may at once', mutirao.run_words(used ->> 'each'), used ->> 'per', used ->> 'value') end;
comment on function mutirao.limit_words(jsonb) is 'Which limit keeps a job back, from what mutirao.limit_of answers.';

create or replace function mutirao.absence_words(task int) returns text
language sql stable
return coalesce((
  select format('; the last one, %s, %s %s ago', w.name, case when w.stopped_at is null then 'was seen' else 'stopped' end, mutirao.span_words(mutirao.now() - coalesce(w.stopped_at, w.seen_at)))
  from mutirao.worker w where w.tasks @> array[absence_words.task] order by w.seen_at desc limit 1), '');

-- It reserves nothing: whoever takes the item is told for certain.
create or replace function mutirao.kept_back(j mutirao.job, out kind text, out instance bigint, out says text)
language plpgsql stable as $$
begin
  select 'class', x.instance, format('"%s" of instance %s %s, and its class "%s" excludes this one', x.task, x.instance,
    case when x.holds then 'is being done' else 'has waited for long and goes first' end, x.class) into kind, instance, says
  from mutirao.excluder(j) x where x.job is not null;
  if kind is null and j.ordered then
    select 'ordering', first, format('instance %s goes first by an ordering', first) into kind, instance, says from mutirao.goes_before(j) first where first is not null;
  end if;
end $$;
comment on function mutirao.kept_back(mutirao.job) is 'What keeps a work item from being taken at present: a class or an ordering, which instance, and that in words; nulls: nothing does.';

create or replace function mutirao.item_words(j mutirao.job, at timestamptz, kept_back text) returns text
language sql stable
return case j.status when 'running' then format('is with "%s"', (select p.name from mutirao.person p where p.id = j.person))
    else format('has been on offer for %s, and %s', mutirao.span_words(at - coalesce(j.ready_at, j.created_at)), coalesce('cannot be taken: ' || kept_back, 'nobody has taken it: ' || coalesce(
      (select format('only "%s" may', p.name) from mutirao.person p where p.id = j.offered_to),
      (select format('the role "%s" has %s', r.name, coalesce(nullif(mutirao.counted(count(p.id), 'person', 'persons'), '0 persons'), 'nobody')) from mutirao.role r
       left join mutirao.member m on m.role = r.id left join mutirao.person p on p.id = m.person and p.disabled_at is null where r.id = j.role group by r.name)))) end
  || coalesce(case when j.finish_by > at then '; it is due in ' || mutirao.span_words(j.finish_by - at) else '; it has been due for ' || mutirao.span_words(at - j.finish_by) end, '');
comment on function mutirao.item_words(mutirao.job, timestamptz, text) is 'What a work item waits for, in words that follow the name of its task.';

create or replace function mutirao.why_child(j mutirao.job, child text) returns jsonb
language sql stable
return (select jsonb_strip_nulls(jsonb_build_object('waits_for', case when c.instance is null or c.status is not null then 'clock' else 'child' end, 'child', c.instance, 'says', case
    when c.instance is null then format('is to be done by an instance of %s, which a clock starts', child)
    when c.status is not null then format('is done: instance %s of %s has ended, and a clock takes over what it gives', c.instance, child)
    else format('is being done by instance %s of %s, which is %s', c.instance, child, i.status) end))
  from (select) one left join mutirao.child c on c.job = j.id left join mutirao.instance i on i.id = c.instance);

create or replace function mutirao.why_gate(j mutirao.job, at timestamptz) returns jsonb
language plpgsql stable as $$
begin
  return (select jsonb_strip_nulls(jsonb_build_object('status', 'synchronizing', 'due_at', null, 'class', c.name,
    'waits_for', case when j.waits_for is not null then 'ordering' else 'class' end, 'instance', coalesce(o.first, h.instance), 'says', format('has been synchronizing for %s: %s',
      mutirao.span_words(at - j.created_at), case
        when o.first is not null then format('instance %s goes first by the ordering of %s', o.first, (
          select x.first || ' and ' || x.second from mutirao.order_wait w join mutirao.ordering x on x.id = w.ordering where w.job = j.id))
        when h.job is not null then format('"%s" of instance %s %s a class that conflicts with "%s"', h.task, h.instance,
          case when h.holds then 'holds' else 'has waited for long, and goes first, for' end, c.name)
        else 'it is let through in a moment' end)))
  from (select) one left join mutirao.class c on c.id = j.class left join lateral mutirao.excluder(j) h on j.waits_for is null
  left join lateral mutirao.goes_before(j) o(first) on j.waits_for is not null);
end $$;
comment on function mutirao.why_gate(mutirao.job, timestamptz) is 'Whom a job waits for that is synchronizing.';

-- Each status of a job is a branch: what it waits for, and that in words that follow the name of the task.
create or replace function mutirao.why_job(j mutirao.job, r mutirao.rule, w mutirao.work) returns jsonb
language plpgsql stable as $$
declare
  at timestamptz := mutirao.now();
  most int := 1000;
  tries int := coalesce(r.retries, 3) + 1;
  try text := format('try %s%s', j.failures + 1, case when r.force then ', until it succeeds' else ' of ' || tries end);
  age text := mutirao.span_words(at - coalesce(j.ready_at, j.created_at));
  error text := mutirao.error_words(j.error);
  facts jsonb := jsonb_strip_nulls(jsonb_build_object('id', j.id, 'status', j.status, 'created_at', j.created_at, 'ready_at', j.ready_at, 'priority', j.priority, 'attempt', j.attempt, 'worker', j.worker,
    'lease_until', nullif(j.lease_until, 'infinity'), 'deadline_at', j.deadline_at, 'due_at', j.due_at, 'failures', j.failures, 'tries', tries, 'error', nullif(error, ''), 'cause', j.cause));
  workers text[];
  ahead bigint;
  used jsonb;
  reason jsonb;
  says text;
  waits_for text;
begin
  if j.role is not null and j.status in ('ready', 'running') then
    return facts || (select jsonb_strip_nulls(jsonb_build_object('waits_for', coalesce(k.kind, 'person'), 'instance', k.instance, 'says', mutirao.item_words(j, at, k.says), 'finish_by', j.finish_by,
      'role', (select x.name from mutirao.role x where x.id = j.role))) from (select) one left join mutirao.kept_back(j) k on j.status = 'ready');
  elsif r.child is not null and j.status in ('ready', 'running') then
    return facts || mutirao.why_child(j, r.child);
  elsif mutirao.job_state(j.status, j.gate) = 'synchronizing' then
    return facts || mutirao.why_gate(j, at);
  end if;
  case j.status::text
    when 'ready' then
      workers := mutirao.workers_of(j.task);
      ahead := mutirao.jobs_ahead(j, most + 1);
      used := mutirao.limit_of(j.id);
      waits_for := case when workers = '{}' then 'worker' when used ? 'keeps_back' then 'limit' else 'turn' end;
      says := format('has been ready for %s: %s', age, case
        when workers = '{}' then 'no worker that does it is alive' || mutirao.absence_words(j.task)
        when used ? 'keeps_back' then mutirao.limit_words(used)
        else format('%s ahead of it, and %s it', case when ahead > most then format('more than %s jobs are', most) when ahead = 1 then '1 job is' when ahead = 0 then 'nothing is' else format('%s jobs are', ahead) end,
          case when cardinality(workers) = 1 then workers[1] || ' does' else mutirao.counted(cardinality(workers), 'worker', 'workers') || ' do' end) end);
      facts := facts || jsonb_strip_nulls(jsonb_build_object('limit', used)) || jsonb_build_object('workers', workers, 'ahead', least(ahead, most), 'ahead_is_more', ahead > most);
    when 'running' then
      waits_for := case when j.lease_until > at then 'end' else 'lease' end;
      says := case when j.lease_until > at then format('is running at %s, attempt %s%s; leased for another %s', j.worker, j.attempt,
          case when j.failures > 0 then ', ' || try else '' end || coalesce(', to end within ' || mutirao.span_words(j.deadline_at - at), ''),
          mutirao.span_words(j.lease_until - at))
        else format('was running at %s, whose lease ended %s ago: a clock gives it to another worker', j.worker, mutirao.span_words(at - j.lease_until)) end;
    when 'waiting' then
      waits_for := 'time';
      if r.wait is not null and (j.failures = 0 or j.by_clock) then
        says := case when j.due_at = 'infinity' then format('waits for a time in %s, which is null', r.wait)
          when j.due_at > at then format('waits until %s = %s, in %s', r.wait, w.state ->> r.wait, mutirao.span_words(j.due_at - at))
          else format('has been due by %s for %s: a clock must be running', r.wait, mutirao.span_words(at - j.due_at)) end;
        return facts || jsonb_build_object('waits_for', waits_for, 'says', says, 'attribute', r.wait);
      end if;
      says := format('%s, %s, after: %s', case when j.due_at > at then 'is tried again in ' || mutirao.span_words(j.due_at - at)
        else format('has been due for another try for %s: a clock must be running', mutirao.span_words(at - j.due_at)) end, try, error);
    when 'held' then
      waits_for := 'resume';
      says := 'is held: the instance is suspended';
    when 'parked' then
      select x into reason from jsonb_array_elements(w.reasons) x where (x ->> 'job')::bigint = j.id limit 1;
      waits_for := case when reason is null then 'others' else 'person' end;
      says := case when reason is null then format('is done, but its change would end the instance while %s', coalesce(
            mutirao.task_names(array_remove(w.pending, j.task)) || case when cardinality(w.pending) > 2 then ' are pending' else ' is pending' end, mutirao.task_names(w.failed) || ' has failed'))
        else format('is done, but its change cannot be written: %s%s; skip it with another change, or repair the instance',
          case when reason ? 'task' then format('the condition of %s raises ', reason ->> 'task') else '' end, mutirao.error_words(reason)) end;
      facts := facts || jsonb_build_object('change', j.change);
    when 'failed' then
      waits_for := 'person';
      says := format('has failed for good after %s: %s; %s', mutirao.counted(j.failures, 'try', 'tries'), error,
        case when j.task = any (coalesce((select v.handled from mutirao.version v where v.id = w.version), '{}')) then 'another task handles that' else 'retry or skip it, or repair the instance' end);
    else
      says := 'is ' || j.status;
  end case;
  return facts || jsonb_build_object('waits_for', waits_for, 'says', says);
end $$;
comment on function mutirao.why_job(mutirao.job, mutirao.rule, mutirao.work) is 'The facts of a job, what it waits for, and that in words.';
