-- Defining flows: from a document, or statement by statement.

create or replace function mutirao.ensure_task(flow int, name text) returns int
language plpgsql as $$
declare
  found_id int;
begin
  if name is null then return null; end if;
  insert into mutirao.task (flow, name) values (flow, name) on conflict do nothing;
  select t.id into strict found_id from mutirao.task t where t.flow = ensure_task.flow and t.name = ensure_task.name;
  return found_id;
end $$;

create or replace function mutirao.check_name(place text, name text) returns void
language plpgsql as $$
begin
  if name is null or name !~ '^[a-z][a-z0-9_]{0,47}$' then
    perform mutirao.refuse('flow_invalid', format('%s "%s": a name is a lower-case letter followed by at most 47 letters, digits and _', place, name));
  end if;
end $$;

-- Definitions of one flow are made one after another; the lock is on the name, since the flow may not exist yet.
create or replace function mutirao.lock_definition(flow text) returns void
language plpgsql set lock_timeout = '150ms' as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('mutirao.flow.' || flow, 0));
exception when lock_not_available then
  perform mutirao.refuse('definition_busy', format('another transaction is changing flow "%s": try again when it has ended', flow));
end $$;

create or replace function mutirao.make_flow(name text, live boolean) returns int
language plpgsql as $$
declare
  f int;
begin
  perform mutirao.check_name('flow', name);
  if exists (select from mutirao.flow x where x.name = make_flow.name) then
    perform mutirao.refuse('flow_exists', format('there is already a flow "%s"', name));
  elsif name ~ '^pg_' or exists (select from pg_catalog.pg_namespace n where n.nspname = make_flow.name) then
    perform mutirao.refuse('flow_exists', format('the flow "%s" needs a schema of that name, and the database has one that is not ours: choose another name', name));
  end if;
  insert into mutirao.flow (name, live, created_at) values (name, live, mutirao.now()) returning id into f;
  perform mutirao.ensure_task(f, '_FINAL');
  update mutirao.flow x set exception_task = mutirao.ensure_task(f, '_EXCPT') where x.id = f;
  return f;
end $$;

create or replace function mutirao.new_version(flow int) returns int
language plpgsql as $$
declare
  v int;
begin
  insert into mutirao.version (flow, number, made_at)
  values (flow, coalesce((select max(x.number) from mutirao.version x where x.flow = new_version.flow), 0) + 1, mutirao.now())
  returning id into v;
  update mutirao.flow f set version = v where f.id = new_version.flow;
  perform pg_notify('mutirao', 'flows');  -- to workers that run applications or ask queries
  return v;
end $$;

-- All definition changes of one transaction make one version: the first change copies the newest one, the others change the copy.
-- Instances see it when the transaction commits, since only then does anybody else see it.
create or replace function mutirao.draft(flow int) returns int
language plpgsql as $$
declare
  f mutirao.flow;
  old mutirao.version;
  v int;
begin
  select * into strict f from mutirao.flow x where x.id = draft.flow;
  perform mutirao.lock_definition(f.name);
  select * into strict f from mutirao.flow x where x.id = draft.flow;
  if not f.live then
    perform mutirao.refuse('flow_pinned', format('flow "%s" is defined by a program: change it there and apply it', f.name));
  end if;
  select * into old from mutirao.version x where x.id = f.version;
  if old.made_in = pg_current_xact_id() then
    return old.id;
  end if;
  v := mutirao.new_version(f.id);
  update mutirao.version x set ends = old.ends, firing_limit = old.firing_limit, description = old.description where x.id = v;
  insert into mutirao.attribute select v, a.name, a.position, a.type, a.default_value, a.searchable, a.required from mutirao.attribute a where a.version = old.id;
  insert into mutirao.rule
  select v, r.task, r.position, r.condition, r.depends, r.function, r.arguments, r.calm, r.trigger_name, r.condition_name, r.enabled, r.fires, r.timeout,
    r.retries, r.backoff, r.priority, r.transactional, r.description, r.wait, r.by_clock, r.at_once, r.per_second, r.per, r.each
  from mutirao.rule r where r.version = old.id;
  insert into mutirao.recheck (version, flow) values (v, f.id);
  perform pg_notify('mutirao', 'clock');
  return v;
end $$;

--------------------------------------------------------------------------------------------------------- from a document

create or replace function mutirao.check_list(place text, list jsonb) returns void
language plpgsql as $$
begin
  if jsonb_typeof(list) <> 'array' or exists (select from jsonb_array_elements(list) e where jsonb_typeof(e) <> 'object') then
    perform mutirao.refuse('flow_invalid', format('%s is a list of objects: it cannot be %s', place, left(list::text, 100)));
  end if;
end $$;

create or replace function mutirao.check_type(attribute text, type text) returns void
language plpgsql as $$
begin
  if type is null or type <> all (array['text', 'integer', 'number', 'boolean', 'date', 'timestamp', 'json', 'file']) then
    perform mutirao.refuse('flow_invalid', format('attribute "%s": there is no type "%s"; the types are text, integer, number, boolean, date, timestamp, json and file', attribute, type));
  end if;
end $$;

create or replace function mutirao.define_attributes(version int, attributes jsonb) returns void
language plpgsql as $$
declare
  a record;
begin
  perform mutirao.check_list('attributes', attributes);
  for a in select x.*, o from jsonb_array_elements(attributes) with ordinality e(doc, o), jsonb_to_record(e.doc) as x(name text, type text, "default" jsonb, searchable boolean, required boolean, query jsonb, filename text) loop
    perform mutirao.check_attribute_name(a.name);
    perform mutirao.check_type(a.name, coalesce(a.type, 'text'));
    perform mutirao.check_source(a.name, a.query ->> 'database');
    begin
      insert into mutirao.attribute (version, name, position, type, default_value, searchable, required, query, filename)
      values (version, a.name, a.o, coalesce(a.type, 'text'), nullif(a."default", 'null'), coalesce(a.searchable, false), coalesce(a.required, false), nullif(a.query, 'null'), a.filename);
    exception when unique_violation then
      perform mutirao.refuse('flow_invalid', format('the attribute "%s" is declared twice', a.name));
    end;
    perform mutirao.check_default(a.name, coalesce(a.type, 'text'), a."default");
  end loop;
end $$;

create or replace function mutirao.check_default(name text, type text, value jsonb) returns void
language plpgsql as $$
declare
  ignored text;
begin
  if type <> 'json' and jsonb_typeof(value) not in ('null', mutirao.json_kind(type)) then
    perform mutirao.refuse('wrong_type', format('attribute "%s" is of type %s: its default cannot be %s', name, type, left(value::text, 100)));
  end if;
  begin
    execute format('select (r.v)::text from jsonb_to_record(jsonb_build_object(''v'', $1)) as r(v %s)', mutirao.sql_type(type)) into ignored using value;
  exception when data_exception then
    perform mutirao.refuse('wrong_type', format('attribute "%s" is of type %s: its default cannot be %s', name, type, left(value::text, 100)));
  end;
  if not mutirao.is_in_calendar(value #>> '{}', type) then
    perform mutirao.refuse('wrong_type', format('attribute "%s" is a %s in a year from 1 to 9999: its default cannot be %s', name, type, left(value::text, 100)));
  end if;
end $$;

create or replace function mutirao.define_task(flow int, version int, nth int, document jsonb, stands_by text) returns void
language plpgsql as $$
declare
  t record;
  l record;
begin
  perform mutirao.check_name('task', document ->> 'name');
  select * into t from jsonb_to_record(document) as x(
    name text, "when" text, depends jsonb, fires text, timeout float8, retries int, backoff float8, priority int, transactional boolean, enabled boolean, description text,
    wait text, by_clock boolean, "limit" jsonb, offer jsonb, application text, child text, inputs text[], outputs text[], model text, task_class text,
    on_failure text, force boolean, contingency text, compensation text, critical boolean, safe_point boolean, time_to_wait float8);
  select * into l from jsonb_to_record(coalesce(nullif(t."limit", 'null'), '{}')) as x(at_once int, per_second float8, per text, each int);
  if t."when" is not null and coalesce(t.depends, 'null') <> 'null' then
    perform mutirao.refuse('flow_invalid', format('task "%s" has a condition (when) and a dependency rule (depends): it takes either the one or the other', t.name));
  end if;
  insert into mutirao.rule (version, task, position, condition, depends, fires, timeout, retries, backoff, priority, transactional, enabled, description,
    wait, by_clock, at_once, per_second, per, each, role, deadline, offer, inputs, outputs, application, child, model, class,
    on_failure, force, contingency, compensation, critical, safe_point, time_to_wait, stands_by, class_id)
  values (version, mutirao.ensure_task(flow, t.name), nth, t."when", nullif(t.depends, 'null'),
    coalesce(t.fires, case when t."when" is null or t.by_clock then 'once' else 'each' end), make_interval(secs => t.timeout), coalesce(t.retries, 3),
    coalesce(make_interval(secs => t.backoff), interval '100 milliseconds'), coalesce(t.priority, 0), coalesce(t.transactional, false), coalesce(t.enabled, true), t.description,
    t.wait, coalesce(t.by_clock, false), l.at_once, l.per_second, l.per, l.each,
    mutirao.offered_role(t.name, nullif(t.offer, 'null')), make_interval(secs => (t.offer ->> 'deadline')::float8), nullif(t.offer, 'null') - array['role', 'deadline'],
    t.inputs, t.outputs, t.application, t.child, t.model, t.task_class,
    coalesce(t.on_failure, 'block'), coalesce(t.force, false), mutirao.ensure_task(flow, t.contingency), mutirao.ensure_task(flow, t.compensation),
    coalesce(t.critical, false), coalesce(t.safe_point, false), make_interval(secs => t.time_to_wait), stands_by,
    mutirao.class_of(t.name, t.task_class));
exception
  when unique_violation then
    perform mutirao.refuse('flow_invalid', format('the task "%s" is declared twice', t.name));
  when check_violation then
    perform mutirao.refuse('flow_invalid', format('task "%s": fires is each or once, a timeout is positive, retries and backoff are not negative, '
      'a priority is at most a million either way, limits are more than zero, each goes with per, by_clock with wait, a deadline and a time to wait are more than zero, '
      'and on_failure is block, release, roll_back or safe_point', t.name));
  when data_exception then
    perform mutirao.refuse('flow_invalid', format('task "%s": %s', document ->> 'name', sqlerrm));
end $$;

-- Of a task without a condition of its own: what for.
create or replace function mutirao.stands_by(tasks jsonb, document jsonb) returns text
language plpgsql immutable as $$
declare
  name text := document ->> 'name';
begin
  if document ->> 'when' is not null or coalesce(document -> 'depends', 'null') <> 'null' then
    return null;
  elsif exists (select from jsonb_array_elements(tasks) e where e ->> 'compensation' = name) then
    return 'compensation';
  elsif exists (select from jsonb_array_elements(tasks) e where e ->> 'contingency' = name) then
    return 'contingency';
  end if;
  perform mutirao.refuse('flow_invalid', format('task "%s" needs either a condition (when) or a dependency rule (depends), or another task whose contingency or compensation it is', name));
end $$;

-- Contingencies and compensations of a version: they are there, and stand by for one thing alone.
create or replace function mutirao.check_stand_by(version int) returns void
language plpgsql as $$
declare
  bad record;
begin
  select t.name, n.name as other, s.task as known, s.stands_by as others, w.what into bad
  from mutirao.rule r join mutirao.task t on t.id = r.task
  cross join lateral (values ('contingency', r.contingency), ('compensation', r.compensation)) w(what, task)
  join mutirao.task n on n.id = w.task left join mutirao.rule s on s.version = r.version and s.task = w.task
  where r.version = check_stand_by.version and (s.task is null or s.stands_by is distinct from w.what
    or w.what = 'compensation' and (s.compensation is not null or s.contingency is not null or s.on_failure <> 'block' or s.safe_point or s.critical)) order by r.position limit 1;
  if not found then
    return;
  elsif bad.known is null then
    perform mutirao.refuse('unknown_task', format('task "%s" names the %s "%s", which the flow does not have', bad.name, bad.what, bad.other));
  elsif bad.others is distinct from bad.what then
    perform mutirao.refuse('flow_invalid', format('"%s" cannot be the %s of "%s": %s', bad.other, bad.what, bad.name,
      case when bad.others is null then 'it has a condition of its own' else format('it is a %s', bad.others) end));
  end if;
  perform mutirao.refuse('flow_invalid', format('"%s" undoes "%s": it has no compensation, contingency, safe-point or failure action of its own; a compensation that fails is for a person', bad.other, bad.name));
end $$;

-- One after another, they come to an end; and each takes the place of one task: what it does would let those on who wait for another.
create or replace function mutirao.check_contingencies(version int) returns void
language plpgsql as $$
declare
  circle text := (select t.name from mutirao.rule r join mutirao.task t on t.id = r.task
    where r.version = check_contingencies.version and r.task in (select mutirao.contingencies(r.version, r.contingency)) order by r.position limit 1);
  shared record;
begin
  if circle is not null then
    perform mutirao.refuse('flow_invalid', format('task "%s": its contingency leads back to it', circle));
  end if;
  select t.name, c.name as contingency, o.name as other into shared
  from mutirao.rule r join mutirao.rule x on x.version = r.version and x.contingency = r.contingency and x.position < r.position
  join mutirao.task t on t.id = r.task join mutirao.task c on c.id = r.contingency join mutirao.task o on o.id = x.task
  where r.version = check_contingencies.version order by r.position limit 1;
  if found then
    perform mutirao.refuse('flow_invalid', format('task "%s": its contingency "%s" is that of "%s"; each has its own', shared.name, shared.contingency, shared.other));
  end if;
end $$;

create or replace function mutirao.recovery_contradiction(r mutirao.rule) returns text
language sql immutable
return case
  when r.by_clock and r.class_id is not null then 'nobody does it, so it has no class'
  when r.stands_by is not null and r.wait is not null then 'it starts in the place of another task or to undo it, so it waits for no time'
  when r.time_to_wait is not null and (r.depends is null or r.fires <> 'once') then 'time_to_wait goes with depends, and with a task that fires once'
  when r.force and (r.contingency is not null or r.on_failure <> 'block') then 'a forced task is tried until it succeeds, so it has neither a contingency nor a failure action'
  when r.critical and r.compensation is not null then 'a critical task cannot be undone, so it has no compensation'
  when r.contingency is not null and r.on_failure <> 'block' then 'a failed task has a contingency or another failure action, not both' end;

create or replace function mutirao.check_recovery(version int) returns void
language plpgsql as $$
declare
  bad record;
begin
  perform mutirao.check_stand_by(version);
  perform mutirao.check_contingencies(version);
  select t.name, mutirao.recovery_contradiction(r) as why into bad from mutirao.rule r join mutirao.task t on t.id = r.task
  where r.version = check_recovery.version and mutirao.recovery_contradiction(r) is not null order by r.position limit 1;
  if found then
    perform mutirao.refuse('flow_invalid', format('task "%s": %s', bad.name, bad.why));
  end if;
end $$;
comment on function mutirao.check_recovery(int) is 'What the tasks of a version say of failures, undoing and waiting must make sense.';

create or replace function mutirao.define_tasks(flow int, version int, tasks jsonb) returns void
language plpgsql as $$
begin
  perform mutirao.check_list('tasks', tasks);
  perform mutirao.define_task(flow, version, e.o::int, e.doc, mutirao.stands_by(tasks, e.doc)) from jsonb_array_elements(tasks) with ordinality e(doc, o);
  perform mutirao.check_recovery(version);
end $$;

create or replace function mutirao.compile_all(version int) returns void
language plpgsql as $$
declare
  r record;
begin
  for r in select x.task from mutirao.rule x where x.version = compile_all.version order by x.position loop
    perform mutirao.compile_rule(version, r.task);
  end loop;
  perform mutirao.compile(version);
end $$;

create or replace function mutirao.apply_flow(document jsonb, keep boolean default false, writer text default session_user) returns int
language plpgsql security definer as $$
declare
  flow_name text := document ->> 'name';
  print text := md5(document::text);
  f mutirao.flow;
  v mutirao.version;
begin
  perform mutirao.check_name('flow', flow_name);
  -- Workers apply their flows whenever they start: where nothing is new, they need not queue for it.
  select x.* into v from mutirao.flow y join mutirao.version x on x.flow = y.id
  where y.name = flow_name and not y.live and x.fingerprint = print and (keep or x.id = y.version) order by x.id desc limit 1;
  if found then
    return v.number;
  end if;
  perform mutirao.lock_definition(flow_name);
  select * into f from mutirao.flow x where x.name = flow_name;
  if not found then
    perform mutirao.make_flow(flow_name, false);
    select * into f from mutirao.flow x where x.name = flow_name;
  elsif f.live then
    perform mutirao.refuse('flow_live', format('flow "%s" is defined by SQL: change it there, or choose another name', flow_name));
  end if;
  select * into v from mutirao.version x where x.flow = f.id and x.fingerprint = print and (keep or x.id = f.version) order by x.id desc limit 1;
  if found then
    return v.number;
  end if;
  select * into v from mutirao.version x where x.id = f.version and x.made_in = pg_current_xact_id();
  if found then
    delete from mutirao.attribute a where a.version = v.id;
    delete from mutirao.rule r where r.version = v.id;
  else
    v.id := mutirao.new_version(f.id);
  end if;
  begin
    update mutirao.version x set
      ends = coalesce(document ->> 'ends', 'final'), firing_limit = coalesce((document ->> 'firing_limit')::int, 10000),
      description = document ->> 'description', fingerprint = print, made_by = mutirao.signed(writer)
    where x.id = v.id returning * into v;
  exception when check_violation or data_exception then
    perform mutirao.refuse('flow_invalid', format('flow "%s": ends is final or quiet, firing_limit is a positive integer', flow_name));
  end;
  perform mutirao.define_attributes(v.id, coalesce(document -> 'attributes', '[]'));
  perform mutirao.define_tasks(f.id, v.id, coalesce(document -> 'tasks', '[]'));
  if document ->> 'final' is not null then
    insert into mutirao.rule (version, task, position, condition) values (v.id, mutirao.ensure_task(f.id, '_FINAL'), 0, document ->> 'final');
  end if;
  perform mutirao.check_offers(f.id, v.id);
  perform mutirao.check_children(f.id, v.id);
  -- A definition is the whole truth: without creators, only administrators start it.
  update mutirao.flow x set creator_role = case when document ->> 'creator' is not null then mutirao.role_named(format('flow "%s"', flow_name), document ->> 'creator') end
  where x.id = f.id;
  perform mutirao.compile_all(v.id);
  perform mutirao.show_flow(f.id);
  return v.number;
end $$;
comment on function mutirao.apply_flow(jsonb, boolean, text) is
  'Puts a flow defined by a program in place, as a new version if it differs from the newest one (with keep: from all). Answers the version''s number.';

create or replace function mutirao.create_flow(name text) returns void
language plpgsql security definer as $$
declare
  f int;
begin
  perform mutirao.check_name('flow', name);
  perform mutirao.lock_definition(name);
  f := mutirao.make_flow(name, true);
  perform mutirao.compile(mutirao.new_version(f));
  perform mutirao.show_flow(f);
end $$;
comment on function mutirao.create_flow(text) is 'Makes an empty live flow with a schema of its name, to be defined by writing to its wed_attr and wed_trig.';

create or replace function mutirao.defined_limit(r mutirao.rule) returns jsonb
language sql immutable
return nullif(jsonb_strip_nulls(jsonb_build_object('at_once', r.at_once, 'per_second', r.per_second, 'per', r.per, 'each', r.each)), '{}');

-- The definition as a document again, as apply_flow takes it.
create or replace function mutirao.flow_document(version int) returns jsonb
language sql stable security definer
begin atomic
  select jsonb_build_object(
    'name', f.name, 'description', v.description, 'ends', v.ends, 'firing_limit', v.firing_limit,
    'creator', (select o.name from mutirao.role o where o.id = f.creator_role),
    'final', (select r.condition from mutirao.rule r join mutirao.task t on t.id = r.task and t.name = '_FINAL' where r.version = v.id),
    'attributes', coalesce((
      select jsonb_agg(jsonb_build_object('name', a.name, 'type', a.type, 'default', a.default_value, 'searchable', a.searchable, 'required', a.required,
        'query', a.query, 'filename', a.filename) order by a.position)
      from mutirao.attribute a where a.version = v.id), '[]'),
    'tasks', coalesce((
      select jsonb_agg(jsonb_build_object('name', t.name, 'when', r.condition, 'depends', r.depends, 'fires', r.fires, 'timeout', extract(epoch from r.timeout),
        'retries', r.retries, 'backoff', extract(epoch from r.backoff), 'priority', r.priority, 'transactional', r.transactional, 'enabled', r.enabled,
        'description', r.description, 'wait', r.wait, 'by_clock', r.by_clock, 'limit', mutirao.defined_limit(r),
        'offer', r.offer || jsonb_build_object('role', (select o.name from mutirao.role o where o.id = r.role), 'deadline', extract(epoch from r.deadline)),
        'application', r.application, 'child', r.child, 'inputs', r.inputs, 'outputs', r.outputs, 'model', r.model, 'task_class', r.class,
        'on_failure', r.on_failure, 'force', r.force, 'contingency', (select o.name from mutirao.task o where o.id = r.contingency),
        'compensation', (select o.name from mutirao.task o where o.id = r.compensation), 'critical', r.critical, 'safe_point', r.safe_point,
        'time_to_wait', extract(epoch from r.time_to_wait)) order by r.position)
      from mutirao.rule r join mutirao.task t on t.id = r.task and t.name <> '_FINAL' where r.version = v.id), '[]'))
  from mutirao.version v join mutirao.flow f on f.id = v.flow where v.id = flow_document.version;
end;
