-- Change while running: how an open instance goes over to another version of its flow.
--
-- An instance goes by the version that it carries. It gets another one in mutirao.follow, and nowhere else: whoever writes to an
-- instance of a live flow that is behind lets it follow first (mutirao.catch_up), and clocks do so for those that nobody writes to
-- (12_time.sql). So it makes no difference who comes first.
--
-- What following does, in this order:
--   1. unclaimed jobs of tasks that the version has not, or has disabled, are removed, each with a row in the trace
--   2. the state loses the attributes that are gone, gets those that are new with their defaults, and is converted where a type is another
--   3. what the instance keeps beside its state follows: latest states, fired marks, which failures are exceptions
--   4. all conditions are looked at; what follows from that is settled as after any write

-------------------------------------------------------------------------------------------------------------------- values

create or replace function mutirao.value_as(value jsonb, type text) returns jsonb
language plpgsql stable security definer as $$
declare
  plain text := value #>> '{}';
begin
  if plain is null or type = 'json' then
    return value;
  elsif type = 'file' then
    return case jsonb_typeof(value) when 'object' then value end;
  end if;
  return case type
    when 'text' then to_jsonb(plain)
    when 'boolean' then to_jsonb(plain::boolean)
    when 'integer' then case when plain::numeric = trunc(plain::numeric) then to_jsonb(plain::numeric::bigint) end
    when 'number' then to_jsonb(plain::numeric)
    when 'date' then to_jsonb(plain::date)
    when 'timestamp' then to_jsonb(plain::timestamptz) end;
exception when data_exception then
  return null;
end $$;
comment on function mutirao.value_as(jsonb, text) is 'A value as one of another type, as PostgreSQL would read its text; SQL''s null where it does not fit.';

create or replace function mutirao.lens(old mutirao.version, new mutirao.version, out gone text[], out changed text[], out types text[])
language sql stable as $$
  select array(select jsonb_object_keys(old.defaults) except select jsonb_object_keys(new.defaults)), coalesce(array_agg(n.name), '{}'), coalesce(array_agg(n.type), '{}')
  from mutirao.attribute a join mutirao.attribute n on n.version = new.id and n.name = a.name and n.type <> a.type where a.version = old.id
$$;
comment on function mutirao.lens(mutirao.version, mutirao.version) is 'How the attributes of one version differ from those of another: those that are gone, and the new types of others.';

create or replace function mutirao.state_as(state jsonb, gone text[], defaults jsonb, changed text[], types text[]) returns jsonb
language sql stable
return (
  select defaults || (state - gone) || coalesce(jsonb_object_agg(c.name, coalesce(mutirao.value_as(state -> c.name, c.type), state -> c.name)), '{}')
  from unnest(changed, types) c(name, type) where state ? c.name);
comment on function mutirao.state_as(jsonb, text[], jsonb, text[], text[]) is
  'A state under another version. A value that does not fit its new type stays as it is: the look finds it, and the instance is an exception.';

create or replace function mutirao.change_as(change jsonb, old int, new int) returns jsonb
language sql stable
return (
  select coalesce(jsonb_object_agg(c.key, case when n.type = a.type then c.value else coalesce(mutirao.value_as(c.value, n.type), c.value) end), '{}')
  from jsonb_each(change) c left join mutirao.attribute a on a.version = old and a.name = c.key left join mutirao.attribute n on n.version = new and n.name = c.key
  where n.name is not null or a.name is null);
comment on function mutirao.change_as(jsonb, int, int) is 'A change that waits to be written, as it is under another version: without what that does not have.';

create or replace function mutirao.change_since(instance bigint, cause bigint, change jsonb, version int, out now jsonb, out without text[])
language plpgsql stable as $$
declare
  old int := (select t.version from mutirao.trace t where t.instance = change_since.instance and t.id = change_since.cause);
  mapping jsonb;
begin
  now := change;
  if old is null or old = version or jsonb_typeof(change) <> 'object' then return; end if;
  for mapping in
    select b.arguments -> 'attributes' from mutirao.trace t join mutirao.batch b on b.id = (t.note ->> 'batch')::bigint
    where t.instance = change_since.instance and t.id > change_since.cause and t.kind = 'migrate' order by t.id
  loop
    change := mutirao.renamed(change, mapping);
  end loop;
  now := mutirao.change_as(change, old, version);
  without := array(select jsonb_object_keys(change) except select jsonb_object_keys(now) order by 1);
end $$;
comment on function mutirao.change_since(bigint, bigint, jsonb, int) is
  'The change of a job as it is under the version that its instance has by now, and what of it is left out because that has no such attribute.';

-- A job may write by the version that fired it, however long ago. Only reached when its change did not fit: answers what is told of those
-- that it was tried for again.
create or replace function mutirao.finish_outdated(refused mutirao.verdict[], out tried bigint[], out told mutirao.settled[])
language plpgsql as $$
declare
  s mutirao.verdict;
  j mutirao.job;
  change record;
begin
  tried := '{}';
  told := '{}';
  foreach s in array refused loop
    select * into j from mutirao.job x where x.id = s.job;
    change := mutirao.change_since(s.instance, j.cause, s.change, s.version);
    continue when change.now = s.change;
    tried := tried || s.job;
    told := told || array(select f from mutirao.finish_round(
      array[row(1, 1, s.job, s.attempt, s.instance, s.task, j.cause, j.failures, change.now, null, s.writer, j.undoes)::mutirao.entry], 1, null) f);
    update mutirao.trace t set note = jsonb_build_object('without', change.without)
    where t.instance = s.instance and t.job = s.job and t.attempt = s.attempt and t.kind = 'finish' and change.without <> '{}';
  end loop;
end $$;

--------------------------------------------------------------------------------------------------------------- removed jobs

-- A parked job with a change is work that has been done: it waits for its chance. One that somebody is claiming at this moment is as
-- good as running.
create or replace function mutirao.remove_jobs(instances bigint[], v mutirao.version, writer text) returns void
language plpgsql as $$
declare
  gone bigint[];
begin
  select array_agg(x.id) into gone from (
    select j.id from mutirao.job j
    where j.instance = any (instances) and j.task = any (v.gone) and (j.status in ('ready', 'waiting', 'held', 'failed') or j.status = 'parked' and j.change is null)
    order by j.id for update skip locked) x;
  if gone is null then return; end if;
  with removed as (
    delete from mutirao.job j where j.id = any (gone) returning j.*),
  told as (
    select r.instance, array_agg(r.task) as tasks, array_agg(r.id) as jobs, count(*) filter (where r.status = 'parked')::int as parked from removed r group by 1),
  left_over as (
    update mutirao.instance i set
      pending = array(select p from unnest(i.pending) p where p <> all (t.tasks)),
      failed = array(select p from unnest(i.failed) p where p <> all (t.tasks)),
      fired = array(select p from unnest(i.fired) p where p <> all (t.tasks)),
      latest = i.latest - array(select n.name from mutirao.task n where n.id = any (t.tasks)),
      parked = i.parked - t.parked,
      reasons = mutirao.reasons_without(i.reasons, t.jobs),
      status = case when i.status = 'open.exception' and mutirao.reasons_without(i.reasons, t.jobs) is null then 'open.running' else i.status end
    from told t where i.id = t.instance
    returning i.id, i.status)
  insert into mutirao.trace (instance, id, flow, version, kind, job, task, cause, status, writer, note, at)
  select r.instance, nextval('mutirao.trace_id'), r.flow, v.id, 'removed', r.id, r.task, r.cause, r.left_as, writer, jsonb_build_object('version', v.number), mutirao.now()
  from (select r.*, i.status as left_as from removed r join left_over i on i.id = r.instance order by r.id) r;
end $$;
comment on function mutirao.remove_jobs(bigint[], mutirao.version, text) is 'Removes what nobody has claimed of tasks that the version does not have. The instances must be locked.';

-- A failure that the version handles is no exception, and one that it does not is.
create or replace function mutirao.failures_told(instance bigint, reasons jsonb, v mutirao.version) returns jsonb
language sql stable
return (
  select jsonb_agg(x.r order by x.o) from (
    select e.r, e.o from jsonb_array_elements(reasons) with ordinality e(r, o)
    where e.r ->> 'code' <> 'task_failed'
      or not exists (select from mutirao.job j where j.id = (e.r ->> 'job')::bigint and j.task = any (v.handled))
    union all
    select jsonb_build_object('code', 'task_failed', 'job', j.id, 'task', t.name, 'error', j.error ->> 'error'), 1000000 + j.id
    from mutirao.job j join mutirao.task t on t.id = j.task
    where j.instance = failures_told.instance and j.status = 'failed' and j.task <> all (v.handled)
      and not coalesce(reasons @> jsonb_build_array(jsonb_build_object('code', 'task_failed', 'job', j.id)), false)) x);

----------------------------------------------------------------------------------------------------------------- following

create or replace function mutirao.follow(instances bigint[], version int, writer text default 'clock') returns void
language plpgsql as $$
declare
  v mutirao.version;
  work mutirao.work[];
  looked mutirao.looked[];
  parked bigint[];
  some_wait boolean;
  troubled bigint[];
begin
  select * into strict v from mutirao.version x where x.id = follow.version;
  select array_agg(i.id) filter (where i.reasons is not null or i.failed <> '{}') into troubled from mutirao.instance i where i.id = any (instances);
  if v.gone <> '{}' then
    perform mutirao.remove_jobs(instances, v, writer);
  end if;
  update mutirao.job j set change = mutirao.change_as(j.change, i.version, v.id)
  from mutirao.instance i where i.id = any (instances) and i.parked > 0 and i.version <> v.id and j.instance = i.id and j.status = 'parked' and j.change is not null;
  with lens as materialized (
    select o.id, o.id <> v.id as is_other, o.named, o.waits, l.* from mutirao.version o cross join lateral mutirao.lens(o, v) l
    where o.id in (select i.version from mutirao.instance i where i.id = any (instances)))
  select array_agg(row(1, 'look', i.id, i.flow, v.id, null, null, null, null, null,
      case when not l.is_other then i.state when l.changed = '{}' then v.defaults || (i.state - l.gone) else mutirao.state_as(i.state, l.gone, v.defaults, l.changed, l.types) end,
      i.pending, i.failed, k.fired, i.reached,
      case when l.named <> v.named then mutirao.latest_as(i.id, i.latest, l.named, v.named) else i.latest end,
      i.pending || i.failed || k.fired, i.parked, case when i.failed = '{}' then i.reasons else mutirao.failures_told(i.id, i.reasons, v) end,
      i.hold, i.firings, i.priority, i.started_at, writer, null)::mutirao.work order by i.id),
    array_agg(i.id order by i.id) filter (where i.parked > 0 and i.hold is null),
    bool_or(v.waits <> '{}' or l.waits <> '{}')
    into work, parked, some_wait
  from mutirao.instance i join lens l on l.id = i.version
  cross join lateral (select case
      when not l.is_other or i.fired = '{}' and v.once = '{}' then i.fired
      else array(
        select t from unnest(v.once) t where t = any (i.fired || i.pending || i.failed) union
        select t from unnest(i.fired) t where t = any (v.gone)) end as fired offset 0) k
  where i.id = any (instances);
  if work is null then return; end if;

  looked := mutirao.look(work, array[v.id]);
  update mutirao.instance i set version = v.id, state = w.state, latest = w.latest, fired = w.fired, reasons = w.reasons,
    status = case when i.status not in ('open.running', 'open.exception') then i.status when w.reasons is null then 'open.running' else 'open.exception' end
  from unnest(work) w where i.id = w.instance;
  if exists (select from mutirao.stamp) then
    perform mutirao.note_order(work);
  end if;
  if v.searchable <> '{}' or exists (select from mutirao.search s where s.instance = any (instances)) then
    perform mutirao.make_searchable(instances);
  end if;
  if some_wait then
    perform mutirao.move_waits(instances);
  end if;
  -- Where nothing follows from the look, nothing is written about it.
  select array_agg(row(w.n, w.kind, w.instance, w.flow, w.version, w.job, w.task, w.attempt, w.cause, w.change, w.state, w.pending, w.failed, w.fired, w.reached,
      w.latest, w.held, w.parked, w.reasons, w.hold, w.firings, w.priority, w.started_at, w.writer, w.note)::mutirao.work),
    array_agg(row(w.final, w.fires, w.problem)::mutirao.looked)
    into work, looked
  from unnest(work, looked) w
  where w.hold is null and (w.fires <> '{}' or w.problem is not null or w.reasons @> '[{"code": "condition_failed"}]'
    or w.pending = '{}' and w.failed <@ v.handled and (w.final or v.ends = 'quiet' or not coalesce(w.reasons @> '[{"code": "nothing_fires"}]', false)));
  if work is not null then
    perform mutirao.settle(work, array[v.id], null, looked);
  end if;
  if troubled is not null then
    perform mutirao.show_exceptions(troubled);
  end if;
  if parked is not null then
    perform mutirao.finish_parked(parked);
  end if;
end $$;
comment on function mutirao.follow(bigint[], int, text) is 'Brings open instances of one flow to one of its versions. They must be locked.';

-- Whoever writes looks here first. While no flow has a new version this costs one look at an empty table.
create or replace function mutirao.catch_up(instances bigint[]) returns void
language plpgsql as $$
declare
  behind record;
begin
  for behind in
    select f.version, array_agg(i.id order by i.id) as instances from mutirao.instance i join mutirao.flow f on f.id = i.flow
    where i.id = any (catch_up.instances) and f.live and i.version <> f.version group by f.version
  loop
    perform mutirao.follow(behind.instances, behind.version);
  end loop;
end $$;
comment on function mutirao.catch_up(bigint[]) is 'Lets those follow that are behind the newest version of a live flow. They must be locked.';

-- A pinned flow has instances of many versions, so there a task is gone for some and not for others. Which jobs outlived their task is
-- kept from when their instance was migrated: few ran just then. Tasks are told by rules, since one that is younger than a version is
-- not in its `gone`.
create or replace function mutirao.keep_strays(instances bigint[], v mutirao.version) returns void
language sql as $$
  delete from mutirao.stray s where s.instance = any (instances);
  insert into mutirao.stray (job, instance)
  select j.id, j.instance from mutirao.job j join mutirao.flow f on f.id = j.flow
  where j.instance = any (instances) and j.task <> f.exception_task
    and not exists (select from mutirao.rule r where r.version = v.id and r.task = j.task and r.enabled);
$$;

create or replace function mutirao.sweep_strays(room int) returns int
language plpgsql as $$
declare
  locked bigint[];
  swept record;
  v mutirao.version;
  done int := 0;
begin
  delete from mutirao.stray s where s.job = any (array(
    select x.job from mutirao.stray x where not exists (select from mutirao.job j where j.id = x.job) order by x.job for update skip locked));
  locked := array(
    select i.id from mutirao.instance i where i.hold is distinct from 'cancelled' and i.id in (
      select s.instance from mutirao.stray s join mutirao.job j on j.id = s.job
      where j.status in ('ready', 'waiting', 'held') or j.status = 'parked' and j.change is null)
    order by i.id limit room for no key update skip locked);
  for swept in
    select i.version, array_agg(distinct i.id) as instances, array_agg(distinct j.task) as tasks
    from mutirao.instance i join mutirao.stray s on s.instance = i.id join mutirao.job j on j.id = s.job
    where i.id = any (locked) and j.status <> 'failed' group by i.version
  loop
    select * into v from mutirao.version x where x.id = swept.version;
    v.gone := swept.tasks;
    perform mutirao.remove_jobs(swept.instances, v, 'clock');
    perform mutirao.follow(swept.instances, v.id);
    perform mutirao.show_exceptions(swept.instances);
    done := done + (select count(*) from mutirao.stray s where s.instance = any (swept.instances) and not exists (select from mutirao.job j where j.id = s.job));
  end loop;
  return done;
end $$;
comment on function mutirao.sweep_strays(int) is 'Removes jobs that outlived their task in a migration, and that no worker has any more.';

-- A job of a task that is gone may become ready again after its instance has followed: its worker failed, vanished or gave it back.
-- And of many instances that are still behind, those with such a job go first, before a worker takes it.
create or replace function mutirao.sweep_gone(room int) returns int
language plpgsql as $$
declare
  found_ids bigint[];
  swept record;
  done int := 0;
begin
  select array_agg(x.instance) into found_ids from (
    select j.instance from mutirao.flow f join mutirao.version v on v.id = f.version and v.gone <> '{}' cross join unnest(v.gone) t(id)
    join mutirao.job j on j.task = t.id and j.status = 'ready' and j.role is null and not j.by_clock where f.live limit room) x;
  if found_ids is null then return 0; end if;
  for swept in
    select f.version, array_agg(q.id) as instances
    from (select i.id, i.flow from mutirao.instance i where i.id = any (found_ids) order by i.id for no key update skip locked) q
    join mutirao.flow f on f.id = q.flow group by f.version
  loop
    perform mutirao.follow(swept.instances, swept.version);
    done := done + cardinality(swept.instances);
  end loop;
  return done;
end $$;
comment on function mutirao.sweep_gone(int) is 'Removes jobs of tasks that are gone and that a worker could claim.';
