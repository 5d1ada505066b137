-- The order of two flows: once the task of one instance has gone before its counterpart of another, the other pairs of the two keep that order.
--
-- An instance has one stamp for an ordering, taken when its first listed task starts, and owes the listed tasks that it has not done. With a later stamp,
-- or none, a task waits for whoever owes its counterpart: never for an instance that has closed, nor for a task that fires once and has ended or is blocked.

-- A digest: the value may be long, and is not to be kept where nobody erases it. Equal values have equal ones, as PostgreSQL compares JSON: 1 is 1.0.
create or replace function mutirao.order_key(o mutirao.ordering, instance bigint) returns text
language sql stable
return case when o.attribute is null then '' else (
  select to_hex(jsonb_hash_extended(v.value, 0)) || to_hex(jsonb_hash_extended(v.value, 1))
  from mutirao.instance i cross join lateral (select i.state -> o.attribute) v(value) where i.id = order_key.instance and v.value <> 'null') end;

-- A row as it would wait, with the instance that it would wait for.
create or replace function mutirao.order_ahead(j mutirao.job, out wait mutirao.order_wait, out first bigint)
language plpgsql stable as $$
begin
  select j.id, j.instance, t.ordering, t.pair, t.side, k.key, coalesce(s.stamp, 9223372036854775807), w.instance
  into wait.job, wait.instance, wait.ordering, wait.pair, wait.side, wait.key, wait.stamp, first
  from mutirao.ordering_task t join mutirao.ordering o on o.id = t.ordering
  left join mutirao.stamp s on s.instance = j.instance and s.ordering = t.ordering
  cross join lateral (select coalesce(s.key, mutirao.order_key(o, j.instance)) as key) k
  cross join lateral (
    select x.instance from mutirao.owed x
    where x.ordering = t.ordering and x.pair = t.pair and x.side = 3 - t.side and x.key = k.key and x.stamp < coalesce(s.stamp, 9223372036854775807) and x.instance <> j.instance
    order by x.stamp limit 1) w
  where t.task = j.task limit 1;
end $$;

create or replace function mutirao.goes_before(j mutirao.job) returns bigint
language sql stable return (select a.first from mutirao.order_ahead(j) a);
comment on function mutirao.goes_before(mutirao.job) is 'The instance that a job has to let go first; null: none.';

-- The gate is held, and the job locked.
create or replace function mutirao.waits_in_order(j mutirao.job) returns boolean
language plpgsql as $$
declare
  a record;
begin
  select * into a from mutirao.order_ahead(j);
  if a.first is null then
    perform mutirao.take_stamp(j);
    return false;
  end if;
  insert into mutirao.order_wait select (a.wait).* on conflict (job) do update
    set ordering = excluded.ordering, pair = excluded.pair, side = excluded.side, key = excluded.key, stamp = excluded.stamp;
  update mutirao.job x set waits_for = a.first where x.id = j.id;
  return true;
end $$;
comment on function mutirao.waits_in_order(mutirao.job) is 'Lets a job wait for whoever goes first by an ordering, if there is one; or it takes its place.';

-- What it has begun, until that ends. And what may still come: nothing once it is cancelled or undone as a whole; not what fires once and has ended; nor what is blocked.
create or replace function mutirao.owes(i mutirao.instance) returns int[]
language plpgsql stable as $$
declare
  since bigint := case when i.hold is not null then (select u.since from mutirao.undoing u where u.instance = i.id) end;
  blocked int[] := '{}';
  w mutirao.work;
begin
  if i.hold = 'cancelled' or since = 0 then
    return i.pending;
  elsif since > 0 or i.failed <> '{}' or (select v.handled <> '{}' from mutirao.version v where v.id = i.version) then
    w := mutirao.work_of(i, null, null, null);
    if since > 0 then
      w := mutirao.marked_before(w, since, null);  -- what is being undone comes again
      i.fired := w.fired;
    end if;
    blocked := mutirao.blocked_tasks(w);
  end if;
  return i.pending || array(
    select r.task from mutirao.rule r
    where r.version = i.version and r.ordered and r.enabled and (r.fires = 'each' or r.task <> all (i.fired)) and r.task <> all (blocked));
end $$;
comment on function mutirao.owes(mutirao.instance) is 'The listed tasks, among others, that an instance has still to do, as far as anybody can tell.';

create or replace function mutirao.owe(instance bigint, tasks int[]) returns void
language plpgsql as $$
begin
  insert into mutirao.owed (ordering, pair, side, key, stamp, instance, task)
  select s.ordering, t.pair, t.side, s.key, s.stamp, s.instance, t.task
  from mutirao.stamp s join mutirao.ordering_task t on t.ordering = s.ordering where s.instance = owe.instance and t.task = any (tasks)
  on conflict do nothing;
end $$;

-- Somebody may be writing a stamp that is there, so it is not even tried to put another beside it.
create or replace function mutirao.take_stamp(j mutirao.job) returns void
language plpgsql as $$
declare
  i mutirao.instance;
begin
  select * into i from mutirao.instance x where x.id = j.instance;
  insert into mutirao.stamp (ordering, instance, key)
  select distinct o.id, j.instance, k.key from mutirao.ordering_task t join mutirao.ordering o on o.id = t.ordering cross join lateral mutirao.order_key(o, j.instance) k(key)
  where t.task = j.task and k.key is not null and not exists (select from mutirao.stamp s where s.instance = j.instance and s.ordering = o.id);
  perform mutirao.owe(j.instance, mutirao.owes(i));
  if cardinality(i.pending) > 1 then
    -- Another task of it may be waiting without a stamp, behind those that are behind it now.
    update mutirao.order_wait w set stamp = s.stamp from mutirao.stamp s where w.instance = j.instance and s.instance = w.instance and s.ordering = w.ordering and w.stamp <> s.stamp;
    perform mutirao.look_for_circle(w) from mutirao.job w where w.instance = j.instance and mutirao.may_wait(w) and w.id <> j.id;
  end if;
end $$;
comment on function mutirao.take_stamp(mutirao.job) is 'A listed task starts: its instance takes its place in the order, unless it has one.';

-- Something is not owed any more: those of the other side go on whose stamp is not after what is left. What is left over, a clock does.
create or replace function mutirao.let_order_on(ordering int, pair int, side int, key text, room int default 200) returns int
language plpgsql as $$
declare
  next bigint := (select o.stamp from mutirao.owed o
    where o.ordering = let_order_on.ordering and o.pair = let_order_on.pair and o.side = let_order_on.side and o.key = let_order_on.key order by o.stamp limit 1);
  free bigint[] := array(select w.job from mutirao.order_wait w
    where w.ordering = let_order_on.ordering and w.pair = let_order_on.pair and w.side = 3 - let_order_on.side and w.key = let_order_on.key and w.stamp <= coalesce(next, 9223372036854775807)
    order by w.stamp, w.job limit room);
  done int;
begin
  if free = '{}' then return 0; end if;
  done := mutirao.look_at_order(free);
  if cardinality(free) = room or done < cardinality(free) then
    insert into mutirao.order_left values (ordering, pair, side, key) on conflict do nothing;
    perform pg_notify('mutirao', 'clock');
  end if;
  return done;
end $$;

-- The gate is held, so nobody is waited for: jobs that somebody holds stay as they are.
create or replace function mutirao.look_at_order(jobs bigint[]) returns int
language plpgsql as $$
declare
  free bigint[] := array(select j.id from mutirao.job j where j.id = any (jobs) order by j.id for update skip locked);
  classes int[];
begin
  delete from mutirao.order_wait w where w.job = any (jobs) and not exists (select from mutirao.job j where j.id = w.job and j.id <> all (free));
  with waiting as (update mutirao.job j set waits_for = null where j.id = any (free) and j.gate = 'waits' returning j.class)
  select array_agg(distinct w.class) filter (where w.class is not null) into classes from waiting w;
  perform mutirao.admit_classes(classes) where classes is not null;
  perform mutirao.admit_ordered();
  return cardinality(free);
end $$;
comment on function mutirao.look_at_order(bigint[]) is 'Looks again at jobs that waited by an ordering. Answers how many.';

create or replace function mutirao.look_at_owed(instance bigint) returns void
language plpgsql as $$
declare
  i mutirao.instance;
  tasks int[];
  g record;
begin
  perform mutirao.lock_gate();
  select * into i from mutirao.instance x where x.id = look_at_owed.instance;
  tasks := mutirao.owes(i);
  for g in
    with gone as (delete from mutirao.owed o where o.instance = look_at_owed.instance and o.task <> all (tasks) returning o.ordering, o.pair, o.side, o.key)
    select distinct x.* from gone x order by 1, 2, 3
  loop
    perform mutirao.let_order_on(g.ordering, g.pair, g.side, g.key);
  end loop;
end $$;
comment on function mutirao.look_at_owed(bigint) is 'What an instance owes may be something else now, or nothing since it has closed: lets through whoever waited for the rest.';

-- A finished job lets others on by itself, but it may also be why another task can not come any more.
create or replace function mutirao.note_order(work mutirao.work[]) returns void
language plpgsql as $$
declare
  touched int;
begin
  update mutirao.stamp s set changes = s.changes + 1 from unnest(work) w join mutirao.version v on v.id = w.version
  where s.instance = w.instance and (w.kind <> 'finish' or v.handled <> '{}');
  -- Whoever waits without a stamp may have another key now.
  if exists (select from mutirao.ordering o where o.attribute is not null) then
    with moved as (
      update mutirao.job j set waits_for = null from mutirao.order_wait w join mutirao.ordering o on o.id = w.ordering
      where w.instance in (select x.instance from unnest(work) x) and j.id = w.job and w.stamp = 9223372036854775807 and w.key is distinct from mutirao.order_key(o, w.instance)
      returning j.class)
    select count(mutirao.touch_class(m.class)) into touched from moved m where m.class is not null;
  end if;
end $$;
comment on function mutirao.note_order(mutirao.work[]) is 'Something was written to these instances: what they owe, and whom they wait for, is looked at when that is committed.';

-- When the transaction commits that says so: like everything that lets others through.
create or replace function mutirao.stamp_changed() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform mutirao.lock_gate();
  -- Whoever dropped the ordering passed over what we had.
  delete from mutirao.stamp s where s.instance = new.instance and s.ordering = new.ordering
    and not (exists (select from mutirao.instance i where i.id = s.instance) and exists (select from mutirao.ordering o where o.id = s.ordering));
  perform mutirao.look_at_owed(new.instance);
  perform mutirao.owe(i.id, mutirao.owes(i)) from mutirao.instance i where i.id = new.instance;
  return null;
end $$;

drop trigger if exists stamp_changed on mutirao.stamp;
create constraint trigger stamp_changed after update on mutirao.stamp deferrable initially deferred
for each row execute function mutirao.stamp_changed();

create or replace function mutirao.let_orders_on(room int) returns int
language plpgsql as $$
declare
  g mutirao.order_left;
  done int := 0;
begin
  if not exists (select from mutirao.order_left) then return 0; end if;
  perform mutirao.lock_gate();
  for g in select * from mutirao.order_left limit 100 loop
    exit when done >= room;
    delete from mutirao.order_left l where (l.ordering, l.pair, l.side, l.key) = (g.ordering, g.pair, g.side, g.key);
    done := done + mutirao.let_order_on(g.ordering, g.pair, g.side, g.key, room - done);
  end loop;
  return done;
end $$;
comment on function mutirao.let_orders_on(int) is 'For clocks: lets on what was left over where very many waited for the same, or somebody held them.';

------------------------------------------------------------------------------------------------------------------ definitions

create or replace function mutirao.list_ordered(first text, second text) returns void
language plpgsql as $$
declare
  o mutirao.ordering;
begin
  select * into o from mutirao.ordering x where x.first = list_ordered.first and x.second = list_ordered.second;
  delete from mutirao.ordering_task t where t.ordering = o.id;
  insert into mutirao.ordering_task (ordering, pair, side, task)
  select o.id, p.n, s.side, t.id from jsonb_array_elements(o.pairs) with ordinality p(pair, n)
  cross join lateral (values (1, o.first, p.pair ->> 0), (2, o.second, p.pair ->> 1)) s(side, flow, task)
  join mutirao.flow f on f.name = s.flow join mutirao.task t on t.flow = f.id and t.name = s.task;
  perform mutirao.mark_ordered();
end $$;

create or replace function mutirao.mark_ordered() returns void
language plpgsql as $$
begin
  update mutirao.rule r set ordered = not r.ordered where r.ordered <> exists (select from mutirao.ordering_task t where t.task = r.task);
  perform mutirao.mark_gated();
end $$;
comment on function mutirao.mark_ordered() is 'Brings the rules up to date with what orderings list. It holds for jobs that fire from now on.';

create or replace function mutirao.forget_order() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform mutirao.lock_gate();
  -- That of an instance which somebody has goes when they are done.
  delete from mutirao.stamp s where s.ordering = old.id and s.instance = any (array(select x.instance from mutirao.stamp x where x.ordering = old.id for update skip locked));
  delete from mutirao.owed o where o.ordering = old.id;
  perform mutirao.look_at_order(array(select w.job from mutirao.order_wait w where w.ordering = old.id order by w.job limit 500));
  insert into mutirao.order_left select distinct w.ordering, w.pair, 3 - w.side, w.key from mutirao.order_wait w where w.ordering = old.id on conflict do nothing;
  return null;
end $$;

drop trigger if exists ordering_gone on mutirao.ordering;
create constraint trigger ordering_gone after delete on mutirao.ordering deferrable initially deferred
for each row execute function mutirao.forget_order();
