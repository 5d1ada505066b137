-- Mutual exclusion: jobs of conflicting classes do not run at the same time. And the gate, which whatever has a class or is ordered must pass.
--
-- A gated job is not ready when it fires: it is synchronizing until it is let through, and holds its class from then until it ends or is to be tried
-- again later. A work item is ready all the same; whoever selects it takes the class, or is refused. A trigger on the jobs keeps this, wherever they come from.
--
-- Who lets through holds one lock of the whole database. It is taken last, when everything else of a transaction is done, by a trigger that waits for the
-- commit; and whoever has it waits for nobody. So there is no circle of locks. Whatever changes a gated job lets others through when it commits.

-- A class that conflicts with none needs nobody's leave. Whoever gives it conflicts takes back what has not begun.
create or replace function mutirao.is_exclusive(class int) returns boolean
language sql stable
return exists (select from mutirao.class c where c.id = is_exclusive.class and c.conflicts <> '{}');

create or replace function mutirao.gate_job() returns trigger
language plpgsql as $$
declare
  begins_to_wait boolean;
  lets_go boolean;
begin
  if new.class is null and new.ordered is not true then
    new.waits_for := null;  -- it was listed, and has become a task that is not
    return new;
  end if;
  new.gate_at := coalesce(new.gate_at, new.created_at - new.priority * interval '1 minute');
  if new.role is not null then
    new.gate := case when new.status = 'running' then 'holds' end;
  elsif new.status in ('ready', 'running') then
    if new.gate is distinct from 'holds' then
      new.waits_for := null;
      -- One that is granted to a worker as it fires has begun: its class excluded nobody then.
      if new.status = 'running' or new.ordered is not true and not new.watched and not mutirao.is_exclusive(new.class) then
        new.gate := 'holds';
      else
        new.gate := 'waits';
        new.status := 'waiting';
        new.due_at := 'infinity';
      end if;
    end if;
  elsif new.status <> 'waiting' or new.due_at is distinct from 'infinity' then
    new.gate := null;
    new.waits_for := null;
  end if;
  begins_to_wait := new.gate = 'waits' and (tg_op = 'INSERT' or old.gate is distinct from 'waits' or old.class is distinct from new.class);
  lets_go := tg_op = 'UPDATE' and old.gate = 'holds' and new.gate is distinct from 'holds';
  if new.class is not null and (begins_to_wait or lets_go) then
    perform mutirao.touch_class(new.class);
  end if;
  return new;
end $$;
comment on function mutirao.gate_job() is 'A gated job that would be ready waits until it is let through.';

-- Whoever changes a job's status says when it is due; only a claim does not, which changes nothing here and is not to be slowed.
create or replace trigger gate before insert or update of due_at, class, ordered on mutirao.job
for each row when (new.class is not null or new.ordered or new.waits_for is not null) execute function mutirao.gate_job();

create or replace function mutirao.free_gate() returns trigger
language plpgsql as $$
begin
  perform mutirao.touch_class(old.class);
  return coalesce(new, old);
end $$;

create or replace trigger gate_free after delete on mutirao.job for each row when (old.class is not null) execute function mutirao.free_gate();
create or replace trigger gate_leave before update of class on mutirao.job
for each row when (old.class is not null and old.class is distinct from new.class) execute function mutirao.free_gate();

-- What a transaction has touched is known to itself alone: the classes, which are then looked at together.
create or replace function mutirao.touch_class(class int) returns void
language plpgsql as $$
declare
  touched text := coalesce(current_setting('mutirao.touched', true), '');
begin
  if strpos(touched || ' ', format(' %s ', class)) = 0 then
    perform set_config('mutirao.touched', format('%s %s', touched, class), true);
  end if;
end $$;

create or replace function mutirao.admit_touched() returns void
language plpgsql as $$
declare
  touched text := coalesce(current_setting('mutirao.touched', true), '');
begin
  if touched = '' then return; end if;
  perform set_config('mutirao.touched', '', true);
  perform mutirao.admit_classes(string_to_array(substr(touched, 2), ' ')::int[]);
end $$;

create or replace function mutirao.gate_touched() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  j mutirao.job := case when tg_op = 'DELETE' then old else new end;
begin
  if old.waits_for is not null then
    perform mutirao.lock_gate();
    delete from mutirao.order_wait w where w.job = j.id and not exists (select from mutirao.job x where x.id = j.id and x.waits_for is not null);
  end if;
  if j.ordered and tg_op = 'DELETE' then
    perform mutirao.look_at_owed(j.instance);
  end if;
  perform mutirao.admit_touched();
  if j.gate = 'waits' and j.class is null and exists (select from mutirao.job x where x.id = j.id and x.gate = 'waits' and x.waits_for is null) then
    perform mutirao.admit_ordered();
  end if;
  if (tg_op = 'INSERT' or old.gate is distinct from 'waits' or old.waits_for is distinct from new.waits_for)
    and exists (select from mutirao.job x where x.id = j.id and (mutirao.may_wait(x) or x.status = 'parked')) then
    perform mutirao.lock_gate();
    perform mutirao.look_for_circle(j);
  end if;
  if exists (select from mutirao.wait_circle c where c.job = j.id) then
    perform mutirao.lock_gate();
    perform mutirao.look_at_circle(j.id);
  end if;
  return null;
end $$;

drop trigger if exists gate_begin on mutirao.job;
create constraint trigger gate_begin after insert on mutirao.job deferrable initially deferred
for each row when ((new.gate = 'waits' or new.role is not null) and (new.class is not null or new.ordered)) execute function mutirao.gate_touched();
drop trigger if exists gate_change on mutirao.job;
create constraint trigger gate_change after update of due_at, gate, waits_for, class, ordered on mutirao.job deferrable initially deferred
for each row when ((new.class is not null or new.ordered or old.waits_for is not null)
  and (old.gate is distinct from new.gate and new.gate is distinct from 'holds' or old.waits_for is distinct from new.waits_for or old.class is distinct from new.class
    or new.role is not null and old.status = 'held' and new.status = 'ready'))
execute function mutirao.gate_touched();
drop trigger if exists gate_end on mutirao.job;
create constraint trigger gate_end after delete on mutirao.job deferrable initially deferred
for each row when (old.class is not null or old.ordered) execute function mutirao.gate_touched();
drop trigger if exists gate_left on mutirao.job;
create constraint trigger gate_left after update of class on mutirao.job deferrable initially deferred
for each row when (old.class is not null and old.class is distinct from new.class) execute function mutirao.gate_touched();

-- Whoever sees the jobs as they were before the last one was let through would let another one through beside it.
create or replace function mutirao.lock_gate() returns void
language plpgsql as $$
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    perform mutirao.refuse('wrong_call', format('jobs that have a class or are ordered are let through in transactions that are read committed: this one is %s',
      current_setting('transaction_isolation')));
  end if;
  perform pg_advisory_xact_lock(hashtextextended('mutirao.gate', 0));
end $$;
comment on function mutirao.lock_gate() is
  'Taken last of all locks, by whoever lets jobs through: whatever others may have locked is passed over from then on, and the tables of the orderings are written to.';

----------------------------------------------------------------------------------------------------------------- letting through

-- Whoever holds the gate has locked these jobs, and nothing else: where somebody waits for one to be ready, a clock makes it so, since that takes its instance.
create or replace function mutirao.open_gate(jobs bigint[]) returns void
language plpgsql as $$
declare
  flows int[];
  is_watched boolean;
  by_clock bigint[];
begin
  with through as (
    update mutirao.job j set gate = 'holds', status = case when j.watched then j.status else 'ready' end, due_at = case when j.watched then j.due_at end,
      ready_at = mutirao.now(), waits_for = null
    where j.id = any (jobs) returning j.id, j.flow, j.watched, j.by_clock)
  select array_agg(distinct t.flow), bool_or(t.watched), array_agg(t.id) filter (where t.by_clock and not t.watched) into flows, is_watched, by_clock from through t;
  perform mutirao.look_at_circle(c.job) from mutirao.wait_circle c where c.job = any (jobs);
  if by_clock is not null then
    perform mutirao.ask_children(by_clock);
  end if;
  if is_watched then
    perform pg_notify('mutirao', 'clock');
  end if;
  if flows is not null then
    perform mutirao.wake(flows);
  end if;
end $$;

-- Whoever has such a row may be waiting for us; a clock looks after it in any case.
create or replace function mutirao.ask_children(jobs bigint[]) returns void
language sql as $$
  update mutirao.child c set due_at = mutirao.now() where c.job in (select x.job from mutirao.child x where x.job = any (jobs) for update skip locked)
$$;

create or replace function mutirao.make_ready(room int) returns int
language plpgsql as $$
declare
  j mutirao.job;
  done int := 0;
begin
  for j in select x.* from mutirao.job x where x.gate = 'holds' and x.status = 'waiting' and x.due_at = 'infinity' order by x.id limit room loop
    perform from mutirao.instance i where i.id = j.instance for no key update skip locked;
    continue when not found;
    perform from mutirao.job x where x.id = j.id and x.gate = 'holds' and x.status = 'waiting' for update skip locked;
    continue when not found;
    update mutirao.job x set gate = case when x.class is not null or x.ordered then x.gate end, status = 'ready', due_at = null, ready_at = mutirao.now() where x.id = j.id;
    perform mutirao.ready_again(array[j.flow], array[j.id]);
    perform mutirao.ask_children(array[j.id]) where j.by_clock;
    done := done + 1;
  end loop;
  return done;
end $$;
comment on function mutirao.make_ready(int) is 'Jobs that were let through, and somebody waits for them to be ready.';

create or replace function mutirao.let_class_through(c mutirao.class, room int, among bigint[] default null) returns int
language plpgsql as $$
declare
  is_alone boolean := c.id = any (c.conflicts);
  j mutirao.job;
  through bigint[] := '{}';
begin
  for j in
    select x.* from mutirao.job x where x.class = c.id and x.gate = 'waits' and x.waits_for is null and (among is null or x.instance = any (among))
    order by x.gate_at, x.id limit room for update skip locked
  loop
    continue when j.ordered is true and mutirao.waits_in_order(j);
    through := through || j.id;
    exit when is_alone;
  end loop;
  perform mutirao.open_gate(through);
  return cardinality(through);
end $$;

comment on function mutirao.let_class_through(mutirao.class, int, bigint[]) is 'Lets jobs of a class through, in the order of who waits longest; among: only of these instances.';

create or replace function mutirao.firm_since() returns timestamptz
language sql stable
return mutirao.now() - interval '30 seconds';
comment on function mutirao.firm_since() is 'Whoever has been waiting since then lets nobody past with whom it conflicts.';

create or replace function mutirao.below_holders(classes int[]) returns bigint[]
language sql stable
return array(
  with recursive below(instance) as (
    select c.instance from mutirao.job h join mutirao.child c on c.job = h.id where h.class = any (classes) and h.gate = 'holds' and h.by_clock and c.status is null
    union
    select c.instance from below b join mutirao.child c on c.parent = b.instance where c.status is null)
  select b.instance from below b where b.instance is not null);
comment on function mutirao.below_holders(int[]) is 'The instances that do the work of jobs which hold one of these classes.';

create or replace function mutirao.excluder(j mutirao.job, out job bigint, out instance bigint, out task text, out class text, out holds boolean)
language sql stable as $$
  select x.id, x.instance, t.name, c.name, x.gate = 'holds' from mutirao.class mine join mutirao.class c on c.id = any (mine.conflicts)
  cross join lateral (
    (select h.* from mutirao.job h where h.class = c.id and h.gate = 'holds' and h.id <> j.id order by h.id limit 1)
    union all
    (select w.* from mutirao.job w where w.class = c.id and w.gate = 'waits' and w.waits_for is null
       and w.gate_at < mutirao.firm_since() and (w.gate_at, w.id) < (j.gate_at, j.id) and j.instance <> all (mutirao.below_holders(c.conflicts))
     order by w.gate_at, w.id limit 1)) x
  join mutirao.task t on t.id = x.task
  where mine.id = j.class order by x.gate = 'holds' desc, x.gate_at, x.id limit 1
$$;
comment on function mutirao.excluder(mutirao.job) is 'The job that keeps another from its class: it holds one that conflicts, or has waited so long for it that it lets nobody past.';

-- In the order of who waits longest. One that has waited for half a minute lets nobody past with whom it conflicts: so none starves. But for those who do the
-- work of somebody who holds what it waits for: they would wait for each other.
create or replace function mutirao.admit_classes(touched int[], room int default 500) returns int
language plpgsql as $$
declare
  near int[];
  held int[];
  firm int[] := '{}';
  through int := 0;
  let int;
  c record;
  is_free boolean;
  is_behind boolean;
begin
  -- Classes that exclude nobody, and of which nobody waits since they did, need no lock.
  if not exists (select from mutirao.class x where x.id = any (touched) and x.conflicts <> '{}')
    and not exists (select from mutirao.job j where j.class = any (touched) and j.gate = 'waits') then return 0; end if;
  perform mutirao.lock_gate();
  near := array(select x.id from mutirao.class x where x.id = any (touched) or x.conflicts && touched);
  held := array(select x.id from mutirao.class x where x.id = any (near) or x.conflicts && near);
  held := array(select x from unnest(held) x where exists (select from mutirao.job j where j.class = x and j.gate = 'holds'));
  for c in
    select x as class, h.gate_at from mutirao.class x
    cross join lateral (select j.gate_at from mutirao.job j where j.class = x.id and j.gate = 'waits' and j.waits_for is null order by j.gate_at, j.id limit 1) h
    where x.id = any (near) or x.conflicts && near order by h.gate_at, x.id
  loop
    is_free := (c.class).id = any (near) and not (c.class).conflicts && held;
    is_behind := (c.class).conflicts && firm;
    let := case
      when not is_free then 0
      when is_behind then mutirao.let_class_through(c.class, room - through, mutirao.below_holders(array(select unnest(x.conflicts) from mutirao.class x where x.id = any (firm))))
      else mutirao.let_class_through(c.class, room - through) end;
    through := through + let;
    if let > 0 then
      held := held || (c.class).id;
    elsif (is_behind or not is_free) and c.gate_at < mutirao.firm_since() then
      firm := firm || (c.class).id;
    end if;
    exit when through >= room;
  end loop;
  return through;
end $$;
comment on function mutirao.admit_classes(int[], int) is 'Lets jobs through whose classes nobody holds any more, of these classes and those they conflict with.';

create or replace function mutirao.admit_ordered(room int default 500) returns int
language plpgsql as $$
declare
  began timestamptz := mutirao.stopwatch();
  j mutirao.job;
  through bigint[] := '{}';
begin
  perform mutirao.lock_gate();
  for j in select x.* from mutirao.job x where x.class is null and x.gate = 'waits' and x.waits_for is null order by x.gate_at, x.id limit room for update skip locked loop
    if not mutirao.waits_in_order(j) then
      through := through || j.id;
    end if;
    exit when mutirao.stopwatch() - began > interval '100 milliseconds';  -- everybody else waits meanwhile: a clock goes on
  end loop;
  perform mutirao.open_gate(through);
  return cardinality(through);
end $$;
comment on function mutirao.admit_ordered(int) is 'Lets jobs through that have no class, and whose turn it is by their orderings.';

-- Whatever somebody held when it was its turn. What takes instances goes before the gate.
create or replace function mutirao.clock_gates(room int, out done int, out next_at timestamptz)
language plpgsql as $$
declare
  waiting int[];
begin
  done := mutirao.make_ready(room) + mutirao.let_orders_on(room);
  waiting := array(select c.id from mutirao.class c where exists (select from mutirao.job j where j.class = c.id and j.gate = 'waits' and j.waits_for is null));
  if waiting <> '{}' then
    done := done + mutirao.admit_classes(waiting, room);
  end if;
  if exists (select from mutirao.job j where j.class is null and j.gate = 'waits' and j.waits_for is null) then
    done := done + mutirao.admit_ordered(room);
  end if;
  perform mutirao.look_at_circles();
  if done > 0 or waiting <> '{}' or exists (select from mutirao.order_left) then
    next_at := mutirao.now() + interval '1 second';
  end if;
end $$;
