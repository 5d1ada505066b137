-- Instances and jobs, for whoever looks after the engine.

-- start_many: starts one instance per state, all or none
select * from mutirao.start_many(%s, %s::jsonb[], %s, %s, %s::text[], %s::timestamptz, %s::jsonb)

-- send: sets attributes of the instance that has a key
select key, event, instance, outcome, code, message, saw from mutirao.send(%s, %s, %s::jsonb, %s, %s, %s, %s)

-- send_many: does so for many events
select key, event, instance, outcome, code, message, saw from mutirao.send_many(%s, %s::text[], %s::jsonb[], %s::text[], %s, %s, %s)

-- set: changes attributes of an open instance from outside
select mutirao.set(%s, %s::jsonb, %s, %s)

-- repair: corrects an instance that is an exception
select mutirao.repair(%s, %s::jsonb, %s, %s)

-- cancel: stops an instance
select mutirao.cancel(%s, %s, %s)

-- roll_back: undoes what an instance has done, all of it or back to a safe-point
select mutirao.roll_back(%s, %s, %s, %s)

-- start_task: starts a task by hand
select mutirao.start_task(%s, %s, %s, %s)

-- go_back: starts a task again that has ended
select mutirao.go_back(%s, %s, %s, %s)

-- suspend: interrupts an instance
select mutirao.suspend(%s, %s, %s)

-- resume: goes on with an interrupted instance
select mutirao.resume(%s, %s, %s)

-- instance: one instance, open or closed
select i.id, f.name as flow, v.number as version, i.status::text as status, i.state, i.reasons, i.started_at, i.closed_at, i.priority, i.hold,
  (select min(k.key) from mutirao.key k where k.instance = i.id) as key, (select d.due_at from mutirao.delayed d where d.instance = i.id) as due_at,
  (select c.parent from mutirao.child c where c.instance = i.id) as parent,
  array(select c.instance from mutirao.child c where c.parent = i.id and c.instance is not null order by 1) as children,
  (select p.name from mutirao.charge c join mutirao.person p on p.id = c.person where c.instance = i.id) as in_charge
from (
  select id, flow, version, status, state, reasons, started_at, null::timestamptz as closed_at, priority, hold from mutirao.instance where id = %(id)s
  union all
  select id, flow, version, status, state, null, started_at, closed_at, priority, null from mutirao.closed where id = %(id)s) i
join mutirao.flow f on f.id = i.flow join mutirao.version v on v.id = i.version

-- keyed: the number of the instance that has a key
select k.instance from mutirao.key k join mutirao.flow f on f.id = k.flow where f.name = %s and k.key = %s

-- instances: a page of instances, newest first
select i.id, f.name as flow, v.number as version, i.status::text as status, i.state, i.reasons, i.started_at, i.closed_at, i.priority, i.hold,
  (select min(k.key) from mutirao.key k where k.instance = i.id) as key, (select d.due_at from mutirao.delayed d where d.instance = i.id) as due_at,
  (select c.parent from mutirao.child c where c.instance = i.id) as parent,
  array(select c.instance from mutirao.child c where c.parent = i.id and c.instance is not null order by 1) as children,
  (select p.name from mutirao.charge c join mutirao.person p on p.id = c.person where c.instance = i.id) as in_charge
from (
  (select id, flow, version, status, state, reasons, started_at, null::timestamptz as closed_at, priority, hold from mutirao.instance
   where %(open)s and id < %(before)s and (%(flow)s::int is null or flow = %(flow)s) and (%(status)s::text is null or status::text like %(status)s || '%%')
     and (%(name)s::text is null or id in (select s.instance from mutirao.search s where s.flow = %(flow)s and s.name = %(name)s and s.value = left(%(value)s, 200)) and mutirao.searched(state -> %(name)s) = %(value)s)
   order by id desc limit %(limit)s)
  union all
  (select id, flow, version, status, state, null, started_at, closed_at, priority, null from mutirao.closed
   where %(closed)s and id < %(before)s and (%(flow)s::int is null or flow = %(flow)s) and (%(status)s::text is null or status::text like %(status)s || '%%')
     and (%(name)s::text is null or id in (select s.instance from mutirao.search s where s.flow = %(flow)s and s.name = %(name)s and s.value = left(%(value)s, 200)) and mutirao.searched(state -> %(name)s) = %(value)s)
   order by id desc limit %(limit)s)) i
join mutirao.flow f on f.id = i.flow join mutirao.version v on v.id = i.version
order by i.id desc limit %(limit)s

-- find_instances: numbers of the instances that fit a filter, newest first; and before which to go on, if there may be more
select ids, further from mutirao.find_instances(%(actor)s, %(filter)s::jsonb, %(before)s, %(room)s)

-- found_instances: these instances, as an actor may see them or as they are
select i.id, f.name as flow, v.number as version, i.status::text as status, i.state, i.reasons, i.started_at, i.closed_at, i.priority, i.hold,
  (select min(k.key) from mutirao.key k where k.instance = i.id) as key, (select d.due_at from mutirao.delayed d where d.instance = i.id) as due_at,
  n.parent, n.children, (select p.name from mutirao.charge c join mutirao.person p on p.id = c.person where c.instance = i.id) as in_charge
from unnest(%(ids)s::bigint[]) x(id), lateral (
    select id, flow, version, status, state, reasons, started_at, null::timestamptz as closed_at, priority, hold from mutirao.instance where id = x.id
    union all
    select id, flow, version, status, state, null, started_at, closed_at, priority, null from mutirao.closed where id = x.id) i
join mutirao.flow f on f.id = i.flow join mutirao.version v on v.id = i.version cross join lateral mutirao.kin(%(actor)s, i.id) n
order by i.id desc

-- flows_of_instances: which flows these instances are of
select array(select f.name from mutirao.flow f where f.id in (
    select i.flow from mutirao.instance i where i.id = any (x.ids) union select c.flow from mutirao.closed c where c.id = any (x.ids)) order by f.name)
from (select %s::bigint[]) x(ids)

-- instance_counts: how many instances there are of each flow, or of one
select flow, open, exceptions, closed, statuses, is_exact from mutirao.instance_counts(%s)

-- latest_row: the newest row of the trace, of whatever instance
select mutirao.latest_row()

-- trace: what happened to an instance, in order
select t.id, t.kind, n.name as task, t.job, t.attempt, t.cause, t.status::text as status, t.state, t.writer, t.note, t.at,
  array(select x.name from unnest(t.fired) with ordinality f(id, o) join mutirao.task x on x.id = f.id order by f.o) as fired
from mutirao.trace t left join mutirao.task n on n.id = t.task
where t.instance = %s order by t.id

-- trace_steps: what happened to an instance before a row of its trace, newest first; the oldest that wrote a state beside the state before it
select t.id, t.kind, n.name as task, t.job, t.attempt, t.cause, t.status::text as status, t.state, t.writer, t.note, t.at,
  array(select x.name from unnest(t.fired) with ordinality f(id, o) join mutirao.task x on x.id = f.id order by f.o) as fired,
  case when t.id = min(t.id) filter (where t.state is not null) over () then (
    select p.state from mutirao.trace p where p.instance = t.instance and p.id < t.id and p.state is not null order by p.id desc limit 1) end as was
from (
  select * from mutirao.trace x where x.instance = %(instance)s and x.id < coalesce(%(before)s::bigint, 9223372036854775807) order by x.id desc limit %(limit)s) t
left join mutirao.task n on n.id = t.task order by t.id desc

-- last_rows: the newest row of the trace of each of these instances, its newest comment, how many it has, and the newest attachment
select i.id, (select t.id from mutirao.trace t where t.instance = i.id order by t.id desc limit 1), (select max(c.id) from mutirao.comment c where c.instance = i.id),
  (select count(*) from mutirao.comment c where c.instance = i.id),
  (select max(a.id) from mutirao.attachment a where a.instance = i.id)
from unnest(%s::bigint[]) i(id)

-- task_states: how each task of an instance stands
select * from mutirao.task_states(%s)

-- why: why an instance moves or does not
select to_jsonb(e) from mutirao.why(%s, %s, %s) e

-- jobs: the jobs of an instance, or the failed and parked ones of all
select j.id, j.instance, f.name as flow, t.name as task, mutirao.job_state(j.status, j.gate) as status, j.priority, j.worker, j.attempt, j.failures, nullif(j.lease_until, 'infinity') as lease_until,
  nullif(j.due_at, 'infinity') as due_at,
  j.error, coalesce(j.ready_at, j.created_at) as since, j.created_at, o.name as role, case when j.status = 'running' then h.name end as holder, j.finish_by,
  (select c.instance from mutirao.child c where c.job = j.id) as child, case when not k.is_large then k.change end as change,
  k.is_large as is_change_left_out, j.undoes
from mutirao.job j join mutirao.flow f on f.id = j.flow join mutirao.task t on t.id = j.task left join mutirao.role o on o.id = j.role left join mutirao.person h on h.id = j.person
  -- The size as it is stored is known without reading it; only what is small there need be read, to see whether it is.
  cross join lateral (
    select x.change, coalesce(pg_column_size(x.change) > 2000 or length(x.change::text) > 2000, false) as is_large
    from (select case when j.status = 'parked' then j.change end as change) x) k
where j.id > %(after)s and (%(instance)s::bigint is null or j.instance = %(instance)s) and (%(status)s::text is null or mutirao.job_state(j.status, j.gate) = %(status)s)
  and (%(flow)s::text is null or f.name = %(flow)s)
order by j.id limit %(limit)s

-- job: one job
select j.id, j.instance, f.name as flow, t.name as task, mutirao.job_state(j.status, j.gate) as status, j.priority, j.worker, j.attempt, j.failures, nullif(j.lease_until, 'infinity') as lease_until,
  nullif(j.due_at, 'infinity') as due_at,
  j.error, coalesce(j.ready_at, j.created_at) as since, j.created_at, o.name as role, case when j.status = 'running' then h.name end as holder, j.finish_by,
  (select c.instance from mutirao.child c where c.job = j.id) as child, case when j.status = 'parked' then j.change end as change, j.undoes
from mutirao.job j join mutirao.flow f on f.id = j.flow join mutirao.task t on t.id = j.task left join mutirao.role o on o.id = j.role left join mutirao.person h on h.id = j.person
where j.id = %s

-- retry: tries a failed job again
select mutirao.retry(%s, %s, %s)

-- skip: ends a job as if it had succeeded
select mutirao.skip(%s, %s::jsonb, %s, %s)

-- exceptions: what instances are exceptions for, of a flow or all
select * from mutirao.exceptions(%s, %s)
