-- What workers and clocks ask, and what there is to do.

-- turn: ends jobs and leases others in exchange: the whole traffic of a worker
select kind, job, attempt, instance, task, failures, timeout, state, note
from mutirao.turn(%s, %s::bigint[], %s::bigint[], %s::jsonb[], %s::jsonb[], %s::int[], %s, %s)

-- renew: prolongs leases and answers the attempts that have lost theirs
select * from mutirao.renew(%s::bigint[], %s::bigint[], %s)

-- release: gives jobs back untouched
select mutirao.release(%s::bigint[], %s::bigint[])

-- park: parks a job whose change cannot be written now
select mutirao.park_attempt(%s, %s, %s::jsonb, %s::jsonb)

-- complete_here: ends a job inside the transaction that did its work
select mutirao.complete_here(%s, %s, %s::jsonb)

-- turn_clock: one duty of a clock; and in how many seconds it should turn again
select done, extract(epoch from next_at - mutirao.now())::float8 from mutirao.turn_clock(%s, %s)

-- task_ids: the numbers of a flow's tasks, and the flow's own
select t.name, t.id, f.id from mutirao.task_ids(%s, %s) t, mutirao.flow f where f.name = %s

-- undone_tasks: open jobs of these flows whose tasks are none of these, by the version that their instances keep
select f.name, t.name, v.number, count(*) from mutirao.job j join mutirao.task t on t.id = j.task join mutirao.flow f on f.id = j.flow
join mutirao.instance i on i.id = j.instance join mutirao.version v on v.id = i.version
where f.name = any (%s) and j.task <> all (%s) and j.task <> f.exception_task and not j.by_clock and j.role is null
group by 1, 2, 3 order by 1, 2, 3

-- fates: what became of attempts that failed; a job that is gone by now was seen to by its flow, tried again, or dropped with its instance
select x.attempt, case
    when r.contingency is not null then 'replaced'
    when r.on_failure = 'release' then 'released'
    when r.on_failure in ('roll_back', 'safe_point') and j.id is null then 'rolled_back'
    when r.task is not null or j.status = 'failed' and j.failures = x.failures + 1 then 'given_up'
    when j.id is not null or exists (select from mutirao.trace t where t.instance = x.instance and t.attempt = x.attempt and t.kind = 'retry') then 'retried'
    else 'dropped' end
from unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::int[]) x(job, attempt, instance, failures) left join mutirao.job j on j.id = x.job
left join mutirao.trace f on f.instance = x.instance and f.attempt = x.attempt and f.kind = 'fail'
left join mutirao.rule r on r.version = f.version and r.task = f.task

-- origins: in whose context instances were started: the first row of a trace keeps it
select x.id, t.note ->> 'traceparent'
from unnest(%s::bigint[]) x(id), lateral (select t.note from mutirao.trace t where t.instance = x.id order by t.id limit 1) t
where t.note ? 'traceparent'

-- announce: a worker says that it is there and which tasks it does
select mutirao.announce(%s, %s::int[], %s, %s)

-- leave: a worker says that it stops
select mutirao.leave(%s)

-- workers: those that announced themselves; most do the same tasks, whose names are looked up once
with named as materialized (
  select x.tasks as numbers, array(select f.name || '.' || t.name from mutirao.task t join mutirao.flow f on f.id = t.flow where t.id = any (x.tasks) order by f.name, t.id) as tasks
  from (select distinct w.tasks from mutirao.worker w) x)
select w.name, w.host, w.program, w.started_at, w.seen_at, w.stopped_at, mutirao.is_alive(w) as alive, n.tasks, coalesce(r.count, 0) as running
from mutirao.worker w join named n on n.numbers = w.tasks left join (
  select j.worker, count(*) as count from mutirao.job j where j.status = 'running' and j.role is null group by 1) r on r.worker = w.name
order by alive desc, w.seen_at desc

-- alive_workers: how many there are
select count(*) from mutirao.worker w where mutirao.is_alive(w)

-- backlog: how many jobs of each task wait and run, and how long the oldest has waited
select f.name as flow, t.name as task, count(*) filter (where j.status = 'ready') as ready, count(*) filter (where j.status = 'running') as running,
  count(*) filter (where j.status = 'waiting') as waiting, count(*) filter (where j.status in ('parked', 'failed')) as stuck,
  extract(epoch from mutirao.now() - min(coalesce(j.ready_at, j.created_at)) filter (where j.status = 'ready'))::float8 as oldest
from mutirao.job j join mutirao.flow f on f.id = j.flow join mutirao.task t on t.id = j.task
group by 1, 2 order by 1, 2

-- load: what there is to do, by flow and task. Ready jobs are counted in their index, up to 100,000 of a task; of large tables a sample is read
select case when t.id = f.exception_task then 'exceptions' else 'jobs' end as kind, f.name as flow, t.name as task, 'ready' as status, r.count::float8 as count,
  -- A job that waited became ready later than its number tells: so of the first thousand each is asked.
  (select extract(epoch from mutirao.now() - min(coalesce(j.ready_at, j.created_at)))::float8 from mutirao.job j where j.id in (r.oldest, l.oldest) or j.id = any (r.first)) as seconds
from mutirao.task t join mutirao.flow f on f.id = t.flow,
  lateral (select count(*) as count, min(x.id) as oldest, (array_agg(x.id))[: 1000] as first from (
    select j.id from mutirao.job j where j.task = t.id and j.status = 'ready' and j.role is null and not j.by_clock order by j.priority desc, j.id limit 100000) x) r,
  -- Beyond that limit, those of the lowest priority have waited longest.
  lateral (select (select j.id from mutirao.job j where j.task = t.id and j.status = 'ready' and j.role is null and not j.by_clock and j.priority = (
    select k.priority from mutirao.job k where k.task = t.id and k.status = 'ready' and k.role is null and not k.by_clock order by k.priority limit 1) order by j.id limit 1) as oldest) l
where r.count > 0
union all
select 'jobs', f.name, t.name, 'running', j.count, null
from (select task, count(*) as count from mutirao.job where status = 'running' group by 1) j join mutirao.task t on t.id = j.task join mutirao.flow f on f.id = t.flow
union all
select 'jobs', f.name, t.name, case when j.status = 'ready' then 'offered' else j.status::text end, round(j.count * greatest(1, pg_relation_size('mutirao.job') / 16e6)), null
from (select task, status, count(*) as count
      from mutirao.job tablesample system (least(100, 16e8 / greatest(1, pg_relation_size('mutirao.job'))))
      where status in ('waiting', 'held') or status = 'ready' and role is not null group by 1, 2) j
join mutirao.task t on t.id = j.task join mutirao.flow f on f.id = t.flow
union all
select 'instances', f.name, '', i.status::text, round(i.count * greatest(1, pg_relation_size('mutirao.instance') / 16e6)), null
from (select flow, status, count(*) as count
      from mutirao.instance tablesample system (least(100, 16e8 / greatest(1, pg_relation_size('mutirao.instance')))) group by 1, 2) i
join mutirao.flow f on f.id = i.flow
union all
select 'overdue', '', '', 'retry', 0,
  greatest(0, extract(epoch from mutirao.now() - (select j.due_at from mutirao.job j where j.status = 'waiting' and not j.by_clock and j.due_at < 'infinity' order by j.due_at limit 1)))::float8
union all
select 'overdue', '', '', 'wait', 0,
  greatest(0, extract(epoch from mutirao.now() - (select j.due_at from mutirao.job j where j.status = 'waiting' and j.by_clock and j.due_at < 'infinity' order by j.due_at limit 1)))::float8
union all
select 'overdue', '', '', 'lease', 0,
  greatest(0, extract(epoch from mutirao.now() - (select j.lease_until from mutirao.job j where j.status = 'running' and j.lease_until < 'infinity' order by j.lease_until limit 1)))::float8

-- unrest: whether something is ready or running for others than people, due, or behind its version; and in how many seconds the next retry is due
select
  exists (select from mutirao.job j join mutirao.flow f on f.id = j.flow where j.status in ('ready', 'running') and j.task <> f.exception_task and j.role is null and not j.by_clock)
    or exists (select from mutirao.child c where c.due_at <= mutirao.now()) or exists (select from mutirao.job j where j.alert_at <= mutirao.now())
    or exists (select from mutirao.job j where j.status = 'waiting' and j.due_at <= mutirao.now())
    or exists (select from mutirao.recheck) or exists (select from mutirao.batch b where b.status = 'running')
    or exists (select from mutirao.delayed d where d.due_at <= mutirao.now()) or exists (select from mutirao.schedule s where s.next_at <= mutirao.now()),
  (select extract(epoch from min(j.due_at) - mutirao.now())::float8 from mutirao.job j
   where j.status = 'waiting' and j.due_at < 'infinity' and (j.failures > 0 or j.watched))

-- limit_task: limits the jobs of a task from now on, whatever its definition says
select mutirao.limit_task(%s, %s, %s, %s, %s, %s)

-- limits: the limits in force, and how far they are used
select f.name as flow, n.name as task, t.at_once, t.per_second, t.per, t.each,
  (select count(*) from mutirao.job j where j.task = t.task and j.status = 'running' and j.slot is not null) as running,
  (select count(*) from mutirao.job j where j.task = t.task and j.status = 'ready' and j.role is null and not j.by_clock) as ready,
  jsonb_strip_nulls(jsonb_build_object('at_once', t.at_once, 'per_second', t.per_second, 'per', t.per, 'each', t.each)) is distinct from coalesce(t.defined, '{}') as by_hand
from mutirao.throttle t join mutirao.flow f on f.id = t.flow join mutirao.task n on n.id = t.task
where %(flow)s::text is null or f.name = %(flow)s
order by f.name, n.name

-- flows_with_task: the flows whose newest version has a task of this name
select f.id, f.name from mutirao.flow f join mutirao.rule r on r.version = f.version join mutirao.task t on t.id = r.task
where t.name = %s order by f.name

-- take: leases one job of a task, for as long as its timeout lets it run
select job, attempt, wid, payload from mutirao.take_job(%s, %s, null)

-- name_attempt: says for which attempt this transaction updates wed_flow
select set_config('mutirao.attempt', %s, true)

-- listen: hears when jobs are ready
listen mutirao

-- ping: whether the server answers
select 1

-- call_clock: lets clocks look at the time now
select pg_notify('mutirao', 'clock')
