-- The SQL face: each flow's wed_attr, wed_trig, wed_flow, wed_trace, job_pool and take().
--
-- Views over the common tables, written through INSTEAD OF triggers. Real tables per flow would have to be altered for each new
-- attribute, and would wait for every open writer; with views, only the shape of wed_flow changes, and the engine never reads it.

-------------------------------------------------------------------------------------------------------------- definitions

create or replace function mutirao.attribute_default(name text, type text, value text) returns jsonb
language plpgsql as $$
declare
  typed jsonb;
begin
  perform mutirao.check_type(name, type);  -- before it becomes SQL
  execute format('select to_jsonb($1::%s)', mutirao.sql_type(type)) into typed using value;
  perform mutirao.check_default(name, type, typed);
  return typed;
exception when data_exception then
  perform mutirao.refuse('wrong_type', format('attribute "%s" is of type %s: its default cannot be %s', name, type, quote_literal(left(value, 100))));
end $$;

create or replace function mutirao.wed_attr_write() returns trigger
language plpgsql security definer as $$
declare
  v int := mutirao.draft(tg_argv[0]::int);
begin
  if tg_op = 'INSERT' then
    perform mutirao.define_attributes(v, jsonb_build_array(jsonb_build_object('name', new.aname, 'type', coalesce(new.atype, 'text'),
      'default', mutirao.attribute_default(new.aname, coalesce(new.atype, 'text'), new.adv), 'searchable', new.searchable)));
    update mutirao.attribute a set position = (select max(x.position) + 1 from mutirao.attribute x where x.version = v) where a.version = v and a.name = new.aname;
  else
    if new.aname is distinct from old.aname then
      perform mutirao.refuse('flow_invalid', format('attribute "%s" keeps its name: add another one instead', old.aname));
    end if;
    if new.atype is distinct from old.atype then
      perform mutirao.check_unused(tg_table_schema, old.aname);
    end if;
    update mutirao.attribute a set default_value = mutirao.attribute_default(old.aname, new.atype, new.adv), type = new.atype, searchable = coalesce(new.searchable, false)
    where a.version = v and a.name = old.aname;
    if new.atype is distinct from old.atype then
      perform mutirao.compile_rule(v, r.task) from mutirao.rule r where r.version = v and old.aname = any (r.arguments);
    end if;
  end if;
  return new;
end $$;

-- To take a column away, or change its type, wed_flow is made anew; that cannot be done under somebody's own view.
create or replace function mutirao.check_unused(schema text, attribute text) returns void
language plpgsql as $$
declare
  users text;
begin
  select string_agg(distinct r.ev_class::regclass::text, ', ') into users
  from pg_catalog.pg_depend d join pg_catalog.pg_rewrite r on r.oid = d.objid and d.classid = 'pg_catalog.pg_rewrite'::regclass
  where d.refobjid = to_regclass(format('%I.wed_flow', schema)) and r.ev_class <> d.refobjid;
  if users is not null then
    perform mutirao.refuse('flow_invalid', format('attribute "%s": %s.wed_flow is used by %s; drop that first, and make it again afterwards', attribute, schema, users));
  end if;
end $$;

create or replace function mutirao.refuse_trigger(task text) returns void
language sql as $$
  select mutirao.refuse('flow_invalid', format('%s: cpred is the condition, a timeout is positive, fires is each or once, retries are not negative, enabled and by_clock are true or false, limits are more than zero, each goes with per, by_clock with wait', task))
$$;

create or replace function mutirao.wed_trig_insert() returns trigger
language plpgsql security definer as $$
declare
  f int := tg_argv[0]::int;
  v int := mutirao.draft(f);
begin
  new.cfinal := coalesce(new.cfinal, false);
  new.enabled := coalesce(new.enabled, true);
  if new.cfinal then
    new.trname := '_FINAL';
  elsif new.trname is null then
    perform mutirao.refuse('flow_invalid', 'a row of wed_trig names the task to start in trname, or is the final condition (cfinal)');
  else
    perform mutirao.check_name('task', new.trname);
  end if;
  new.tgid := mutirao.ensure_task(f, new.trname);
  begin
    insert into mutirao.rule (version, task, position, condition, trigger_name, condition_name, enabled, timeout, fires, retries, priority,
      wait, by_clock, at_once, per_second, per, each)
    values (v, new.tgid, (select coalesce(max(r.position), 0) + 1 from mutirao.rule r where r.version = v), new.cpred, new.tgname, new.cname, new.enabled, new.timeout,
      coalesce(new.fires, case when new.by_clock then 'once' else 'each' end), coalesce(new.retries, 3), coalesce(new.priority, 0),
      new.wait, coalesce(new.by_clock, false), new.at_once, new.per_second, new.per, new.each);
  exception
    when unique_violation then
      perform mutirao.refuse('flow_invalid', case when new.cfinal then 'the flow has a final condition already: join the two with OR'
        else format('the flow has a task "%s" already: change its row', new.trname) end);
    when check_violation then
      perform mutirao.refuse_trigger(new.trname);
  end;
  perform mutirao.compile_rule(v, new.tgid);
  return new;
end $$;

create or replace function mutirao.wed_trig_update() returns trigger
language plpgsql security definer as $$
declare
  v int := mutirao.draft(tg_argv[0]::int);
begin
  if (new.tgid, new.trname, new.cfinal) is distinct from (old.tgid, old.trname, old.cfinal) then
    perform mutirao.refuse('flow_invalid', format('the task "%s" keeps its identity: add another row instead', old.trname));
  end if;
  begin
    update mutirao.rule r set condition = new.cpred, trigger_name = new.tgname, condition_name = new.cname, enabled = new.enabled, timeout = new.timeout,
      fires = new.fires, retries = new.retries, priority = new.priority, wait = new.wait, by_clock = new.by_clock,
      at_once = new.at_once, per_second = new.per_second, per = new.per, each = new.each
    where r.version = v and r.task = old.tgid;
  exception when check_violation or not_null_violation then
    perform mutirao.refuse_trigger(old.trname);
  end;
  perform mutirao.compile_rule(v, old.tgid);
  return new;
end $$;

create or replace function mutirao.wed_trig_delete() returns trigger
language plpgsql security definer as $$
declare
  v int := mutirao.draft(tg_argv[0]::int);
begin
  delete from mutirao.rule r where r.version = v and r.task = old.tgid;
  return old;
end $$;

create or replace function mutirao.wed_attr_delete() returns trigger
language plpgsql security definer as $$
declare
  v int := mutirao.draft(tg_argv[0]::int);
begin
  perform mutirao.check_unused(tg_table_schema, old.aname);
  delete from mutirao.attribute a where a.version = v and a.name = old.aname;
  return old;
end $$;

-- What a statement has taken away must not be named by a condition that is left, also by one that is disabled.
create or replace function mutirao.check_unnamed(version int) returns void
language plpgsql as $$
declare
  there text[] := (mutirao.condition_names(version)).names;
  missing record;
begin
  select a.name, string_agg(case t.name when '_FINAL' then 'the final condition' else format('the condition of task "%s"', t.name) end, ', ' order by r.position) as users into missing
  from mutirao.rule r join mutirao.task t on t.id = r.task cross join unnest(r.arguments) a(name)
  where r.version = check_unnamed.version and a.name <> all (there) group by a.name order by a.name limit 1;
  if found then
    perform mutirao.refuse('flow_invalid', format('%s "%s" is named by %s: change that first', case when missing.name like 'task\_%' then 'task' else 'attribute' end,
      case when missing.name like 'task\_%' then substr(missing.name, 6) else missing.name end, missing.users));
  end if;
end $$;

-- Once a statement: errors of a condition come with its row, and the flow is compiled after the last one.
create or replace function mutirao.wed_attr_done() returns trigger
language plpgsql security definer as $$
declare
  f mutirao.flow := (select x from mutirao.flow x where x.id = tg_argv[0]::int);
begin
  perform mutirao.check_unnamed(f.version);
  perform mutirao.compile(f.version);
  -- A flow that nobody else can see yet shows its attributes at once; others when the definition is committed.
  if (select v.number from mutirao.version v where v.id = f.version) = 1 then
    perform mutirao.show_wed_flow(f.id);
  end if;
  return null;
end $$;

create or replace function mutirao.wed_trig_done() returns trigger
language plpgsql security definer as $$
begin
  perform mutirao.check_unnamed(f.version), mutirao.compile(f.version) from mutirao.flow f where f.id = tg_argv[0]::int;
  return null;
end $$;

---------------------------------------------------------------------------------------------------------------- instances

create or replace function mutirao.wed_flow_insert() returns trigger
language plpgsql security definer as $$
begin
  if new.wid is not null then
    perform mutirao.refuse('wrong_call', 'wid is given by the engine: leave it out');
  end if;
  -- The view may show an attribute a little longer than the flow has it.
  new.wid := (select mutirao.start_instances(f.name, array[to_jsonb(new) - 'wid' - array(
      select n.key from jsonb_each(to_jsonb(new)) n where n.value = 'null' and not v.defaults ? n.key)], 0, session_user::text)
    from mutirao.flow f join mutirao.version v on v.id = f.version where f.id = tg_argv[0]::int);
  return new;
end $$;

-- The end of a job. Rows come from the snapshot in which the statement began, so the attributes it writes are compared with what is
-- stored now; comparing the whole row would refuse parallel branches, which write different ones.
create or replace function mutirao.wed_flow_update() returns trigger
language plpgsql security definer as $$
declare
  named bigint := substring(current_setting('mutirao.attempt', true) from '^\d{1,18}$')::bigint;
  before jsonb := to_jsonb(old);
  after jsonb := to_jsonb(new);
  stored jsonb;
  change jsonb;
  taken bigint;
  answer mutirao.settled;
begin
  if named is null then
    perform mutirao.refuse('attempt_missing', format('UPDATE of wed_flow ends a job: take one with select * from take(''<task>'', %s), then set local mutirao.attempt = ''<its attempt>'' in the transaction', old.wid));
  end if;
  perform mutirao.lock_written(old.wid);
  select j.id into taken from mutirao.job j where j.instance = old.wid and j.attempt = named;
  if taken is null then
    perform mutirao.refuse('lease_lost', format('attempt %s is not the current one of any job of instance %s', named, old.wid));
  end if;
  select coalesce(jsonb_object_agg(a.key, a.value), '{}') into change from jsonb_each(after) a where a.value is distinct from before -> a.key;
  if change ? 'wid' then
    perform mutirao.refuse('wrong_call', 'wid cannot change');
  end if;
  execute format('select to_jsonb(w) from %I.wed_flow w where w.wid = $1', tg_table_schema) into stored using old.wid;
  if exists (select from jsonb_object_keys(change) k where stored -> k is distinct from before -> k) then
    raise exception 'changed_meanwhile: somebody else wrote instance % meanwhile: try again', old.wid using errcode = '40001';
  end if;
  select * into answer from mutirao.finish_jobs(session_user::text, array[taken], array[named], array[change], array[null::jsonb], null);
  if answer.kind is not null then
    perform mutirao.refuse(coalesce(answer.note ->> 'code', 'lease_lost'), format('instance %s: %s', old.wid, coalesce(answer.note ->> 'error', 'the state would be final while other jobs are pending: try again when they have ended')));
  end if;
  return new;
end $$;

create or replace function mutirao.lock_written(instance bigint) returns void
language plpgsql as $$
begin
  perform from mutirao.instance i where i.id = lock_written.instance for no key update;
  if not found then
    perform mutirao.lock_instance(instance);  -- says why there is none
  end if;
end $$;
comment on function mutirao.lock_written(bigint) is 'As lock_instance, but also one that is being cancelled: what runs may still finish.';

create or replace function mutirao.wed_flow_delete() returns trigger
language plpgsql as $$
begin
  perform mutirao.refuse('wrong_call', format('an instance is not deleted: select mutirao.cancel(%s)', old.wid));
end $$;

create or replace function mutirao.take_job(flow int, task text, instance bigint) returns setof mutirao.taken
language plpgsql security definer as $$
#variable_conflict use_column
declare
  at timestamptz := mutirao.now();
  picked mutirao.job;
begin
  if exists (select from mutirao.throttle h join mutirao.task t on t.id = h.task where t.flow = take_job.flow and t.name = take_job.task) then
    return query select * from mutirao.take_limited(flow, task, instance);
    return;
  end if;
  select j.* into picked from mutirao.job j join mutirao.task t on t.id = j.task
  where t.flow = take_job.flow and t.name = take_job.task and j.status = 'ready' and j.role is null and not j.by_clock and (take_job.instance is null or j.instance = take_job.instance)
  order by j.priority desc, j.id limit 1 for update of j skip locked;
  if not found then
    perform mutirao.task_ids(f.name, array[take_job.task]) from mutirao.flow f where f.id = take_job.flow;  -- refuses an unknown one
    return;
  end if;
  update mutirao.job j set status = 'running', attempt = nextval('mutirao.attempt_number'), worker = session_user, deadline_at = at + j.timeout,
    lease_until = coalesce(at + j.timeout, at + interval '15 minutes')
  where j.id = picked.id returning j.* into picked;
  if picked.watched and picked.id = any (mutirao.reach_running(array[picked.id])) then return; end if;
  return query select picked.id, picked.attempt, picked.instance, t.state, picked.lease_until
    from mutirao.trace t where t.instance = picked.instance and t.id = picked.cause;
end $$;

------------------------------------------------------------------------------------------------------------------- views

-- Older instances may have kept a value that is not of its attribute's type any more. They show null, or nobody could read the view.
create or replace function mutirao.shown_attributes(flow int, out name text, out type text, out "position" int, out is_mixed boolean) returns setof record
language sql stable as $$
  select a.name, a.type, a.position, a.type not in ('json', 'file') and exists (
    select from mutirao.version v join mutirao.attribute o on o.version = v.id where v.flow = f.id and o.name = a.name and o.type <> a.type)
  from mutirao.flow f join mutirao.attribute a on a.version = f.version where f.id = shown_attributes.flow
$$;

-- To change a view its lock is needed, for which whoever comes now waits while we wait for those who are reading: so never for long.
create or replace function mutirao.show_wed_flow(flow int) returns void
language plpgsql set lock_timeout = '50ms' as $$
declare
  f mutirao.flow;
  columns text;
  typed text;
  query text;
  is_new boolean;
  a record;
begin
  select * into strict f from mutirao.flow x where x.id = show_wed_flow.flow;
  is_new := to_regclass(format('%I.wed_flow', f.name)) is null;
  select string_agg(format(case when x.is_mixed then ', (mutirao.value_as(s.%1$I, %2$L) #>> ''{}'')::%3$s as %1$I' else ', s.%1$I' end, x.name, x.type, mutirao.sql_type(x.type)), '' order by x.position),
      coalesce(string_agg(format('%I %s', x.name, case when x.is_mixed then 'jsonb' else mutirao.sql_type(x.type) end), ', ' order by x.position), 'nothing int')
    into columns, typed
  from mutirao.shown_attributes(f.id) x;
  query := format($sql$
    view %I.wed_flow as
    select i.id as wid %s
    from (select id, state from mutirao.instance where flow = %s union all select id, state from mutirao.closed where flow = %s) i,
      lateral jsonb_to_record(i.state) as s(%s)$sql$, f.name, columns, f.id, f.id, typed);
  begin
    execute 'create or replace ' || query;
  exception when invalid_table_definition then
    -- An attribute has gone or changed its type.
    execute format('drop view %I.wed_flow', f.name);
    execute 'create ' || query;
    is_new := true;
  end;
  for a in select x.* from mutirao.attribute x where x.version = f.version loop
    execute format('alter view %I.wed_flow alter column %I %s', f.name, a.name,
      case when a.default_value is null then 'drop default' else format('set default %L::%s', case when a.type in ('json', 'file') then a.default_value::text else a.default_value #>> '{}' end, mutirao.sql_type(a.type)) end);
  end loop;
  if is_new then
    execute format('create trigger start instead of insert on %I.wed_flow for each row execute function mutirao.wed_flow_insert(%s)', f.name, f.id);
    execute format('create trigger finish instead of update on %I.wed_flow for each row execute function mutirao.wed_flow_update(%s)', f.name, f.id);
    execute format('create trigger keep instead of delete on %I.wed_flow for each row execute function mutirao.wed_flow_delete()', f.name);
    perform mutirao.grant_flow(f.name, g.role, g.level) from mutirao.granted g join pg_catalog.pg_roles r on r.rolname = g.role;
  end if;
end $$;

create or replace function mutirao.is_shown(flow int) returns boolean
language plpgsql as $$
begin
  perform mutirao.show_wed_flow(flow);
  return true;
exception when lock_not_available or dependent_objects_still_exist then
  return false;
end $$;
comment on function mutirao.is_shown(int) is 'Makes wed_flow as the newest version has it, unless somebody is reading it now, or has made a view of his own on it.';

create or replace function mutirao.columns_of(version int) returns text
language sql stable
return (select string_agg(format('%I %s %s', a.name, a.type, a.default_value), ', ' order by a.position) from mutirao.attribute a where a.version = columns_of.version);

-- At the end of the transaction that made a version.
create or replace function mutirao.show_version() returns trigger
language plpgsql security definer as $$
begin
  if new.number > 1 and mutirao.columns_of(new.id) is distinct from mutirao.columns_of((select v.id from mutirao.version v where v.flow = new.flow and v.number = new.number - 1))
    and not mutirao.is_shown(new.flow)
  then
    insert into mutirao.stale_view (version, flow) values (new.id, new.flow);
    perform pg_notify('mutirao', 'clock');
  end if;
  perform mutirao.define_limits(new.flow);  -- who claims waits for their rows, so not earlier than now
  return null;
end $$;

-- What could not be shown then. The row goes with the view it stands for; a newer one has a row of its own.
create or replace function mutirao.clock_views(room int, out done int, out next_at timestamptz)
language plpgsql as $$
declare
  stale mutirao.stale_view;
begin
  done := 0;
  -- Not always the same first, or one that is read for hours would keep all others waiting.
  for stale in select s.* from mutirao.stale_view s order by random() limit least(room, 3) for update skip locked loop
    next_at := mutirao.now() + interval '1 second';
    if mutirao.is_shown(stale.flow) then
      delete from mutirao.stale_view s where s.version = stale.version;
      done := 1;
      next_at := mutirao.now();
      exit;  -- the lock of the view ends with this turn: nobody must wait for it while we wait for another
    end if;
  end loop;
end $$;

-- Raised with every change of the views below: an upgrade then writes them anew where they are older. Columns are only ever added, at the end.
create or replace function mutirao.newest_face() returns int
language sql immutable return 2;

create or replace function mutirao.show_face(f mutirao.flow) returns void
language plpgsql as $$
begin
  execute replace(replace($sql$
    create schema if not exists {schema};
    create or replace view {schema}.wed_attr as
      select a.name as aname, a.default_value #>> '{}' as adv, a.type as atype, a.searchable
      from mutirao.attribute a join mutirao.flow f on f.version = a.version where f.id = {flow} order by a.position;
    create or replace view {schema}.wed_trig as
      select r.task as tgid, r.trigger_name as tgname, r.enabled, t.name as trname, r.condition_name as cname, coalesce(r.condition, r.depends::text) as cpred,
        t.name = '_FINAL' as cfinal, r.timeout, r.fires, r.retries, r.priority, r.wait, r.by_clock, r.at_once, r.per_second, r.per, r.each
      from mutirao.rule r join mutirao.flow f on f.version = r.version join mutirao.task t on t.id = r.task where f.id = {flow} order by r.position;
    create or replace view {schema}.wed_trace as
      select t.instance as wid, t.state, array(select n.name from unnest(t.fired) with ordinality x(id, o) join mutirao.task n on n.id = x.id order by x.o) as trf,
        coalesce(n.name, case when t.kind <> 'start' then '_' || upper(t.kind) end) as trw,
        case t.status when 'closed.completed' then 'F' when 'open.exception' then 'E' else 'R' end as status, t.at as tstmp
      from mutirao.trace t left join mutirao.task n on n.id = t.task
      where t.flow = {flow} and t.state is not null and (t.kind <> 'reach' or t.fired <> '{}');
    create or replace view {schema}.job_pool as
      select j.instance as wid, j.task as tgid, n.name as trname, j.worker as lckid, j.timeout, t.state as payload, j.id as job, j.status
      from mutirao.job j join mutirao.task n on n.id = j.task join mutirao.trace t on t.instance = j.instance and t.id = j.cause where j.flow = {flow};
    create or replace function {schema}.take(task text, instance bigint default null) returns setof mutirao.taken
      language sql as 'select * from mutirao.take_job({flow}, task, instance)';
    create or replace trigger define instead of insert or update on {schema}.wed_attr for each row execute function mutirao.wed_attr_write({flow});
    create or replace trigger remove instead of delete on {schema}.wed_attr for each row execute function mutirao.wed_attr_delete({flow});
    create or replace trigger compile after insert or update or delete on {schema}.wed_attr for each statement execute function mutirao.wed_attr_done({flow});
    create or replace trigger define instead of insert on {schema}.wed_trig for each row execute function mutirao.wed_trig_insert({flow});
    create or replace trigger change instead of update on {schema}.wed_trig for each row execute function mutirao.wed_trig_update({flow});
    create or replace trigger remove instead of delete on {schema}.wed_trig for each row execute function mutirao.wed_trig_delete({flow});
    create or replace trigger compile after insert or update or delete on {schema}.wed_trig for each statement execute function mutirao.wed_trig_done({flow});
    $sql$, '{schema}', quote_ident(f.name)), '{flow}', f.id::text);
  update mutirao.flow x set face = mutirao.newest_face() where x.id = f.id;
end $$;
comment on function mutirao.show_face(mutirao.flow) is 'Makes the schema of a flow and all its views but wed_flow, or brings them up to date.';

create or replace function mutirao.show_flow(flow int) returns void
language plpgsql as $$
declare
  f mutirao.flow;
begin
  select * into strict f from mutirao.flow x where x.id = show_flow.flow;
  if not exists (select from pg_catalog.pg_namespace n where n.nspname = f.name) then
    perform mutirao.show_face(f);
  end if;
  if (select v.number from mutirao.version v where v.id = f.version) = 1 then
    perform mutirao.show_wed_flow(f.id);  -- nobody else can see it yet
  end if;
end $$;
comment on function mutirao.show_flow(int) is 'Makes the schema and the views of a flow.';
