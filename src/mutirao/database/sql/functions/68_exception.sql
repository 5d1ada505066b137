-- Exceptions as work: for which reasons instances are exceptions, how many of each, and what would be done to all of them at once.

create or replace function mutirao.exception_codes() returns text[]
language sql immutable
return '{task_failed,nothing_fires,condition_failed,final_blocked,runaway,too_large,compensation_failed,critical_task,wait_circle}'::text[];

-- How an error begins, up to the first number or quoted name after its first words: so those that only say another order are alike. A batch finds them by it again.
create or replace function mutirao.error_kind(error text) returns text
language sql immutable
return rtrim(substring(left(error, 60) from '^[0-9"''\n]*[^0-9"''\n]*'));

-- By the _EXCPT jobs, which have an index; the instances themselves are not read.
create or replace function mutirao.stuck(stands int[]) returns table (instance bigint, flow int, created_at timestamptz, error jsonb)
language sql stable as $$
  select j.instance, j.flow, j.created_at, j.error from mutirao.job j where j.task = any (stands) and j.status = 'ready' and j.role is null and not j.by_clock
  union all  -- somebody has taken it, to repair the instance
  select j.instance, j.flow, j.created_at, j.error from mutirao.job j where j.task = any (stands) and j.status = 'running'
  union all  -- somebody could not repair it; another try is due soon, which keeps those out that wait for other things
  select j.instance, j.flow, j.created_at, j.error from mutirao.job j
  where j.task = any (stands) and j.status = 'waiting' and not j.by_clock and j.due_at < mutirao.now() + interval '8 minutes'
  union all  -- it is being rolled back, and a compensation has failed
  select j.instance, j.flow, j.created_at, j.error from mutirao.undoing u join mutirao.instance i on i.id = u.instance and i.status = 'open.exception'
  join mutirao.job j on j.instance = u.instance and j.task = any (stands) and j.status = 'held'
$$;
comment on function mutirao.stuck(int[]) is 'The instances that are exceptions, by the numbers of their flows'' _EXCPT tasks: since when, and why.';

create or replace function mutirao.exceptions(of_flow text default null, room int default 100)
returns table (flow text, code text, task text, error text, instances bigint, since timestamptz, latest timestamptz, example bigint, repair text, chosen jsonb)
language plpgsql stable security definer as $$
declare
  stands int[] := array(select f.exception_task from mutirao.flow f where of_flow is null or f.name = of_flow);
begin
  if of_flow is not null and stands = '{}' then
    perform mutirao.refuse_flow(of_flow);
  end if;
  return query
    with alike as (
      select s.flow, r ->> 'code' as code, mutirao.error_kind(r ->> 'error') as begins,
        case when r ? 'job' and not r ? 'task' then (
          select t.name from mutirao.job x join mutirao.task t on t.id = x.task where x.id = (r ->> 'job')::bigint) else r ->> 'task' end as task, r ? 'job' as of_job,
        count(distinct s.instance) as instances, min(s.created_at) as since, max(s.created_at) as latest, min(s.instance) as example,
        min(r ->> 'error') as error, min(r ->> 'error') = max(r ->> 'error') as is_one
      from mutirao.stuck(stands) s cross join jsonb_array_elements(s.error) r
      -- what failed, and could not be rolled back, is one failure
      where not (r ->> 'code' = 'critical_task' and r ? 'job' and s.error @> jsonb_build_array(jsonb_build_object('code', 'task_failed', 'job', r -> 'job')))
      group by 1, 2, 3, 4, 5)
    select f.name, a.code, a.task, case when a.is_one then left(a.error, 200) else a.begins || '…' end, a.instances, a.since, a.latest, a.example, k.repair, case
        when k.repair <> 'retry' then jsonb_build_object('flow', f.name, 'exception', a.code)
        else jsonb_strip_nulls(jsonb_build_object('flow', f.name, 'task', a.task, 'error', case when a.code <> 'critical_task' then a.begins end)) end
    from alike a join mutirao.flow f on f.id = a.flow
    cross join lateral (select case
        when a.code in ('task_failed', 'compensation_failed') or a.code = 'critical_task' and a.task is not null then 'retry'
        when a.code = 'condition_failed' and a.of_job then 'skip'
        when a.code in ('wait_circle', 'critical_task') then 'cancel'
        else 'repair' end as repair) k
    order by a.instances desc, a.since, f.name, a.code limit least(room, 1000);
end $$;
comment on function mutirao.exceptions(text, int) is
  'What instances are exceptions for, most frequent first: flow, code, task and the error, or how it begins where they differ, how many, since when, one of them, and the batch that would repair them all: its kind and its filter.';

create or replace function mutirao.has_error(reasons jsonb, reason jsonb, error text) returns boolean
language sql stable
return error is null or exists (select from jsonb_array_elements(reasons) r where r @> reason and starts_with(r ->> 'error', error));
comment on function mutirao.has_error(jsonb, jsonb, text) is 'Whether among these reasons is one with what is said of it, and with an error that begins like this.';

-- Those whom a person is in charge of are few, those of an engine may be many: each is looked for where it is found quickly.
create or replace function mutirao.charged_exceptions(actor int, room int) returns table (instance bigint, since timestamptz, reasons jsonb)
language sql stable as $$
  select i.id, j.created_at, i.reasons
  from (select c.instance from mutirao.charge c where c.person = any (mutirao.stands_for(actor)) and not c.ended order by c.instance desc limit room) c
  join mutirao.instance i on i.id = c.instance and i.status = 'open.exception' join mutirao.flow f on f.id = i.flow join mutirao.job j on j.instance = i.id and j.task = f.exception_task
$$;
comment on function mutirao.charged_exceptions(int, int) is 'The exceptions among the newest of the open instances that a person is in charge of.';

create or replace function mutirao.exceptional(actor int, of_flow text default null, of_code text default null, of_task text default null, of_error text default null, before bigint default null,
  room int default 50, out instance bigint, out since timestamptz) returns setof record
language plpgsql stable security definer as $$
declare
  p mutirao.person := mutirao.actor(actor);
  reason jsonb := jsonb_strip_nulls(jsonb_build_object('code', of_code, 'task', of_task));
begin
  if not mutirao.is_administrator(p.id) then
    return query select c.instance, c.since from mutirao.charged_exceptions(p.id, 10000) c join mutirao.instance i on i.id = c.instance join mutirao.flow f on f.id = i.flow
    where (of_flow is null or f.name = of_flow) and c.reasons @> jsonb_build_array(reason) and mutirao.has_error(c.reasons, reason, of_error) and (before is null or c.instance < before)
    order by 1 desc limit least(room, 1000);
    return;
  end if;
  -- Of many whose kind is rare, few are looked at by a function: to call it for each would take several times as long.
  return query select x.id, j.created_at
  from mutirao.flow f cross join lateral (
    select i.id from mutirao.instance i
    where i.flow = f.id and i.status = 'open.exception' and i.id < coalesce(before, 9223372036854775807)
      and i.reasons @> jsonb_build_array(reason) and (of_error is null
        or jsonb_path_exists(i.reasons, '$[*].error ? (@ starts with $error)', jsonb_build_object('error', of_error)) and mutirao.has_error(i.reasons, reason, of_error))
    order by i.id desc limit least(room, 1000)) x
  join mutirao.job j on j.instance = x.id and j.task = f.exception_task
  where of_flow is null or f.name = of_flow order by 1 desc limit least(room, 1000);
end $$;
comment on function mutirao.exceptional(int, text, text, text, text, bigint, int) is
  'The exceptions that a person steers, newest first: of a flow, with a reason of this code, task and beginning of its error, those before a number; and since when each is one.';

create or replace function mutirao.count_exceptional(actor int, room int default 1000) returns bigint
language plpgsql stable security definer as $$
declare
  p mutirao.person := mutirao.actor(actor);
begin
  if not mutirao.is_administrator(p.id) then
    return (select count(*) from (select from mutirao.charged_exceptions(p.id, 10000) limit room) x);
  end if;
  return (select count(*) from (select from mutirao.instance i where i.status = 'open.exception' order by i.flow, i.id desc limit room) x);
end $$;
comment on function mutirao.count_exceptional(int, int) is 'How many exceptions a person steers; the most that is asked for stands for as many or more.';
