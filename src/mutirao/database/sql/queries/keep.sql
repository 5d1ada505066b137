-- What is kept: retention, erasing, export.

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
