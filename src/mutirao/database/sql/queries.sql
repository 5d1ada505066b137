-- Every query that Python sends, by name. A query begins with a line `-- name: what it does`.

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

-- knows_flow: whether some version of the flow has exactly this definition
select exists (select from mutirao.version v join mutirao.flow f on f.id = v.flow where v.fingerprint = md5(%s::jsonb::text) and f.name = %s)

-- apply_flow: puts a flow in place and answers its version's number
select mutirao.apply_flow(%s::jsonb, %s, %s)

-- put_task_model: puts a task model in place
select mutirao.put_task_model(%s::jsonb, %s, %s)

-- put_application: puts an application in place
select mutirao.put_application(%s::jsonb, %s, %s)

-- put_ordering: puts the relative order of two flows in place
select mutirao.put_ordering(%s::jsonb, %s, %s)

-- drop_task_model: takes a task model away
select mutirao.drop_task_model(%s)

-- drop_application: takes an application away
select mutirao.drop_application(%s)

-- drop_ordering: takes the relative order of two flows away
select mutirao.drop_ordering(%s, %s)

-- library: task models, applications and orderings, all or of one kind
select kind, name, document, source, used_by, made_by, made_at from mutirao.library() where %(kind)s::text is null or kind = %(kind)s

-- role_names: the roles
select name from mutirao.role where removed_at is null order by name

-- flow_parts: of each flow's newest version the tasks, and the flows that they run
select f.name, array_agg(t.name), array_remove(array_agg(r.child), null)
from mutirao.flow f join mutirao.rule r on r.version = f.version join mutirao.task t on t.id = r.task where t.name not in ('_FINAL', '_EXCPT') group by f.name

-- start_many: starts one instance per state, all or none
select * from mutirao.start_many(%s, %s::jsonb[], %s, %s, %s::text[], %s::timestamptz, %s::jsonb)

-- send: sets attributes of the instance that has a key
select key, event, instance, outcome, code, message, saw from mutirao.send(%s, %s, %s::jsonb, %s, %s, %s, %s)

-- send_many: does so for many events
select key, event, instance, outcome, code, message, saw from mutirao.send_many(%s, %s::text[], %s::jsonb[], %s::text[], %s, %s, %s)

-- put_schedule: lets a clock start a flow each time a cron pattern says so
select from mutirao.put_schedule(%s, %s, %s, %s::jsonb, %s, %s, %s, %s, %s, %s)

-- pause_schedule: lets a schedule start nothing
select from mutirao.pause_schedule(%s)

-- resume_schedule: lets it go on
select from mutirao.resume_schedule(%s)

-- drop_schedule: takes it away
select mutirao.drop_schedule(%s)

-- schedules: all of them, or the one of a name; those that fire next first
select s.name, f.name as flow, s.cron, s.zone, s.state, s.priority, s.missed, s.overlap, s.time_to, s.paused, s.next_at, s.last_at, s.last_instance, s.runs, s.problem,
  s.made_by, s.made_at
from mutirao.schedule s join mutirao.flow f on f.id = s.flow
where %(name)s::text is null or s.name = %(name)s order by s.next_at, s.name

-- cron_times: when a cron pattern fires next
select * from mutirao.cron_times(%s, %s, count => %s)

-- set: changes attributes of an open instance from outside
select mutirao.set(%s, %s::jsonb, %s, %s)

-- repair: corrects an instance that is an exception
select mutirao.repair(%s, %s::jsonb, %s, %s)

-- cancel: stops an instance
select mutirao.cancel(%s, %s, %s)

-- suspend: interrupts an instance
select mutirao.suspend(%s, %s, %s)

-- resume: goes on with an interrupted instance
select mutirao.resume(%s, %s, %s)

-- retry: tries a failed job again
select mutirao.retry(%s, %s, %s)

-- skip: ends a job as if it had succeeded
select mutirao.skip(%s, %s::jsonb, %s, %s)

-- make_batch: has something done to all instances that a filter chooses
select mutirao.make_batch(%s, %s::jsonb, %s::jsonb, %s, %s)

-- count_batch: to how many instances a batch would do it now
select mutirao.count_batch(%s, %s::jsonb, %s::jsonb)

-- step_batch: takes a batch one step further
select mutirao.step_batch(%s)

-- stop_batch: stops a batch where it is
select mutirao.stop_batch(%s, %s)

-- resume_batch: takes up a batch where it was left
select mutirao.resume_batch(%s, %s)

-- batches: the newest batches, or one
select b.id, b.kind, f.name as flow, b.filter, b.arguments, b.status, b.total, b.done, b.skipped, b.refused, b.made_by, b.reason, b.made_at, b.ended_at, b.note
from mutirao.batch b left join mutirao.flow f on f.id = b.flow
where %(id)s::bigint is null or b.id = %(id)s
order by b.id desc limit %(limit)s

-- batch_refusals: the instances to which a batch could not be done
select instance, code, message from mutirao.batch_refusal where batch = %s order by instance limit %s

-- migrate_flow: moves instances of a pinned flow to another version
select mutirao.migrate_flow(%s, %s, %s, %s::jsonb, %s::jsonb, %s::jsonb, %s, %s)

-- preview_migration: what that would do to a page of them
select instance, version, outcome, why, fires, removes, moves from mutirao.preview_migration(%s, %s, %s, %s::jsonb, %s::jsonb, %s::jsonb, %s, %s)

-- keep: says how long finished instances of a flow are kept
select mutirao.keep(%s, %s, %s, %s, %s)

-- drop_instances: drops finished instances that a filter chooses, as a batch
select mutirao.drop_instances(%s::jsonb, %s, %s, %s)

-- retention: how long finished instances are kept, and when more of them fall due
select f.name as flow, substr(r.status::text, 8) as status, r.period, r.action, r.set_by, r.set_at
from mutirao.retention r join mutirao.flow f on f.id = r.flow order by f.name, r.status

-- count_finished: how many instances of a flow ended before a time, with one of these statuses; only those in a file, if so asked
select count(*) from mutirao.closed c
where c.flow = %(flow)s and c.status = any (%(statuses)s::mutirao.instance_status[]) and c.closed_at < %(before)s and (not %(exported)s or exists (
  select from mutirao.exported e where e.flow = c.flow and e.status = c.status and e.closed_at = c.closed_at and e.instance = c.id))

-- limit_size: sets how large states, changes and traces of a flow may be
select mutirao.limit_size(%s, %s, %s, %s)

-- flow_number: refuses a flow that is not there
select mutirao.flow_number(%s)

-- find_value: which of the next instances keep a value
select last, looked, holding from mutirao.find_value(%s, %s, %s, %s, %s)

-- erase: blanks or drops a person's data in some instances
select instance, refused from mutirao.erase(%s::bigint[], %s, %s::text[], %s, %s, %s, %s)

-- erasures: what was erased, newest first
select e.instance, f.name as flow, e.how, e.attributes, e.reason, e.writer, e.at from mutirao.erasure e join mutirao.flow f on f.id = e.flow order by e.id desc limit %s

-- count_instances: how many instances there are, of a flow or in all
select (select count(*) from mutirao.instance i where %(flow)s::int is null or i.flow = %(flow)s)
  + (select count(*) from mutirao.closed c where %(flow)s::int is null or c.flow = %(flow)s)

-- find_elsewhere: schedules and running batches that hold a value
select what, name from mutirao.find_elsewhere(%s)

-- begin_export: says that a file is about to be written
select export, file from mutirao.begin_export(%s, %s, %s, %s)

-- forget_export: takes that back
select mutirao.forget_export(%s)

-- unsettled_exports: files that were begun and not recorded, and the last that was: its writer may have been killed just then
select e.id, e.file, e.written_at is not null from mutirao.export e join mutirao.flow f on f.id = e.flow
where f.name = %(flow)s and (e.written_at is null
  or e.id = (select max(x.id) from mutirao.export x join mutirao.flow g on g.id = x.flow where g.name = %(flow)s and x.written_at is not null))

-- mark_exported: says that a file is safely on its disk
select mutirao.mark_exported(%s, %s::bigint[], %s::timestamptz[])

-- drop_exported: drops some finished instances that are exported
select mutirao.drop_exported(%s, %s::timestamptz, %s)

-- lock_export: one export of a flow at a time, until it is unlocked or the session ends
select pg_try_advisory_lock(hashtextextended('mutirao.export.' || %s, 0))

-- unlock_export: lets the next one begin
select pg_advisory_unlock(hashtextextended('mutirao.export.' || %s, 0))

-- one_moment: for this transaction, everything stands as it is now, and times are told in UTC
set transaction isolation level repeatable read, read only; set local timezone = 'UTC'

-- attribute_types: the attributes of a flow's newest version
select a.name, a.type from mutirao.attribute a join mutirao.flow f on f.version = a.version where f.name = %s order by a.position

-- count_exportable: how many finished instances of a flow are in no file yet
select count(*) from mutirao.closed c where c.flow = (select mutirao.flow_number(%(flow)s)) and c.closed_at < %(before)s::timestamptz
  and not exists (select from mutirao.exported e where e.flow = c.flow and e.status = c.status and e.closed_at = c.closed_at and e.instance = c.id)

-- export_lines: finished instances of a flow and a status that are in no file yet, each with its trace as one line of JSON
select c.id, c.closed_at, json_build_object('instance', c.id, 'flow', %(flow)s::text, 'version', v.number, 'status', c.status, 'priority', c.priority,
  'key', (select min(k.key) from mutirao.key k where k.instance = c.id), 'started_at', c.started_at, 'closed_at', c.closed_at, 'state', c.state, 'trace', (
    select coalesce(json_agg(json_build_object('id', t.id, 'kind', t.kind, 'task', n.name, 'job', t.job, 'attempt', t.attempt, 'cause', t.cause,
      'fired', array(select x.name from unnest(t.fired) with ordinality f(id, o) join mutirao.task x on x.id = f.id order by f.o),
      'status', t.status, 'state', t.state, 'writer', t.writer, 'note', t.note, 'at', t.at) order by t.id), '[]')
    from mutirao.trace t left join mutirao.task n on n.id = t.task where t.instance = c.id))::text
from (
  select * from mutirao.closed c where c.flow = (select f.id from mutirao.flow f where f.name = %(flow)s) and c.status = %(status)s::mutirao.instance_status and c.closed_at < %(before)s::timestamptz
    and c.closed_at >= %(closed_at)s::timestamptz and (c.closed_at, c.id) > (%(closed_at)s::timestamptz, %(instance)s)
    and not exists (select from mutirao.exported e where e.flow = c.flow and e.status = c.status and e.closed_at = c.closed_at and e.instance = c.id)
  order by c.closed_at, c.id limit %(room)s) c
join mutirao.version v on v.id = c.version
order by c.closed_at, c.id

-- flows: the flows, with what is going on in each
select f.name, f.live, v.number as version, v.description, v.made_at, v.made_by,
  (select count(*) from mutirao.rule r join mutirao.task t on t.id = r.task where r.version = v.id and t.name <> '_FINAL') as tasks,
  coalesce(o.open, 0) as open, coalesce(o.exceptions, 0) as exceptions, coalesce(c.closed, 0) as closed
from mutirao.flow f join mutirao.version v on v.id = f.version
left join (select flow, count(*) as open, count(*) filter (where status = 'open.exception') as exceptions from mutirao.instance group by 1) o on o.flow = f.id
left join (select flow, count(*) as closed from mutirao.closed group by 1) c on c.flow = f.id
where %(flow)s::text is null or f.name = %(flow)s
order by f.name

-- flow_document: the definition of a flow's version, or of its newest
select mutirao.flow_document(v.id)
from mutirao.flow f join mutirao.version v on v.flow = f.id
where f.name = %(flow)s and (v.number = %(version)s::int or %(version)s::int is null and v.id = f.version)

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
     and (%(name)s::text is null or id in (select s.instance from mutirao.search s where s.flow = %(flow)s and s.name = %(name)s and s.value = left(%(value)s, 200)) and state ->> %(name)s = %(value)s)
   order by id desc limit %(limit)s)
  union all
  (select id, flow, version, status, state, null, started_at, closed_at, priority, null from mutirao.closed
   where %(closed)s and id < %(before)s and (%(flow)s::int is null or flow = %(flow)s) and (%(status)s::text is null or status::text like %(status)s || '%%')
     and (%(name)s::text is null or id in (select s.instance from mutirao.search s where s.flow = %(flow)s and s.name = %(name)s and s.value = left(%(value)s, 200)) and state ->> %(name)s = %(value)s)
   order by id desc limit %(limit)s)) i
join mutirao.flow f on f.id = i.flow join mutirao.version v on v.id = i.version
order by i.id desc limit %(limit)s

-- flow_search: a flow's number and the attributes people may filter by
select f.id, array(select a.name from mutirao.attribute a where a.version = f.version and a.searchable order by a.position) from mutirao.flow f where f.name = %s

-- trace: what happened to an instance, in order
select t.id, t.kind, n.name as task, t.job, t.attempt, t.cause, t.status::text as status, t.state, t.writer, t.note, t.at,
  array(select x.name from unnest(t.fired) with ordinality f(id, o) join mutirao.task x on x.id = f.id order by f.o) as fired
from mutirao.trace t left join mutirao.task n on n.id = t.task
where t.instance = %s order by t.id

-- why: why an instance moves or does not
select to_jsonb(e) from mutirao.why(%s, %s, %s) e

-- announce: a worker says that it is there and which tasks it does
select mutirao.announce(%s, %s::int[], %s, %s)

-- leave: a worker says that it stops
select mutirao.leave(%s)

-- workers: those that announced themselves
select w.name, w.host, w.program, w.started_at, w.seen_at, w.stopped_at, w.stopped_at is null and w.seen_at > mutirao.now() - interval '30 seconds' as alive,
  array(select f.name || '.' || t.name from mutirao.task t join mutirao.flow f on f.id = t.flow where t.id = any (w.tasks) order by f.name, t.id) as tasks,
  (select count(*) from mutirao.job j where j.status = 'running' and j.worker = w.name) as running
from mutirao.worker w order by alive desc, w.seen_at desc

-- jobs: the jobs of an instance, or the failed and parked ones of all
select j.id, j.instance, f.name as flow, t.name as task, j.status::text as status, j.priority, j.worker, j.attempt, j.failures, nullif(j.lease_until, 'infinity') as lease_until, j.due_at,
  j.error, coalesce(j.ready_at, j.created_at) as since, j.created_at, o.name as role, case when j.status = 'running' then h.name end as holder, j.finish_by,
  (select c.instance from mutirao.child c where c.job = j.id) as child
from mutirao.job j join mutirao.flow f on f.id = j.flow join mutirao.task t on t.id = j.task left join mutirao.role o on o.id = j.role left join mutirao.person h on h.id = j.person
where j.id > %(after)s and (%(instance)s::bigint is null or j.instance = %(instance)s) and (%(status)s::text is null or j.status::text = %(status)s)
  and (%(flow)s::text is null or f.name = %(flow)s)
order by j.id limit %(limit)s

-- job: one job
select j.id, j.instance, f.name as flow, t.name as task, j.status::text as status, j.priority, j.worker, j.attempt, j.failures, nullif(j.lease_until, 'infinity') as lease_until, j.due_at,
  j.error, coalesce(j.ready_at, j.created_at) as since, j.created_at, o.name as role, case when j.status = 'running' then h.name end as holder, j.finish_by,
  (select c.instance from mutirao.child c where c.job = j.id) as child
from mutirao.job j join mutirao.flow f on f.id = j.flow join mutirao.task t on t.id = j.task left join mutirao.role o on o.id = j.role left join mutirao.person h on h.id = j.person
where j.id = %s

-- versions: the versions of a flow, newest first
select v.number, v.made_at, v.made_by, v.id = f.version as newest, (select count(*) from mutirao.instance i where i.version = v.id) as open
from mutirao.version v join mutirao.flow f on f.id = v.flow where f.name = %s order by v.number desc limit %s

-- backlog: how many jobs of each task wait and run, and how long the oldest has waited
select f.name as flow, t.name as task, count(*) filter (where j.status = 'ready') as ready, count(*) filter (where j.status = 'running') as running,
  count(*) filter (where j.status = 'waiting') as waiting, count(*) filter (where j.status in ('parked', 'failed')) as stuck,
  extract(epoch from mutirao.now() - min(coalesce(j.ready_at, j.created_at)) filter (where j.status = 'ready'))::float8 as oldest
from mutirao.job j join mutirao.flow f on f.id = j.flow join mutirao.task t on t.id = j.task
group by 1, 2 order by 1, 2

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

-- unrest: whether something is ready or running for others than people, due, or behind its version; and in how many seconds the next retry is due
select
  exists (select from mutirao.job j join mutirao.flow f on f.id = j.flow where j.status in ('ready', 'running') and j.task <> f.exception_task and j.role is null and not j.by_clock)
    or exists (select from mutirao.child c where c.due_at <= mutirao.now()) or exists (select from mutirao.job j where j.alert_at <= mutirao.now())
    or exists (select from mutirao.job j where j.status = 'waiting' and j.due_at <= mutirao.now())
    or exists (select from mutirao.recheck) or exists (select from mutirao.batch b where b.status = 'running')
    or exists (select from mutirao.delayed d where d.due_at <= mutirao.now()) or exists (select from mutirao.schedule s where s.next_at <= mutirao.now()),
  (select extract(epoch from min(j.due_at) - mutirao.now())::float8 from mutirao.job j
   where j.status = 'waiting' and j.due_at < 'infinity' and (j.failures > 0 or j.watched))

-- call_clock: lets clocks look at the time now
select pg_notify('mutirao', 'clock')

-- flows_with_task: the flows whose newest version has a task of this name
select f.id, f.name from mutirao.flow f join mutirao.rule r on r.version = f.version join mutirao.task t on t.id = r.task
where t.name = %s order by f.name

-- take: leases one job of a task, for as long as its timeout lets it run
select job, attempt, wid, payload from mutirao.take_job(%s, %s, null)

-- name_attempt: says for which attempt this transaction updates wed_flow
select set_config('mutirao.attempt', %s, true)

-- listen: hears when jobs are ready
listen mutirao

-- lock_upgrade: one upgrade of this database at a time, until the transaction ends
select pg_advisory_xact_lock(%s)

-- has_ledger: whether the database has a schema of ours
select exists (
  select from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  where n.nspname = 'mutirao' and c.relname = 'migration')

-- applied_migrations: what made the tables
select number, name, checksum from mutirao.migration order by number

-- applied_functions: whose functions these are
select version, checksum from mutirao.program

-- record_migration: remembers that a migration was applied
insert into mutirao.migration (number, name, checksum) values (%s, %s, %s)

-- record_functions: remembers whose functions were written
insert into mutirao.program (version, checksum) values (%s, %s)
on conflict (single) do update set version = excluded.version, checksum = excluded.checksum, applied_at = excluded.applied_at

-- database_size: of the whole database, in bytes
select pg_database_size(current_database())

-- grant_role: lets a role read, work or define
select mutirao.grant_role(%s::name, %s::text)

-- revoke_role: takes back what a role was granted
select mutirao.revoke_role(%s::name)

-- flow_names: all flows, by name; each has a schema of that name
select name from mutirao.flow

-- schemas_of_those: which of these schemas there are
select nspname from pg_catalog.pg_namespace where nspname = any (%s) order by nspname

-- other_tables: the tables outside these schemas and the server's own
select format('%%I.%%I', schemaname, tablename) from pg_catalog.pg_tables
where schemaname <> all (%s) and schemaname <> all ('{pg_catalog,information_schema}') and schemaname !~ '^pg_(toast|temp)' order by 1

-- undone_tasks: open jobs of these flows whose tasks are none of these, by the version that their instances keep
select f.name, t.name, v.number, count(*) from mutirao.job j join mutirao.task t on t.id = j.task join mutirao.flow f on f.id = j.flow
join mutirao.instance i on i.id = j.instance join mutirao.version v on v.id = i.version
where f.name = any (%s) and j.task <> all (%s) and j.task <> f.exception_task and not j.by_clock
group by 1, 2, 3 order by 1, 2, 3

-- fates: what became of attempts that failed; a job that is gone by now was tried again, or dropped with its instance
select x.attempt, case
    when j.status = 'failed' and j.failures = x.failures + 1 then 'given_up'
    when j.id is not null or exists (select from mutirao.trace t where t.instance = x.instance and t.attempt = x.attempt and t.kind = 'retry') then 'retried'
    else 'dropped' end
from unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::int[]) x(job, attempt, instance, failures) left join mutirao.job j on j.id = x.job

-- ping: whether the server answers
select 1

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
select 'jobs', f.name, t.name, j.status::text, round(j.count * greatest(1, pg_relation_size('mutirao.job') / 16e6)), null
from (select task, status, count(*) as count
      from mutirao.job tablesample system (least(100, 16e8 / greatest(1, pg_relation_size('mutirao.job')))) where status in ('waiting', 'held') group by 1, 2) j
join mutirao.task t on t.id = j.task join mutirao.flow f on f.id = t.flow
union all
select 'instances', f.name, '', i.status::text, round(i.count * greatest(1, pg_relation_size('mutirao.instance') / 16e6)), null
from (select flow, status, count(*) as count
      from mutirao.instance tablesample system (least(100, 16e8 / greatest(1, pg_relation_size('mutirao.instance')))) group by 1, 2) i
join mutirao.flow f on f.id = i.flow
union all
select 'overdue', '', '', 'retry', 0,
  greatest(0, extract(epoch from mutirao.now() - (select j.due_at from mutirao.job j where j.status = 'waiting' and not j.by_clock order by j.due_at limit 1)))::float8
union all
select 'overdue', '', '', 'wait', 0,
  greatest(0, extract(epoch from mutirao.now() - (select j.due_at from mutirao.job j where j.status = 'waiting' and j.by_clock order by j.due_at limit 1)))::float8
union all
select 'overdue', '', '', 'lease', 0,
  greatest(0, extract(epoch from mutirao.now() - (select j.lease_until from mutirao.job j where j.status = 'running' order by j.lease_until limit 1)))::float8

-- origins: in whose context instances were started: the first row of a trace keeps it
select x.id, t.note ->> 'traceparent'
from unnest(%s::bigint[]) x(id), lateral (select t.note from mutirao.trace t where t.instance = x.id order by t.id limit 1) t
where t.note ? 'traceparent'

-- persons: those whom an actor asks for, by name
select * from mutirao.persons(%(actor)s, %(named)s, %(numbered)s, %(search)s, %(role)s, %(is_here)s, %(is_disabled)s, %(after)s, %(room)s)

-- person_number: the number of the person of that name
select id from mutirao.person where name = %s

-- person_names: names to guess from what was meant by a wrong one
select name from mutirao.person where disabled_at is null order by name limit 500

-- add_person: adds a person in some roles, and answers the number
select mutirao.add_person(%s, %s, %s, %s, %s, %s)

-- change_person: changes name, full name or e-mail
select mutirao.change_person(%s, %s, %s::jsonb, %s, %s)

-- set_away: says from when until when a person is away
select mutirao.set_away(%s, %s, coalesce(%s::timestamptz, case when %s then mutirao.now() end), %s, %s, %s, %s)

-- disable_person: ends what a person may do
select mutirao.disable_person(%s, %s, %s, %s)

-- enable_person: lets a person sign in again
select mutirao.enable_person(%s, %s, %s, %s)

-- roles: those that an actor asks for, by name
select * from mutirao.roles(%(actor)s, %(named)s, %(numbered)s)

-- add_role: adds a role, and answers its number
select mutirao.add_role(%s, %s, %s, %s)

-- change_role: changes name or description
select mutirao.change_role(%s, %s, %s::jsonb, %s, %s)

-- remove_role: removes a role that nothing uses
select mutirao.remove_role(%s, %s, %s, %s)

-- put_into_role: puts persons into a role
select mutirao.put_into_role(%s, %s, %s, %s)

-- take_out_of_role: takes persons out of a role
select mutirao.take_out_of_role(%s, %s, %s, %s)

-- begin_sign_in: counts an attempt, and answers the hash to verify or until when to wait
select person, hash, wait_until from mutirao.begin_sign_in(%s, %s)

-- finish_sign_in: begins a session
select mutirao.finish_sign_in(%s, %s, %s, %s, %s, %s, %s, %s)

-- set_password: replaces a password's hash and ends sessions
select mutirao.set_password(%s, %s, %s, %s, %s)

-- has_administrator: whether somebody is an administrator, and enabled
select exists (
  select from mutirao.role r join mutirao.member m on m.role = r.id join mutirao.person p on p.id = m.person and p.disabled_at is null
  where r.name = 'administrator')

-- first_administrator: makes an administrator if there is none
select mutirao.first_administrator(%s, %s, %s)

-- authenticate: who has a session or token
select person, name, roles, is_administrator, session, token from mutirao.authenticate(%s, %s)

-- sessions: where a person is signed in
select * from mutirao.sessions(%s, %s)

-- end_sessions: signs a person out
select mutirao.end_sessions(%s, %s, %s, %s)

-- add_token: lets a program act as a person
select mutirao.add_token(%s, %s, %s, %s, %s, %s)

-- tokens: those of a person
select * from mutirao.tokens(%s, %s)

-- revoke_token: ends one
select mutirao.revoke_token(%s, %s, %s)

-- begin_upload: begins an upload and answers its number
select mutirao.begin_upload(%s, %s, %s, %s, %s)

-- put_chunk: puts one chunk of an upload
select mutirao.put_chunk(%s, %s, %b, %s)

-- upload_state: how far an upload has come
select %s::bigint as id, s.* from mutirao.upload_state(%s, %s) s

-- seal_upload: lets an upload take no more chunks, or some again; answers whether it is finished
select mutirao.seal_upload(%s, %s, %s)

-- finish_upload: makes a file of an upload
select f.of_content, f.name, f.size, f.media from mutirao.finish_upload(%s, %s, %s) f

-- abandon_upload: removes an upload
select mutirao.abandon_upload(%s, %s)

-- upload_chunk: one chunk of an upload
select c.content from mutirao.chunk c where c.file = %s and c.number = %s

-- read_chunk: some bytes of one chunk of a file
select substr(c.content, %s, %s) from mutirao.file f join mutirao.chunk c on c.file = f.id where f.sha256 = %s and c.number = %s

-- file_size: how many bytes a file has
select f.size from mutirao.file f where f.sha256 = %s

-- may_read_file: whether a person may read a file as one of an instance
select mutirao.may_read_file(%s, %s, %s)

-- file_limit: how many bytes a file may have
select (s.value #>> '{}')::bigint from mutirao.setting s where s.name = 'file_limit'

-- recall_answer: what a request of this key was answered
select status, headers, content from mutirao.recall_answer(%s, %s, %s, %s)

-- keep_answer: keeps what it was answered
select mutirao.keep_answer(%s, %s, %s, %s, %s, %s, %s)
-- worklist: a page of the items that a person may do or holds
select (item).*, cursor from mutirao.worklist(%s, %s::jsonb, %s, %s)

-- worklist_counts: how many there are, by role and flow
select role, flow, ready, running, overdue from mutirao.worklist_counts(%s)

-- item_view: one work item in full
select (item).*, inputs, outputs, in_charge, reminders, v.comments as all_comments, attachments, story,
  (select a.filename from mutirao.application a where a.name = (v.item).application) as program
from mutirao.item_view(%s, %s) v

-- select_item: a person takes a work item
select mutirao.select_item(%s, %s, %s)

-- claim_next: a person takes the next one
select job, attempt from mutirao.claim_next(%s, %s::jsonb, %s)

-- return_item: gives a work item back undone
select mutirao.return_item(%s, %s, %s)

-- finish_item: finishes a work item, by what it writes or as failed
select outcome, code, message from mutirao.finish_item(%s, %s, %s, %s::jsonb, %s)

-- delegate_item: offers a work item to one other person
select mutirao.delegate_item(%s, %s, %s, %s)

-- insert_item: puts a work item into somebody's list
select mutirao.insert_item(%s, %s, %s)

-- remove_item: takes it out
select mutirao.remove_item(%s, %s, %s)

-- move_item: puts an item before another one, or after it
select mutirao.move_item(%s, %s, %s, %s)

-- exchange_items: lets two items change places
select mutirao.exchange_items(%s, %s, %s)

-- add_comment: says something about an instance or an item
select mutirao.add_comment(%s, %s, %s, %s)

-- attachments: what is kept with an instance, though it is not of its state
select id, job, kind, task, person, content, at from mutirao.attachments(%s, %s, %s, %s, %s)

-- comments: what was said
select id, job, task, author, text, at from mutirao.comments(%s, %s, %s, %s, %s)

-- remove_comment: takes a comment back
select mutirao.remove_comment(%s, %s)

-- save_filter: keeps a filter under a name
select mutirao.save_filter(%s, %s, %s::jsonb)

-- filters: those that a person has saved
select name, filter, saved_at from mutirao.filters(%s)

-- rename_filter: gives one another name
select mutirao.rename_filter(%s, %s, %s)

-- drop_filter: forgets one
select mutirao.drop_filter(%s, %s)

-- check_see: refuses whoever may not see an instance
select mutirao.check_see(%s, %s)

-- check_see_job: refuses whoever may not see a job
select mutirao.check_see_job(%s, %s)

-- check_see_flow: refuses whoever may not start a flow
select mutirao.check_see_flow(%s, %s)

-- check_unchanged: refuses whoever has not seen the newest state of an instance
select mutirao.check_unchanged(%s, %s, %s)

-- interests: whose hints concern a person
select persons, roles from mutirao.interests(%s)

-- seen_instance: one instance, for a person who may see it
select i.id, f.name as flow, v.number as version, i.status::text as status, i.state, i.reasons, i.started_at, i.closed_at, i.priority, i.hold,
  (select min(k.key) from mutirao.key k where k.instance = i.id) as key, (select d.due_at from mutirao.delayed d where d.instance = i.id) as due_at,
  n.parent, n.children, s.in_charge, s.may_steer, coalesce(s.revision, 0) as revision
from mutirao.stance(%(actor)s, %(id)s) s, mutirao.kin(%(actor)s, %(id)s) n, (
  select id, flow, version, status, state, reasons, started_at, null::timestamptz as closed_at, priority, hold from mutirao.instance where id = %(id)s
  union all
  select id, flow, version, status, state, null, started_at, closed_at, priority, null from mutirao.closed where id = %(id)s) i
join mutirao.flow f on f.id = i.flow join mutirao.version v on v.id = i.version

-- seen_reach: how far seen_instances has looked, if that was not all
select case when count(*) = %(reach)s then min(x.instance) end from (
  select distinct p.instance from mutirao.participation p where p.person = %(actor)s and p.instance < %(before)s order by p.instance desc limit %(reach)s) x

-- seen_instances: a page of the instances a person has had to do with, newest first, among so many as it looks at
select i.id, f.name as flow, v.number as version, i.status::text as status, i.state, i.reasons, i.started_at, i.closed_at, i.priority, i.hold,
  (select min(k.key) from mutirao.key k where k.instance = i.id) as key, (select d.due_at from mutirao.delayed d where d.instance = i.id) as due_at,
  n.parent, n.children, (select p.name from mutirao.charge c join mutirao.person p on p.id = c.person where c.instance = i.id) as in_charge
from (select distinct p.instance from mutirao.participation p where p.person = %(actor)s and p.instance < %(before)s order by p.instance desc limit %(reach)s) p,
  lateral (
    select id, flow, version, status, state, reasons, started_at, null::timestamptz as closed_at, priority, hold from mutirao.instance where id = p.instance
    union all
    select id, flow, version, status, state, null, started_at, closed_at, priority, null from mutirao.closed where id = p.instance) i
join mutirao.flow f on f.id = i.flow join mutirao.version v on v.id = i.version cross join lateral mutirao.kin(%(actor)s, i.id) n
where (%(flow)s::text is null or f.name = %(flow)s) and (%(status)s::text is null or i.status::text like %(status)s || '%%')
order by p.instance desc limit %(limit)s

-- seen_flows: the flows that a person may start
select f.name, v.number as version, v.description, r.name as creator_role
from mutirao.flow f join mutirao.version v on v.id = f.version left join mutirao.role r on r.id = f.creator_role
where f.id in (select mutirao.startable(%(actor)s)) order by f.name

-- trace_page: what happened to an instance after a row of its trace, in order
select t.id, t.kind, n.name as task, t.job, t.attempt, t.cause, t.status::text as status, t.state, t.writer, t.note, t.at,
  array(select x.name from unnest(t.fired) with ordinality f(id, o) join mutirao.task x on x.id = f.id order by f.o) as fired
from mutirao.trace t left join mutirao.task n on n.id = t.task
where t.instance = %(instance)s and t.id > %(after)s order by t.id limit %(limit)s

-- last_rows: the newest row of the trace of each of these instances, the newest comment and the newest attachment
select i.id, (select t.id from mutirao.trace t where t.instance = i.id order by t.id desc limit 1), (select max(c.id) from mutirao.comment c where c.instance = i.id),
  (select max(a.id) from mutirao.attachment a where a.instance = i.id)
from unnest(%s::bigint[]) i(id)

-- listen_people: hears whose worklists and messages have changed
listen mutirao_people
-- charged_instances: those that a person is in charge of
select i.id, f.name as flow, v.number as version, i.status::text as status, i.state, i.reasons, i.started_at, i.closed_at, i.priority,
  (select x.hold from mutirao.instance x where x.id = i.id) as hold,
  (select min(k.key) from mutirao.key k where k.instance = i.id) as key, (select d.due_at from mutirao.delayed d where d.instance = i.id) as due_at,
  n.parent, n.children, (select p.name from mutirao.charge c join mutirao.person p on p.id = c.person where c.instance = i.id) as in_charge
from mutirao.charged_instances(%(actor)s, %(is_open)s, %(before)s, %(limit)s) i join mutirao.flow f on f.id = i.flow join mutirao.version v on v.id = i.version,
  lateral mutirao.kin(%(actor)s, i.id) n order by i.id desc

-- create_instance: a person starts an instance
select mutirao.create_instance(%s, %s, %s::jsonb, %s, %s::jsonb, %s, %s, %s::timestamptz, %s)

-- steer_instance: a person suspends, resumes, cancels, sets or repairs an instance
select mutirao.steer_instance(%s, %s, %s, %s::jsonb, %s)

-- steer_job: a person retries or skips a job
select mutirao.steer_job(%s, %s, %s, %s::jsonb, %s)

-- hand_over: puts somebody else in charge
select mutirao.hand_over(%s, %s, %s, %s)

-- put_source: names a database that flows may ask
select mutirao.put_source(%s, %s, %s, %s)

-- remove_source: takes the name of a database away
select mutirao.remove_source(%s)

-- sources: the databases that flows may ask
select name, url, timeout, made_by, made_at, flows from mutirao.sources()

-- queries_of: what must be asked before a job begins
select attribute, database, expression, url, timeout, state from mutirao.queries_of(%s, %s)

-- fill: writes what queries gave to a job that is about to begin
select mutirao.fill(%s, %s, %s::jsonb, %s)::text

-- asking_tasks: those of these tasks that have something to ask before their jobs begin, in any version
select distinct r.task from mutirao.rule r join mutirao.attribute a on a.version = r.version
where r.task = any (%s) and a.query is not null and (r.inputs is null or a.name = any (r.inputs))

-- application_tasks: tasks that applications do, in any version of their flow
select distinct t.id, f.id, f.name, t.name, jsonb_strip_nulls(jsonb_build_object('name', a.name, 'filename', a.filename, 'size', a.size, 'os', a.os, 'cpu', a.cpu, 'hosts', a.hosts))
from mutirao.rule r join mutirao.application a on a.name = r.application join mutirao.task t on t.id = r.task join mutirao.flow f on f.id = t.flow
where r.role is null and r.enabled order by 1

-- application_of: what runs a job, and what it is given
select document, inputs, outputs, attributes from mutirao.application_of(%s, %s)

-- note_output: keeps what the program of a job said
select mutirao.note_output(%s, %s, %s::jsonb, %s)
-- messages: a page of a person's messages, newest first
select m.id, m.kind, m.sender, m.text, m.instance, m.job, t.name as task, m.note, m.at, m.read_at
from mutirao.message m left join mutirao.task t on t.id = m.task
where m.person = %(person)s and m.id < %(before)s and (not %(unread)s or m.read_at is null) and (%(kinds)s::text[] is null or m.kind = any (%(kinds)s))
order by m.id desc limit %(limit)s

-- unread_messages: how many a person has not read, up to a thousand
select mutirao.unread_messages(%s)

-- read_messages: marks messages of a person as read; answers how many were not yet
select mutirao.read_messages(%s, %s::bigint[], %s)

-- extend_deadline: gives a work item another deadline
select mutirao.extend_deadline(%s, %s, %s, %s)

-- set_reminders: sets when deadlines are told of, and when items move
select mutirao.set_reminders(%s, %s::float8[]::numeric[], %s::float8::numeric, %s, %s)

-- settings: what holds for the whole engine
select s.name, s.value, s.set_by, s.set_at from mutirao.setting s order by s.name

-- setting_changes: who set what, the newest first
select c.id, c.name, c.before, c.after, c.reason, c.writer, c.at from mutirao.setting_change c where c.id < %s order by c.id desc limit %s

-- set_settings: sets some of it
select mutirao.set_settings(%s, %s::jsonb, %s, %s)

-- webhooks: those that an actor may see to, or one of them
select * from mutirao.webhooks(%s, %s)

-- webhook_address: the whole address of a webhook and its secret
select url, secret from mutirao.webhook_address(%s, %s)

-- put_webhook: lets messages be sent on
select mutirao.put_webhook(%s, %s, %s, %s::text[], %s, %s)

-- pause_webhook: lets a webhook send nothing, or go on
select mutirao.pause_webhook(%s, %s, %s)

-- drop_webhook: takes a webhook away
select mutirao.drop_webhook(%s, %s)

-- try_webhook: lets a webhook send a message that says nothing; answers the delivery
select mutirao.try_webhook(%s, %s)

-- retry_deliveries: sends again what was given up
select mutirao.retry_deliveries(%s, %s, %s)

-- deliveries: what became of the messages that a webhook sent on, the newest first
select d.id, d.message, m.kind, d.status, d.tries, d.made_at, d.due_at, d.ended_at, d.answer, d.error
from mutirao.delivery d left join mutirao.message m on m.id = d.message
where d.webhook = %(webhook)s and d.id < %(before)s and (%(status)s::text is null or d.status = %(status)s) order by d.id desc limit %(limit)s

-- take_deliveries: takes what is to be sent now
select delivery, try, webhook, url, secret, content from mutirao.take_deliveries(%s, %s, %s, %s::int[], %s)

-- end_delivery: says how a try went
select mutirao.end_delivery(%s, %s, %s, %s)
