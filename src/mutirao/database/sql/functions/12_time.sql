-- What clocks do: due retries, ended leases, live instances behind their version.

create or replace function mutirao.wake_due(room int) returns int
language plpgsql as $$
declare
  woken int;
  flows int[];
begin
  with due as (
    select j.id from mutirao.job j where j.status = 'waiting' and not j.by_clock and j.due_at <= mutirao.now() order by j.due_at limit room for update skip locked),
  moved as (
    update mutirao.job j set status = 'ready', due_at = null, ready_at = mutirao.now() from due d where j.id = d.id returning j.flow)
  select count(*), array_agg(distinct m.flow) into woken, flows from moved m;
  if flows is not null then
    perform mutirao.wake(flows);
  end if;
  return woken;
end $$;
comment on function mutirao.wake_due(int) is 'Makes ready what waited, for another try or for a time in the state, and is due.';

-- A lease that ended with the deadline behind it is a timeout, and uses a retry. Any other is lost, and uses none; but a job that
-- took twenty workers with it in a row is taken to be the cause.
create or replace function mutirao.end_leases(room int) returns int
language plpgsql as $$
#variable_conflict use_column
declare
  at timestamptz := mutirao.now();
  expired bigint[];
  locked bigint[];
  failing record;
  released int;
  flows int[];
  watched bigint[];
begin
  select array_agg(x.id), array_agg(x.instance) into expired, locked
  from (select j.id, j.instance from mutirao.job j where j.status = 'running' and j.lease_until < at order by j.lease_until limit room) x;
  if expired is null then return 0; end if;
  select array_agg(q.id) into locked from (
    select i.id from mutirao.instance i where i.id = any (locked) order by i.id for no key update skip locked) q;

  select array_agg(j.id order by j.id) as jobs, array_agg(j.attempt order by j.id) as attempts, array_agg(case
      when j.deadline_at <= at then jsonb_build_object('code', 'timeout', 'error', format('did not end within its timeout of %s', j.timeout))
      else jsonb_build_object('code', 'lease_lost', 'error', format('its worker vanished %s times in a row, last %s', j.losses + 1, j.worker)) end order by j.id) as errors
    into failing
  from mutirao.job j join mutirao.instance i on i.id = j.instance
  where j.id = any (expired) and j.instance = any (locked) and j.status = 'running' and j.lease_until < at
    and (j.deadline_at <= at or j.losses >= 19 or i.hold = 'cancelled');
  if failing.jobs is not null then
    perform mutirao.finish_jobs('clock', failing.jobs, failing.attempts, array_fill(null::jsonb, array[cardinality(failing.jobs)]), failing.errors, null);
  end if;

  with lost as (
    update mutirao.job j set status = case when i.hold = 'suspended' then 'held' else 'ready' end::mutirao.job_status,
      attempt = null, worker = null, lease_until = null, deadline_at = null, losses = j.losses + 1
    from mutirao.instance i
    where j.id = any (expired) and i.id = j.instance and j.instance = any (locked) and j.status = 'running' and j.lease_until < at
    returning j.id, j.flow, j.watched)
  select count(*), array_agg(distinct l.flow), array_agg(l.id order by l.id) filter (where l.watched) into released, flows, watched from lost l;
  perform mutirao.ready_again(flows, watched);
  return released + coalesce(cardinality(failing.jobs), 0);
end $$;
comment on function mutirao.end_leases(int) is 'Takes jobs away from workers that let their lease or their timeout pass.';

-- Open instances of a live flow follow its newest version. A pass goes by id and skips what is being written at the moment; a writer
-- that began before the version was made may still start an instance by the old one. So the last pass is one that started when
-- every transaction had ended that ran when the version was first seen (`sure`), and skipped nothing.
create or replace function mutirao.look_again(room int) returns int
language plpgsql as $$
declare
  c mutirao.recheck;
  looked int := 0;
begin
  for c in select r.* from mutirao.recheck r order by r.version for update skip locked loop
    exit when looked >= room;
    looked := looked + mutirao.look_again_at(c, room - looked);
  end loop;
  return looked;
end $$;

create or replace function mutirao.look_again_at(c mutirao.recheck, room int) returns int
language plpgsql as $$
declare
  v mutirao.version;
  behind bigint[];
begin
  select x.* into v from mutirao.flow f join mutirao.version x on x.id = f.version where f.id = c.flow;
  if v.id <> c.version then
    delete from mutirao.recheck r where r.version = c.version;  -- the newer one has a row of its own
    return 0;
  end if;
  if c.after = 0 then
    c.waits_for := coalesce(c.waits_for, array(select l.virtualtransaction from pg_locks l where l.locktype = 'virtualxid' and l.pid <> pg_backend_pid()));
    c.sure := pg_snapshot_xmin(pg_current_snapshot()) > v.made_in
      and not exists (select from pg_locks l where l.locktype = 'virtualxid' and l.virtualtransaction = any (c.waits_for));
    if c.again and not c.sure then
      return 0;  -- one pass has been made; the next is the last, when it can be
    end if;
  end if;
  select array_agg(x.id order by x.id) into behind from (
    select i.id from mutirao.instance i where i.flow = c.flow and i.id > c.after and i.version <> v.id order by i.id limit room for no key update skip locked) x;
  if behind is not null then
    perform mutirao.follow(behind, v.id);
  elsif c.sure and not exists (select from mutirao.instance i where i.flow = c.flow and i.version <> v.id) then
    delete from mutirao.recheck r where r.version = c.version;
    perform mutirao.look_at_closed(v);
    return 0;
  else
    c.again := true;
  end if;
  update mutirao.recheck r set after = coalesce(behind[cardinality(behind)], 0), waits_for = c.waits_for, sure = c.sure, again = c.again where r.version = c.version;
  return coalesce(cardinality(behind), 0);
end $$;

-- Each duty is a function mutirao.clock_<duty>(room), which answers how much it did and when there is something to do again.
create or replace function mutirao.clock_retries(room int, out done int, out next_at timestamptz)
language plpgsql as $$
begin
  done := mutirao.wake_due(room);
  next_at := (select min(j.due_at) from mutirao.job j where j.status = 'waiting' and not j.by_clock and j.due_at < 'infinity');
end $$;

create or replace function mutirao.clock_leases(room int, out done int, out next_at timestamptz)
language plpgsql as $$
begin
  done := mutirao.end_leases(room);
  next_at := (select min(j.lease_until) from mutirao.job j where j.status = 'running');
end $$;

create or replace function mutirao.clock_versions(room int, out done int, out next_at timestamptz)
language plpgsql as $$
begin
  -- Their instances are locked meanwhile: so few that nobody waits for long, even where each raises and is looked into by itself.
  room := least(room, 200);
  done := mutirao.sweep_gone(room);
  done := done + mutirao.sweep_strays(room - done);
  done := done + mutirao.look_again(room - done);
  next_at := case when done > 0 then mutirao.now() when exists (select from mutirao.recheck) then mutirao.now() + interval '1 second' end;
end $$;

create or replace function mutirao.clock_duties() returns text[]
language sql immutable
return array['retries', 'leases', 'versions', 'waits', 'limits', 'batches', 'workers', 'starts', 'retention', 'schedules', 'views'];

create or replace function mutirao.turn_clock(room int default 500, duty text default null, out done jsonb, out next_at timestamptz)
language plpgsql security definer as $$
declare
  each text;
  answer record;
begin
  if duty <> all (mutirao.clock_duties()) then
    perform mutirao.refuse('wrong_call', format('a clock has no duty "%s": it has %s', duty, array_to_string(mutirao.clock_duties(), ', ')));
  end if;
  done := '{}';
  foreach each in array case when duty is null then mutirao.clock_duties() else array[duty] end loop
    execute format('select * from mutirao.clock_%s($1)', each) into answer using room;
    done := done || jsonb_build_object(each, answer.done);
    -- What is due but in somebody's hands is not asked for without end.
    next_at := least(next_at, case when answer.done = 0 and answer.next_at is not null then greatest(answer.next_at, mutirao.now() + interval '100 milliseconds') else answer.next_at end);
  end loop;
end $$;
comment on function mutirao.turn_clock(int, text) is
  'One turn of a clock: all its duties, or one alone in a transaction of its own. Answers how much it did of each, and when there is something '
  'to do again. Any number of clocks may run.';
