-- Which instances the filter of a batch chooses.

create or replace function mutirao.refuse_filter(why text) returns void
language sql as $$ select mutirao.refuse('wrong_call', 'filter: ' || why) $$;

create or replace function mutirao.check_filter(filter jsonb) returns int
language plpgsql as $$
declare
  keys text[] := '{flow,key,status,version,not_version,started_before,started_after,task,error,exception,ids,where}';
  f record;
  flow_id int;
  odd text;
begin
  if jsonb_typeof(filter) is distinct from 'object' then
    perform mutirao.refuse_filter(format('it is a JSON object such as {"flow": "travel", "status": "open.exception"}: it cannot be %s', left(filter::text, 100)));
  end if;
  select k into odd from jsonb_object_keys(filter) k where k <> all (keys) limit 1;
  if odd is not null then
    perform mutirao.refuse_filter(format('there is no "%s": it may say %s', odd, array_to_string(keys, ', ')));
  end if;
  begin
    select * into f from jsonb_to_record(jsonb_strip_nulls(filter)) as x(
      flow text, key text, status text, version int, not_version int, started_before timestamptz, started_after timestamptz, task text, error text, exception text, ids bigint[], "where" text);
  exception when data_exception then
    perform mutirao.refuse_filter(sqlerrm);
  end;
  if f.flow is null and f.ids is null then
    perform mutirao.refuse_filter('it must name a flow, or instances by their ids');
  elsif f.flow is null and (num_nonnulls(f.version, f.not_version) > 0 or num_nonnulls(f.key, f.task, f."where") > 0) then
    perform mutirao.refuse_filter('key, version, task and where belong to a flow: name it');
  elsif cardinality(f.ids) > 10000 then
    perform mutirao.refuse_filter(format('it names %s instances; at most 10000 can be named, more are chosen by other means', cardinality(f.ids)));
  elsif f.status is not null and not exists (select from unnest(enum_range(null::mutirao.instance_status)) s where starts_with(s::text, f.status)) then
    perform mutirao.refuse_filter(format('there is no status "%s"; an instance is %s', f.status, array_to_string(enum_range(null::mutirao.instance_status), ', ')));
  elsif f.exception <> all (mutirao.exception_codes()) then
    perform mutirao.refuse_filter(format('there is no exception "%s"; there are %s', f.exception, array_to_string(mutirao.exception_codes(), ', ')));
  end if;
  if f.flow is not null then
    select x.id into flow_id from mutirao.flow x where x.name = f.flow;
    if not found then
      perform mutirao.refuse_flow(f.flow);
    elsif f.task is not null then
      perform mutirao.task_ids(f.flow, array[f.task]);
    end if;
    if f.version is not null and not exists (select from mutirao.version v where v.flow = flow_id and v.number = f.version) then
      perform mutirao.refuse('unknown_version', format('flow "%s" has no version %s; its newest is %s', f.flow, f.version,
        (select max(v.number) from mutirao.version v where v.flow = flow_id)));
    end if;
  end if;
  select n::text into odd from unnest(f.ids) n
  where not exists (select from mutirao.instance i where i.id = n) and not exists (select from mutirao.closed c where c.id = n) limit 1;
  if odd is not null then
    perform mutirao.refuse('unknown_instance', format('there is no instance %s', odd));
  end if;
  return flow_id;
end $$;
comment on function mutirao.check_filter(jsonb) is 'Refuses a filter that makes no sense; answers the flow it names.';

create or replace function mutirao.filter_version(b mutirao.batch) returns int
language sql stable
return (select v.id from mutirao.flow f join mutirao.version v on v.flow = f.id
  where f.id = b.flow and case when b.filter ->> 'version' is null then v.id = f.version else v.number = (b.filter ->> 'version')::int end);
comment on function mutirao.filter_version(mutirao.batch) is 'The version whose attributes the `where` of a filter names: the one that the filter chooses, or the newest.';

-- Where a task has the same condition, its function serves. Otherwise it gets a name of its own, and goes when the batch ends: texts typed
-- once are not to stay for ever.
create or replace function mutirao.compile_where(b mutirao.batch) returns mutirao.condition
language plpgsql as $$
declare
  known oid[] := array(select p.oid from pg_catalog.pg_proc p where p.pronamespace = 'mutirao_rule'::regnamespace);
  own text := 'batch_' || coalesce(b.id::text, 'preview');
  n record;
  c mutirao.condition;
begin
  if b.filter ->> 'where' is null then return null; end if;
  n := mutirao.condition_names(mutirao.filter_version(b));
  c := mutirao.condition_function('filter, where', b.filter ->> 'where', n.names, n.types);
  if to_regproc(c.function)::oid <> all (known) and not exists (select from mutirao.rule r where r.function = c.function) then
    execute format('alter function %s rename to %I', to_regproc(c.function)::oid::regprocedure, own);
    c.function := 'mutirao_rule.' || own;
  end if;
  return c;
end $$;
comment on function mutirao.compile_where(mutirao.batch) is 'Passes the `where` of a filter through the gate that every condition passes.';

create or replace function mutirao.drop_where(b mutirao.batch) returns void
language plpgsql as $$
begin
  if b.function like 'mutirao\_rule.batch\_%' then
    execute format('drop function if exists %s', b.function);
  end if;
end $$;

-- What a filter says besides `where`. It chooses among instances given by number, so its plan is the same whatever it says.
create or replace function mutirao.fit_plainly(b mutirao.batch, acts_on text, instances bigint[]) returns bigint[]
language plpgsql stable as $$
declare
  f record;
begin
  select x.*, (select v.id from mutirao.version v where v.flow = b.flow and v.number = x.version) as version_id,
      (select v.id from mutirao.version v where v.flow = b.flow and v.number = x.not_version) as not_version_id,
      (select t.id from mutirao.task t where t.flow = b.flow and t.name = x.task) as task_id into f
  from jsonb_to_record(b.filter) as x(key text, status text, version int, not_version int, started_before timestamptz, started_after timestamptz, task text, error text, exception text, ids bigint[]);
  return array(
    select i.id from (
      select x.id, x.flow, x.version, x.status, x.started_at from mutirao.instance x
      where acts_on = 'open' and x.id = any (instances) and x.hold is distinct from 'cancelled'
      union all
      select x.id, x.flow, x.version, x.status, x.started_at from mutirao.closed x where acts_on = 'closed' and x.id = any (instances)) i
    where (b.flow is null or i.flow = b.flow) and (f.version is null or i.version = f.version_id) and (f.not_version is null or i.version <> f.not_version_id)
      and (f.status is null or starts_with(i.status::text, f.status))
      and (f.started_before is null or i.started_at < f.started_before) and (f.started_after is null or i.started_at > f.started_after)
      and (f.ids is null or i.id = any (f.ids))
      and (f.exception is null or exists (
        select from mutirao.instance x where x.id = i.id and x.reasons @> jsonb_build_array(jsonb_build_object('code', f.exception))))
      and (f.key is null or i.id = (select k.instance from mutirao.key k where k.flow = b.flow and k.key = f.key))
      and (f.task is null and f.error is null and (b.kind not in ('retry', 'skip') or b.kind = 'skip' and f.exception = 'condition_failed') or exists (
        select from mutirao.job j where j.instance = i.id and j.status = 'failed' and (f.task is null or j.task = f.task_id)
          and (f.error is null or j.error ->> 'code' = f.error or starts_with(j.error ->> 'error', f.error))))
    order by i.id);
end $$;

-- A `where` can raise on some state, as any condition can: those instances are told apart, one by one.
create or replace function mutirao.fit_filter(b mutirao.batch, acts_on text, instances bigint[], out fitting bigint[], out raising bigint[])
language plpgsql stable as $$
declare
  version int := mutirao.filter_version(b);
  ask text;
  one bigint;
  yes boolean;
begin
  fitting := mutirao.fit_plainly(b, acts_on, instances);
  raising := '{}';
  if b.function is null or fitting = '{}' then return; end if;
  instances := fitting;
  ask := format('select x.id from (select i.id, i.state, %s as latest from mutirao.%I i where i.id = any ($1)) x, lateral jsonb_to_record(x.state) as s(%s) where %s order by x.id',
    case when exists (select from unnest(b.names) n where n like 'task\_%') then format('mutirao.latest_from(i.id, i.latest, %L::int[])', array(
      select t.id from mutirao.task t where t.flow = b.flow and 'task_' || t.name = any (b.names))) else 'null::jsonb' end,
    case acts_on when 'open' then 'instance' else acts_on end, mutirao.record_sql(version), mutirao.condition_sql(b.function, b.names));
  begin
    execute format('select array(%s)', ask) into fitting using instances;
  exception when data_exception or program_limit_exceeded then
    fitting := '{}';
    foreach one in array instances loop
      begin
        execute format('select exists (%s)', ask) into yes using array[one];
        fitting := case when yes then fitting || one else fitting end;
      exception when data_exception or program_limit_exceeded then
        raising := raising || one;
      end;
    end loop;
  end;
end $$;
comment on function mutirao.fit_filter(mutirao.batch, text, bigint[]) is 'Which of these instances the filter of a batch chooses, and on which its `where` raises.';

create or replace function mutirao.next_instances(b mutirao.batch, acts_on text, room int) returns bigint[]
language plpgsql stable as $$
begin
  if b.filter ->> 'ids' is not null then
    return array(select distinct n.id::bigint as id from jsonb_array_elements_text(b.filter -> 'ids') n(id) where n.id::bigint > b.after order by id limit room);
  elsif b.filter ->> 'key' is not null then
    return array(select k.instance from mutirao.key k where k.flow = b.flow and k.key = b.filter ->> 'key' and k.instance > b.after);
  elsif acts_on = 'open' then
    return array(select i.id from mutirao.instance i where i.id > b.after and i.id <= b.bound order by i.id limit room);
  end if;
  return array(select c.id from mutirao.closed c where c.id > b.after and c.id <= b.bound order by c.id limit room);
end $$;
comment on function mutirao.next_instances(mutirao.batch, text, int) is 'The instances after the cursor, whether they fit or not: so a step is short even where few do.';

create or replace function mutirao.count_fitting(b mutirao.batch, acts_on text, patience interval default null, out total bigint, out is_exact boolean)
language plpgsql stable as $$
declare
  begun constant timestamptz := mutirao.stopwatch();
  room constant int := case when patience is null then 10000 else 1000 end;
  of_flow constant boolean := acts_on = 'open' and b.flow is not null and coalesce(b.filter ->> 'ids', b.filter ->> 'key') is null;
  next bigint[];
  fit record;
begin
  total := 0;
  b.after := 0;
  loop
    if of_flow then  -- those of other flows are left out where they are read
      select max(i.id), coalesce(array_agg(i.id order by i.id) filter (where i.flow = b.flow), '{}') into b.after, next
      from (select x.id, x.flow from mutirao.instance x where x.id > b.after and x.id <= b.bound order by x.id limit room) i;
    else
      next := mutirao.next_instances(b, acts_on, room);
      b.after := next[cardinality(next)];
    end if;
    is_exact := b.after is null;
    exit when is_exact;
    fit := mutirao.fit_filter(b, acts_on, next);
    total := total + cardinality(fit.fitting) + cardinality(fit.raising);
    exit when mutirao.stopwatch() > begun + patience;
  end loop;
end $$;
comment on function mutirao.count_fitting(mutirao.batch, text, interval) is 'How many instances fit a filter; or, if that takes longer than somebody has patience, how many of those that were looked at.';
