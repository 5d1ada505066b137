-- The library: what flows share, put in place, dropped and listed. To put the same again changes nothing.

create or replace function mutirao.check_entry(kind text, document jsonb, fields text[]) returns void
language plpgsql as $$
declare
  strange text;
begin
  if jsonb_typeof(document) is distinct from 'object' then
    perform mutirao.refuse('flow_invalid', format('the document of an entry of kind %s is an object: it cannot be %s', kind, left(document::text, 100)));
  end if;
  select k into strange from jsonb_object_keys(document) k where k <> all (fields) limit 1;
  if found then
    perform mutirao.refuse('flow_invalid', format('%s "%s" cannot have "%s"; it has %s', kind, document ->> 'name', strange, array_to_string(fields, ', ')));
  end if;
end $$;

create or replace function mutirao.put_task_model(document jsonb, source text default null, writer text default session_user) returns void
language plpgsql security definer as $$
declare
  m record;
begin
  perform mutirao.check_entry('task model', document, array['name', 'kind', 'role', 'description', 'application', 'priority', 'deadline', 'disconnected', 'retries',
    'timeout', 'users', 'policy', 'task_class']);
  select * into m from jsonb_to_record(document) as x(name text, kind text, role text, application text, priority int, deadline float8, disconnected boolean, retries int,
    timeout float8, users text[], policy jsonb, task_class text);
  if coalesce(m.kind, 'automatic') not in ('automatic', 'semi_automatic', 'cooperative', 'manual') then
    perform mutirao.refuse('flow_invalid', format('task model "%s": kind is automatic, semi_automatic, cooperative or manual: it cannot be "%s"', m.name, m.kind));
  elsif m.kind = 'manual' and m.application is not null then
    perform mutirao.refuse('flow_invalid', format('task model "%s": a manual task is done without an application', m.name));
  end if;
  insert into mutirao.task_model as t (name, document, source, made_by, made_at)
  values (m.name, document, source, mutirao.signed(writer), mutirao.now())
  on conflict on constraint task_model_pkey do update set document = excluded.document, source = excluded.source, made_by = excluded.made_by, made_at = excluded.made_at
  where (t.document, t.source) is distinct from (excluded.document, excluded.source);
exception when check_violation or not_null_violation or data_exception then
  perform mutirao.refuse('flow_invalid', format('task model "%s": %s', left(document ->> 'name', 100), sqlerrm));
end $$;
comment on function mutirao.put_task_model(jsonb, text, text) is 'Puts a task model in place, or another in its place. Flows that took it over stay as they are until they are applied again.';

create or replace function mutirao.put_application(document jsonb, source text default null, writer text default session_user) returns void
language plpgsql security definer as $$
begin
  perform mutirao.check_entry('application', document, array['name', 'filename', 'size', 'os', 'cpu', 'installer', 'hosts']);
  insert into mutirao.application as a (name, filename, size, os, cpu, installer, hosts, source, made_by, made_at)
  select x.name, x.filename, coalesce(x.size, 0), x.os, x.cpu, x.installer, coalesce(x.hosts, '{}'), put_application.source, mutirao.signed(writer), mutirao.now()
  from jsonb_to_record(document) as x(name text, filename text, size int, os text, cpu text, installer text, hosts text[])
  on conflict on constraint application_pkey do update set filename = excluded.filename, size = excluded.size, os = excluded.os, cpu = excluded.cpu,
    installer = excluded.installer, hosts = excluded.hosts, source = excluded.source, made_by = excluded.made_by, made_at = excluded.made_at
  where (a.filename, a.size, a.os, a.cpu, a.installer, a.hosts, a.source)
    is distinct from (excluded.filename, excluded.size, excluded.os, excluded.cpu, excluded.installer, excluded.hosts, excluded.source);
  perform pg_notify('mutirao', 'flows');
exception when check_violation or not_null_violation or data_exception then
  perform mutirao.refuse('flow_invalid', format('application "%s": %s', left(document ->> 'name', 100), sqlerrm));
end $$;
comment on function mutirao.put_application(jsonb, text, text) is 'Puts an application in place, or another in its place: the next job runs that.';

create or replace function mutirao.check_ordered(document jsonb, side int) returns void
language plpgsql stable as $$
declare
  named text := format('ordering of "%s" and "%s"', document ->> 'first', document ->> 'second');
  wanted text := document ->> (array['first', 'second'])[side + 1];
  found_version int := (select f.version from mutirao.flow f where f.name = wanted);
  wrong record;
begin
  if found_version is null then
    perform mutirao.refuse_flow(wanted);
  end if;
  select p ->> side as task, r.task is null as is_missing into wrong
  from jsonb_array_elements(document -> 'pairs') with ordinality e(p, n)
  left join (mutirao.rule r join mutirao.task t on t.id = r.task) on r.version = found_version and t.name = p ->> side
  where r.task is null or r.by_clock or r.stands_by is not null order by r.task is null desc, n limit 1;
  if wrong.is_missing then
    perform mutirao.refuse('unknown_task', format('%s: flow "%s" has no task "%s"', named, wanted, wrong.task));
  elsif wrong.task is not null then
    perform mutirao.refuse('flow_invalid', format('%s: task "%s" of flow "%s" is done by nobody or stands by, so nobody can wait for it', named, wrong.task, wanted));
  elsif document ->> 'on' is not null and document ->> 'on' <> all (array(select a.name from mutirao.attribute a where a.version = found_version)) then
    perform mutirao.refuse('unknown_attribute', format('%s: flow "%s" has no attribute "%s", so its instances would never be ordered', named, wanted, document ->> 'on'));
  end if;
end $$;
comment on function mutirao.check_ordered(jsonb, int) is 'What an ordering lists of its first flow (0) or of its second (1) must be there, and must be done by somebody.';

-- A version that somebody is making would not be marked.
create or replace function mutirao.lock_ordered(first text, second text) returns void
language sql as $$ select mutirao.lock_definition(f) from (select distinct f from unnest(array[first, second]) f order by f) x $$;

create or replace function mutirao.put_ordering(document jsonb, source text default null, writer text default session_user) returns void
language plpgsql security definer as $$
declare
  equal_on text := document ->> 'on';
begin
  perform mutirao.lock_meeting();
  perform mutirao.check_entry('ordering', document, array['first', 'second', 'pairs', 'on']);
  if jsonb_typeof(document -> 'pairs') is distinct from 'array' or jsonb_array_length(document -> 'pairs') = 0
    or exists (select from jsonb_array_elements(document -> 'pairs') p
      where jsonb_typeof(p -> 0) is distinct from 'string' or jsonb_typeof(p -> 1) is distinct from 'string' or p -> 2 is not null)
  then
    perform mutirao.refuse('flow_invalid', 'the pairs of an ordering are a list of [task of the first, task of the second]');
  end if;
  perform mutirao.lock_ordered(document ->> 'first', document ->> 'second');
  perform mutirao.check_ordered(document, 0), mutirao.check_ordered(document, 1);
  -- One that orders otherwise is another one: who has gone first by this one is forgotten.
  delete from mutirao.ordering o where o.first = document ->> 'first' and o.second = document ->> 'second'
    and (o.pairs, o.attribute) is distinct from (document -> 'pairs', equal_on);
  insert into mutirao.ordering as o (first, second, pairs, attribute, source, made_by, made_at)
  values (document ->> 'first', document ->> 'second', document -> 'pairs', equal_on, put_ordering.source, mutirao.signed(writer), mutirao.now())
  on conflict on constraint ordering_pkey do update set source = excluded.source, made_by = excluded.made_by, made_at = excluded.made_at where o.source is distinct from excluded.source;
  perform mutirao.list_ordered(document ->> 'first', document ->> 'second');
end $$;
comment on function mutirao.put_ordering(jsonb, text, text) is 'Puts the relative order of two flows in place.';

----------------------------------------------------------------------------------------------------------------- who uses what

create or replace function mutirao.library_use(out kind text, out name text, out used_by text) returns setof record
language sql stable
begin atomic
  select distinct 'task_model', r.model, 'flow ' || f.name from mutirao.flow f join mutirao.rule r on r.version = f.version where r.model is not null
  union all
  select distinct 'application', r.application, 'flow ' || f.name from mutirao.flow f join mutirao.rule r on r.version = f.version where r.application is not null
  union all
  select 'application', m.document ->> 'application', 'task model ' || m.name from mutirao.task_model m where m.document ->> 'application' is not null;
end;
comment on function mutirao.library_use() is 'The flows whose newest version uses an entry of the library, and the task models that name an application.';

create or replace function mutirao.refuse_used(kind text, name text) returns void
language plpgsql as $$
declare
  used text[] := array(select u.used_by from mutirao.library_use() u where u.kind = refuse_used.kind and u.name = refuse_used.name order by 1);
begin
  if cardinality(used) > 0 then
    perform mutirao.refuse('in_use', format('%s "%s" is used by %s%s: change that first', replace(kind, '_', ' '), name, array_to_string(used[:5], ', '),
      case when cardinality(used) > 5 then format(' and %s more', cardinality(used) - 5) else '' end));
  end if;
end $$;

create or replace function mutirao.drop_task_model(name text) returns void
language plpgsql security definer as $$
begin
  perform mutirao.refuse_used('task_model', name);
  delete from mutirao.task_model m where m.name = drop_task_model.name;
  if not found then
    perform mutirao.refuse('unknown_model', format('there is no task model "%s"', name));
  end if;
end $$;
comment on function mutirao.drop_task_model(text) is 'Takes a task model away; refused while the newest version of a flow uses it.';

create or replace function mutirao.drop_application(name text) returns void
language plpgsql security definer as $$
begin
  perform mutirao.refuse_used('application', name);
  delete from mutirao.application a where a.name = drop_application.name;
  if not found then
    perform mutirao.refuse('unknown_application', format('there is no application "%s"', name));
  end if;
end $$;
comment on function mutirao.drop_application(text) is 'Takes an application away; refused while a task model or the newest version of a flow uses it.';

create or replace function mutirao.drop_ordering(first text, second text) returns void
language plpgsql security definer as $$
begin
  perform mutirao.lock_meeting();
  perform mutirao.lock_ordered(first, second);
  delete from mutirao.ordering o where o.first = drop_ordering.first and o.second = drop_ordering.second;
  if not found then
    perform mutirao.refuse('unknown_ordering', format('there is no ordering of "%s" and "%s"', first, second));
  end if;
  perform mutirao.mark_ordered();
end $$;
comment on function mutirao.drop_ordering(text, text) is 'Takes the relative order of two flows away.';

create or replace function mutirao.library(out kind text, out name text, out document jsonb, out source text, out used_by text[], out made_by text, out made_at timestamptz)
returns setof record
language sql stable security definer
begin atomic
  select e.kind, e.name, e.document, e.source, coalesce(u.used_by, '{}'), e.made_by, e.made_at
  from (
    select 'application' as kind, a.name, jsonb_strip_nulls(jsonb_build_object('name', a.name, 'filename', a.filename, 'size', a.size, 'os', a.os, 'cpu', a.cpu,
      'installer', a.installer, 'hosts', a.hosts)) as document, a.source, a.made_by, a.made_at from mutirao.application a
    union all
    select 'task_model', m.name, m.document, m.source, m.made_by, m.made_at from mutirao.task_model m
    union all
    select 'ordering', o.first || ': ' || o.second, jsonb_strip_nulls(jsonb_build_object('first', o.first, 'second', o.second, 'pairs', o.pairs, 'on', o.attribute)), o.source, o.made_by, o.made_at
    from mutirao.ordering o) e
  left join (select x.kind, x.name, array_agg(x.used_by order by x.used_by) as used_by from mutirao.library_use() x group by 1, 2) u on u.kind = e.kind and u.name = e.name
  order by 1, 2;
end;
comment on function mutirao.library() is 'All task models, applications and orderings, each with who uses it.';
