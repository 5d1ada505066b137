-- Flows and what they share.

-- knows_flow: whether some version of the flow has exactly this definition
select exists (select from mutirao.version v join mutirao.flow f on f.id = v.flow where v.fingerprint = md5(%s::jsonb::text) and f.name = %s)

-- apply_flow: puts a flow in place and answers its version's number
select mutirao.apply_flow(%s::jsonb, %s, %s)

-- flows: the flows, with what is going on in each
select f.name, f.live, v.number as version, v.description, v.made_at, v.made_by,
  (select count(*) from mutirao.rule r join mutirao.task t on t.id = r.task where r.version = v.id and t.name <> '_FINAL') as tasks,
  c.open, c.exceptions, c.closed, c.is_exact
from mutirao.flow f join mutirao.version v on v.id = f.version join mutirao.instance_counts(%(flow)s::text) c on c.flow = f.name
order by f.name

-- flow_heads: the flows, without what is going on in them
select f.name, f.live, v.number as version, v.description, v.made_at, v.made_by,
  (select count(*) from mutirao.rule r join mutirao.task t on t.id = r.task where r.version = v.id and t.name <> '_FINAL') as tasks
from mutirao.flow f join mutirao.version v on v.id = f.version
where %(flow)s::text is null or f.name = %(flow)s
order by f.name

-- flow_document: the definition of a flow's version, or of its newest
select mutirao.flow_document(v.id)::text
from mutirao.flow f join mutirao.version v on v.flow = f.id
where f.name = %(flow)s and (v.number = %(version)s::int or %(version)s::int is null and v.id = f.version)

-- versions: the versions of a flow, newest first; the open instances are looked at once, not once for each version
select v.number, v.made_at, v.made_by, v.id = f.version as newest, coalesce(o.open, 0) as open
from mutirao.flow f join mutirao.version v on v.flow = f.id
left join (
  select i.version, count(*) as open from mutirao.instance i where i.flow = (select x.id from mutirao.flow x where x.name = %(flow)s) group by 1) o on o.version = v.id
where f.name = %(flow)s order by v.number desc limit %(limit)s

-- flow_number: refuses a flow that is not there
select mutirao.flow_number(%s)

-- flow_names: all flows, by name; each has a schema of that name
select name from mutirao.flow

-- flow_search: a flow's number, the attributes people may filter by, and how a value of one of them is kept
select f.id, array(select a.name from mutirao.attribute a where a.version = f.version and a.searchable order by a.position),
  (select mutirao.searched(to_jsonb(%(value)s::text), a.type) from mutirao.attribute a where a.version = f.version and a.name = %(name)s)
from mutirao.flow f where f.name = %(flow)s

-- flow_parts: of each flow's newest version the tasks, and the flows that they run
select f.name, array_agg(t.name), array_remove(array_agg(r.child), null)
from mutirao.flow f join mutirao.rule r on r.version = f.version join mutirao.task t on t.id = r.task where t.name not in ('_FINAL', '_EXCPT') group by f.name

-- role_names: the roles
select name from mutirao.role where removed_at is null order by name

-- class_names: the classes
select name from mutirao.class where not is_dropped order by name

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
