-- Exceptions as work: for which reasons instances are exceptions, how many of each, and what would be done to all of them at once.

create or replace function mutirao.exception_codes() returns text[]
language sql immutable
return '{task_failed,nothing_fires,condition_failed,final_blocked,runaway,too_large,compensation_failed,critical_task,wait_circle}'::text[];

-- How an error begins, up to the first number or quoted name after its first words: so those that only say another order are alike. A batch finds them by it again.
create or replace function mutirao.error_kind(error text) returns text
language sql immutable
return rtrim(substring(left(error, 60) from '^[0-9"''\n]*[^0-9"''\n]*'));

-- By the _EXCPT jobs, which have an index; the instances themselves are not read.
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
    with stuck as (
      select j.instance, j.flow, j.created_at, j.error from mutirao.job j where j.task = any (stands) and j.status = 'ready' and j.role is null and not j.by_clock
      union all  -- somebody has taken it, to repair the instance
      select j.instance, j.flow, j.created_at, j.error from mutirao.job j where j.task = any (stands) and j.status = 'running'
      union all  -- somebody could not repair it; another try is due soon, which keeps those out that wait for other things
      select j.instance, j.flow, j.created_at, j.error from mutirao.job j
      where j.task = any (stands) and j.status = 'waiting' and not j.by_clock and j.due_at < mutirao.now() + interval '8 minutes'
      union all  -- it is being rolled back, and a compensation has failed
      select j.instance, j.flow, j.created_at, j.error from mutirao.undoing u join mutirao.instance i on i.id = u.instance and i.status = 'open.exception'
      join mutirao.job j on j.instance = u.instance and j.task = any (stands) and j.status = 'held'),
    alike as (
      select s.flow, r ->> 'code' as code, mutirao.error_kind(r ->> 'error') as begins,
        case when r ? 'job' and not r ? 'task' then (
          select t.name from mutirao.job x join mutirao.task t on t.id = x.task where x.id = (r ->> 'job')::bigint) else r ->> 'task' end as task, r ? 'job' as of_job,
        count(distinct s.instance) as instances, min(s.created_at) as since, max(s.created_at) as latest, min(s.instance) as example,
        min(r ->> 'error') as error, min(r ->> 'error') = max(r ->> 'error') as is_one
      from stuck s cross join jsonb_array_elements(s.error) r
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
