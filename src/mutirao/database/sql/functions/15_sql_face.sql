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
    if new.aname <> old.aname or new.atype <> old.atype then
      perform mutirao.refuse('flow_invalid', format('attribute "%s" keeps its name and type: add another one instead', old.aname));
    end if;
    update mutirao.attribute a set default_value = mutirao.attribute_default(new.aname, old.atype, new.adv), searchable = coalesce(new.searchable, false)
    where a.version = v and a.name = old.aname;
  end if;
  return new;
end $$;

create or replace function mutirao.refuse_trigger(task text) returns void
language sql as $$
  select mutirao.refuse('flow_invalid', format('%s: cpred is the condition, a timeout is positive, fires is each or once, retries are not negative, enabled is true or false', task))
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
    insert into mutirao.rule (version, task, position, condition, trigger_name, condition_name, enabled, timeout, fires, retries, priority)
    values (v, new.tgid, (select coalesce(max(r.position), 0) + 1 from mutirao.rule r where r.version = v), new.cpred, new.tgname, new.cname, new.enabled, new.timeout,
      coalesce(new.fires, 'each'), coalesce(new.retries, 3), coalesce(new.priority, 0));
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
      fires = new.fires, retries = new.retries, priority = new.priority
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
language plpgsql as $$
begin
  perform mutirao.refuse('flow_invalid', format('attribute "%s" stays: instances have it in their state and their trace', old.aname));
end $$;

-- Once a statement: errors of a condition come with its row, and the flow is compiled after the last one.
create or replace function mutirao.wed_attr_done() returns trigger
language plpgsql security definer as $$
begin
  perform mutirao.compile(f.version), mutirao.show_wed_flow(f.id) from mutirao.flow f where f.id = tg_argv[0]::int;
  return null;
end $$;

create or replace function mutirao.wed_trig_done() returns trigger
language plpgsql security definer as $$
begin
  perform mutirao.compile(f.version), mutirao.define_limits(f.id) from mutirao.flow f where f.id = tg_argv[0]::int;
  return null;
end $$;

---------------------------------------------------------------------------------------------------------------- instances

create or replace function mutirao.wed_flow_insert() returns trigger
language plpgsql security definer as $$
begin
  if new.wid is not null then
    perform mutirao.refuse('wrong_call', 'wid is given by the engine: leave it out');
  end if;
  new.wid := (select mutirao.start_instances(f.name, array[to_jsonb(new) - 'wid'], 0, session_user::text) from mutirao.flow f where f.id = tg_argv[0]::int);
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
  got mutirao.settled;
begin
  select j.* into picked from mutirao.job j join mutirao.task t on t.id = j.task
  where t.flow = take_job.flow and t.name = take_job.task and j.status = 'ready' and (take_job.instance is null or j.instance = take_job.instance)
  order by j.priority desc, j.id limit 1 for update of j skip locked;
  if not found then
    perform mutirao.task_ids(f.name, array[take_job.task]) from mutirao.flow f where f.id = take_job.flow;  -- refuses an unknown one
    return;
  end if;
  if mutirao.limited(array[picked.task]) <> '{}' then
    select c.* into got from mutirao.claim_limited(session_user, picked.task, 1, interval '15 minutes', case when take_job.instance is not null then picked.id end) c;
    return query select j.id, j.attempt, j.instance, got.state, j.lease_until from mutirao.job j where j.id = got.job;
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

create or replace function mutirao.show_wed_flow(flow int) returns void
language plpgsql as $$
declare
  f mutirao.flow;
  columns text;
  typed text;
  query text;
  a record;
begin
  select * into strict f from mutirao.flow x where x.id = show_wed_flow.flow;
  select string_agg(format(', s.%I', x.name), '' order by x.position) into columns from mutirao.attribute x where x.version = f.version;
  typed := mutirao.record_sql(f.version);
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
  end;
  for a in select x.* from mutirao.attribute x where x.version = f.version loop
    execute format('alter view %I.wed_flow alter column %I %s', f.name, a.name,
      case when a.default_value is null then 'drop default' else format('set default %L::%s', case a.type when 'json' then a.default_value::text else a.default_value #>> '{}' end, mutirao.sql_type(a.type)) end);
  end loop;
  execute format('create or replace trigger start instead of insert on %I.wed_flow for each row execute function mutirao.wed_flow_insert(%s)', f.name, f.id);
  execute format('create or replace trigger finish instead of update on %I.wed_flow for each row execute function mutirao.wed_flow_update(%s)', f.name, f.id);
  execute format('create or replace trigger keep instead of delete on %I.wed_flow for each row execute function mutirao.wed_flow_delete()', f.name);
  perform mutirao.grant_flow(f.name, g.role, g.level) from mutirao.granted g join pg_catalog.pg_roles r on r.rolname = g.role;
end $$;

create or replace function mutirao.show_flow(flow int) returns void
language plpgsql as $$
declare
  f mutirao.flow;
begin
  select * into strict f from mutirao.flow x where x.id = show_flow.flow;
  if not exists (select from pg_catalog.pg_namespace n where n.nspname = f.name) then
    execute replace(replace($sql$
      create schema {schema};
      create view {schema}.wed_attr as
        select a.name as aname, a.default_value #>> '{}' as adv, a.type as atype, a.searchable
        from mutirao.attribute a join mutirao.flow f on f.version = a.version where f.id = {flow} order by a.position;
      create view {schema}.wed_trig as
        select r.task as tgid, r.trigger_name as tgname, r.enabled, t.name as trname, r.condition_name as cname, coalesce(r.condition, r.depends::text) as cpred,
          t.name = '_FINAL' as cfinal, r.timeout, r.fires, r.retries, r.priority
        from mutirao.rule r join mutirao.flow f on f.version = r.version join mutirao.task t on t.id = r.task where f.id = {flow} order by r.position;
      create view {schema}.wed_trace as
        select t.instance as wid, t.state, array(select n.name from unnest(t.fired) with ordinality x(id, o) join mutirao.task n on n.id = x.id order by x.o) as trf,
          coalesce(n.name, case when t.kind <> 'start' then '_' || upper(t.kind) end) as trw,
          case t.status when 'closed.completed' then 'F' when 'open.exception' then 'E' else 'R' end as status, t.at as tstmp
        from mutirao.trace t left join mutirao.task n on n.id = t.task
        where t.flow = {flow} and t.state is not null and (t.kind <> 'reach' or t.fired <> '{}');
      create view {schema}.job_pool as
        select j.instance as wid, j.task as tgid, n.name as trname, j.worker as lckid, j.timeout, t.state as payload, j.id as job, j.status
        from mutirao.job j join mutirao.task n on n.id = j.task join mutirao.trace t on t.instance = j.instance and t.id = j.cause where j.flow = {flow};
      create function {schema}.take(task text, instance bigint default null) returns setof mutirao.taken
        language sql as 'select * from mutirao.take_job({flow}, task, instance)';
      create trigger define instead of insert or update on {schema}.wed_attr for each row execute function mutirao.wed_attr_write({flow});
      create trigger keep instead of delete on {schema}.wed_attr for each row execute function mutirao.wed_attr_delete();
      create trigger compile after insert or update on {schema}.wed_attr for each statement execute function mutirao.wed_attr_done({flow});
      create trigger define instead of insert on {schema}.wed_trig for each row execute function mutirao.wed_trig_insert({flow});
      create trigger change instead of update on {schema}.wed_trig for each row execute function mutirao.wed_trig_update({flow});
      create trigger remove instead of delete on {schema}.wed_trig for each row execute function mutirao.wed_trig_delete({flow});
      create trigger compile after insert or update or delete on {schema}.wed_trig for each statement execute function mutirao.wed_trig_done({flow});
      $sql$, '{schema}', quote_ident(f.name)), '{flow}', f.id::text);
  end if;
  perform mutirao.show_wed_flow(f.id);
end $$;
comment on function mutirao.show_flow(int) is 'Makes, or brings up to date, the schema and the views of a flow.';
