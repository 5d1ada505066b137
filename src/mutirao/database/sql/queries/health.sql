-- How the work goes, and how its database is.

-- note_pace: a worker hands in what it did
select mutirao.note_pace(%s::int[], %s::int[], %s::int[], %s::int[])

-- pace_by_minute: what workers did, and how long it took them
select * from mutirao.pace_by_minute(%s)

-- pace_by_task: the same, of each task
select * from mutirao.pace_by_task(%s)

-- queue: what there is for workers to do, and how many of them do it. By indexes alone, and no more of each than asked for
with recursive ready_task(task) as (
  (select j.task from mutirao.job j where j.status = 'ready' and j.role is null and not j.by_clock order by j.task limit 1)
  union all
  select (select j.task from mutirao.job j where j.status = 'ready' and j.role is null and not j.by_clock and j.task > r.task order by j.task limit 1)
  from ready_task r where r.task is not null),
running as (
  select j.task, j.worker, j.lease_until from mutirao.job j where j.status = 'running' and j.role is null order by j.lease_until limit %(most)s),
counted as (
  select r.task, 'ready' as status, (select count(*) from (
    select from mutirao.job j where j.task = r.task and j.status = 'ready' and j.role is null and not j.by_clock limit %(most)s) x) as count
  from ready_task r where r.task is not null
  union all
  select r.task, 'running', count(*) from running r group by 1
  union all
  select x.task, 'waiting', count(*) from (
    select j.task from mutirao.job j where j.status = 'waiting' and not j.by_clock and j.role is null order by j.due_at limit %(most)s) x group by 1
  union all
  select x.task, 'stuck', count(*) from (
    select j.task from mutirao.job j where j.status in ('parked', 'failed') and j.role is null order by j.task limit %(most)s) x group by 1),
by_task as (
  select c.task, coalesce(sum(c.count) filter (where c.status = 'ready'), 0)::int as ready, coalesce(sum(c.count) filter (where c.status = 'running'), 0)::int as running,
    coalesce(sum(c.count) filter (where c.status = 'waiting'), 0)::int as waiting, coalesce(sum(c.count) filter (where c.status = 'stuck'), 0)::int as stuck
  from counted c group by 1)
select f.name as flow, t.name as task, b.ready, b.running, b.waiting, b.stuck,
  -- A job that waited became ready later than its number tells: so of the first thousand each is asked; and those of the lowest priority have waited longest.
  (select extract(epoch from mutirao.now() - min(coalesce(j.ready_at, j.created_at)))::float8 from mutirao.job j where j.id = any (array(
      select x.id from mutirao.job x where x.task = b.task and x.status = 'ready' and x.role is null and not x.by_clock order by x.priority desc, x.id limit 1000)) or j.id = (
      select x.id from mutirao.job x where x.task = b.task and x.status = 'ready' and x.role is null and not x.by_clock and x.priority = (
        select y.priority from mutirao.job y where y.task = b.task and y.status = 'ready' and y.role is null and not y.by_clock order by y.priority limit 1) order by x.id limit 1)) as oldest,
  (select count(*) from (
    select w.name from mutirao.worker w where mutirao.is_alive(w) and w.tasks @> array[b.task]
    union
    select r.worker from running r where r.task = b.task and r.lease_until > mutirao.now() and r.worker is not null) x)::int as workers,
  (select coalesce(sum((select p.done from mutirao.minute_pace p where p.minute = m.minute and p.task = b.task)), 0)
    from generate_series(date_trunc('minute', mutirao.now()) - interval '59 minutes', mutirao.now(), interval '1 minute') m(minute))::int as done
from by_task b join mutirao.task t on t.id = b.task join mutirao.flow f on f.id = t.flow
where t.id is distinct from f.exception_task
order by f.name, t.name

-- health: the server of the database, and whether it has room. Sessions of others tell a plain role only that they are there
select current_setting('server_version') as server, current_database()::text as database, pg_database_size(current_database()) as bytes,
  (select count(*) from pg_stat_activity a where a.datid is not null and a.usesysid is not null)::int as connections,
  current_setting('max_connections')::int as most_connections, extract(epoch from clock_timestamp() - o.xact_start)::float8 as oldest_transaction, o.application_name as oldest_of
from (select) one left join lateral (
  select a.xact_start, a.application_name from pg_stat_activity a
  where a.datname = current_database() and a.usesysid is not null and a.pid <> pg_backend_pid() and a.xact_start is not null order by a.xact_start limit 1) o on true

-- overdue: how many seconds late the oldest thing is that a clock should have done
select x.what, extract(epoch from mutirao.now() - x.due_at)::float8 from (
  select 'retry' as what, (select j.due_at from mutirao.job j where j.status = 'waiting' and not j.by_clock and j.due_at < 'infinity' order by j.due_at limit 1) as due_at
  union all
  select 'wait', (select j.due_at from mutirao.job j where j.status = 'waiting' and j.by_clock and j.due_at < 'infinity' order by j.due_at limit 1)
  union all
  select 'lease', (select j.lease_until from mutirao.job j where j.status = 'running' and j.lease_until < 'infinity' order by j.lease_until limit 1)
  union all
  select 'start', (
    select d.due_at from mutirao.delayed d join mutirao.instance i on i.id = d.instance and i.status = 'open.notrunning' where d.due_at < mutirao.now() order by d.due_at limit 1)
  union all
  select 'schedule', (select min(s.next_at) from mutirao.schedule s)) x
where x.due_at < mutirao.now()
