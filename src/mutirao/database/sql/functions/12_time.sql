-- What clocks do: due retries, ended leases, live instances behind their version.

create or replace function mutirao.wake_due(room int) returns int
language plpgsql as $$
declare
  woken int;
  flows int[];
  items bigint[];
begin
  with due as (
    select j.id from mutirao.job j where j.status = 'waiting' and not j.by_clock and j.due_at <= mutirao.now() order by j.due_at limit room for update skip locked),
  moved as (
    update mutirao.job j set status = 'ready', due_at = null, ready_at = mutirao.now() from due d where j.id = d.id returning j.id, j.flow, j.role)
  select count(*), array_agg(distinct m.flow) filter (where m.role is null), array_agg(m.id) filter (where m.role is not null) into woken, flows, items from moved m;
  if flows is not null then
    perform mutirao.wake(flows);
  end if;
  if items is not null then
    perform mutirao.offer_items(items);
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
  late int;
  released int;
  flows int[];
  watched bigint[];
begin
  select array_agg(x.id), array_agg(x.instance) into expired, locked
  from (select j.id, j.instance from mutirao.job j where j.status = 'running' and j.lease_until < at order by j.lease_until limit room) x;
  if expired is null then return 0; end if;
  select array_agg(q.id) into locked from (
    select i.id from mutirao.instance i where i.id = any (locked) order by i.id for no key update skip locked) q;
  late := mutirao.take_late_items(array(select j.id from mutirao.job j where j.id = any (expired) and j.instance = any (locked) and j.role is not null));

  select array_agg(j.id order by j.id) as jobs, array_agg(j.attempt order by j.id) as attempts, array_agg(case
      when j.deadline_at <= at then jsonb_build_object('code', 'timeout', 'error', format('did not end within its timeout of %s', j.timeout))
      else jsonb_build_object('code', 'lease_lost', 'error', format('its worker vanished %s times in a row, last %s', j.losses + 1, j.worker)) end order by j.id) as errors
    into failing
  from mutirao.job j join mutirao.instance i on i.id = j.instance
  where j.id = any (expired) and j.instance = any (locked) and j.status = 'running' and j.lease_until < at
    and (j.deadline_at <= at or j.losses >= 19 or mutirao.job_hold(i.hold, i.id, j.cause, j.undoes) = 'cancelled');
  if failing.jobs is not null then
    perform mutirao.finish_jobs('clock', failing.jobs, failing.attempts, array_fill(null::jsonb, array[cardinality(failing.jobs)]), failing.errors, null);
  end if;

  with lost as (
    update mutirao.job j set status = case when mutirao.job_hold(i.hold, i.id, j.cause, j.undoes) = 'suspended' then 'held' else 'ready' end::mutirao.job_status,
      attempt = null, worker = null, lease_until = null, deadline_at = null, due_at = null, losses = j.losses + 1
    from mutirao.instance i
    where j.id = any (expired) and i.id = j.instance and j.instance = any (locked) and j.status = 'running' and j.lease_until < at
    returning j.id, j.flow, j.watched)
  select count(*), array_agg(distinct l.flow), array_agg(l.id order by l.id) filter (where l.watched) into released, flows, watched from lost l;
  perform mutirao.ready_again(flows, watched);
  perform mutirao.undo_next(locked);
  return released + late + coalesce(cardinality(failing.jobs), 0);
end $$;
comment on function mutirao.end_leases(int) is 'Takes jobs away from workers that let their lease or their timeout pass, and work items from persons.';

-- Open instances of a live flow follow its newest version. A pass goes by id, some thousand instances of all flows at a time, and skips what
-- is being written at the moment; a writer that began before the version was made may still start an instance by the old one. So the
-- last pass is one that started when every transaction had ended that ran when the version was first seen (`sure`); it goes back to
-- the first instance it skipped until it skips none.
create or replace function mutirao.look_again(room int, out looked int, out is_midway boolean)
language plpgsql as $$
declare
  began timestamptz := mutirao.stopwatch();
  one int;
  step record;
begin
  looked := 0;
  is_midway := false;
  for one in select r.version from mutirao.recheck r order by r.version for update skip locked loop
    loop
      if looked >= room or mutirao.stopwatch() - began > interval '30 milliseconds' then
        is_midway := true;
        return;
      end if;
      step := mutirao.look_again_at(one, room - looked);
      looked := looked + step.looked;
      exit when not step.is_midway;
    end loop;
  end loop;
end $$;

-- Only sessions of this database count, and none of the server's own, such as autovacuum: they have no user. What else they are, a plain
-- role is not told of the sessions of others. One that has just come or gone counts.
create or replace function mutirao.is_own_session(session int) returns boolean
language sql stable
return coalesce((select a.datid = (select d.oid from pg_catalog.pg_database d where d.datname = current_database()) and a.usesysid is not null
  from pg_catalog.pg_stat_activity a where a.pid = session), true);

create or replace function mutirao.transactions_here() returns text[]
language sql stable
return array(select l.virtualtransaction from pg_catalog.pg_locks l
  where l.locktype = 'virtualxid' and l.pid <> pg_backend_pid() and mutirao.is_own_session(l.pid));
comment on function mutirao.transactions_here() is 'The transactions that others have open in this database.';

create or replace function mutirao.is_older_open(made_in xid8) returns boolean
language sql stable
return pg_snapshot_xmin(pg_current_snapshot()) <= made_in and exists (
  select from pg_snapshot_xip(pg_current_snapshot()) x(id) join pg_catalog.pg_locks l on l.locktype = 'transactionid' and l.granted and l.transactionid = x.id::xid
  left join pg_catalog.pg_prepared_xacts p on l.pid is null and p.transaction = l.transactionid
  where x.id <= made_in and case when l.pid is null then p.database = current_database() else mutirao.is_own_session(l.pid) end);
comment on function mutirao.is_older_open(xid8) is 'Whether a transaction of this database, prepared ones too, is open that began to write no later than this one.';

create or replace function mutirao.look_again_at(version int, room int, out looked int, out is_midway boolean)
language plpgsql as $$
declare
  c mutirao.recheck;
  v mutirao.version;
  behind bigint[];
  page_end bigint;
  locked bigint[];
begin
  looked := 0;
  is_midway := false;
  select * into c from mutirao.recheck r where r.version = look_again_at.version;
  select x.* into v from mutirao.flow f join mutirao.version x on x.id = f.version where f.id = c.flow;
  if v.id <> c.version then
    delete from mutirao.recheck r where r.version = c.version;  -- the newer one has a row of its own
    return;
  end if;
  if c.after = 0 then
    perform pg_stat_clear_snapshot();  -- who is there is otherwise remembered until the transaction ends
    c.waits_for := coalesce(c.waits_for, mutirao.transactions_here());
    c.sure := not exists (select from pg_catalog.pg_locks l where l.locktype = 'virtualxid' and l.virtualtransaction = any (c.waits_for))
      and not mutirao.is_older_open(v.made_in);
    if c.again and not c.sure then
      return;  -- one pass has been made; the next is the last, when it can be
    end if;
  end if;
  page_end := (select i.id from mutirao.instance i where i.id > c.after order by i.id offset 1999 limit 1);
  behind := array(
    select i.id from mutirao.instance i
    where i.id > c.after and i.id <= coalesce(page_end, 9223372036854775807) and i.flow = c.flow and i.version <> v.id order by i.id limit room);
  if cardinality(behind) = room then
    page_end := behind[room];
  end if;
  if behind <> '{}' then
    locked := array(select i.id from mutirao.instance i where i.id = any (behind) order by i.id for no key update skip locked);
    c.skipped := least(c.skipped, (select min(n) from unnest(behind) n where n <> all (locked)));
    locked := array(select i.id from mutirao.instance i where i.id = any (locked) and i.version <> v.id order by i.id);
    perform mutirao.follow(locked, v.id);
    looked := cardinality(locked);
  end if;
  is_midway := page_end is not null;
  if is_midway then
    c.after := page_end;
  elsif c.sure and c.skipped is null then
    delete from mutirao.recheck r where r.version = c.version;
    perform mutirao.look_at_closed(v);
    return;
  elsif c.sure then
    c.after := c.skipped - 1;
    c.skipped := null;
  else
    c.after := 0;
    c.again := true;
    c.skipped := null;
  end if;
  update mutirao.recheck r set after = c.after, waits_for = c.waits_for, sure = c.sure, again = c.again, skipped = c.skipped where r.version = c.version;
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
  next_at := (select min(j.lease_until) from mutirao.job j where j.status = 'running' and j.lease_until < 'infinity');
end $$;

-- A duty that is not urgent and would take as much as it gets leaves most of the time to the work: all clocks together rest. Measured by the
-- real clock, since it is the real machine that is kept free.
create or replace function mutirao.rest(duty text, pause interval) returns interval
language plpgsql as $$
begin
  -- Two clocks that come to rest at the same time do not wait for each other: one of them says it for both.
  if pg_try_advisory_xact_lock(hashtext('mutirao.rest'), hashtext(duty)) then
    insert into mutirao.rest as r (duty, until) values (rest.duty, mutirao.stopwatch() + pause) on conflict on constraint rest_pkey do update set until = excluded.until;
  end if;
  return pause;
end $$;

create or replace function mutirao.clock_versions(room int, out done int, out next_at timestamptz)
language plpgsql as $$
declare
  began timestamptz := mutirao.stopwatch();
  again record;
begin
  -- Their instances are locked meanwhile: so few that nobody waits for long, even where each raises and is looked into by itself.
  room := least(room, 100);
  done := mutirao.sweep_gone(room);
  done := done + mutirao.sweep_strays(room - done);
  again := mutirao.look_again(room - done);
  done := done + again.looked;
  if done > 0 or again.is_midway then
    next_at := mutirao.now() + mutirao.rest('versions', 9 * (mutirao.stopwatch() - began));
  elsif exists (select from mutirao.recheck) then
    next_at := mutirao.now() + interval '1 second';
  end if;
end $$;

create or replace function mutirao.clock_duties() returns text[]
language sql immutable
return array['retries', 'leases', 'versions', 'waits', 'alarms', 'limits', 'batches', 'workers', 'starts', 'children', 'deadlines', 'messages', 'retention', 'schedules', 'access', 'items', 'views', 'files', 'answers', 'gates'];

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
    -- Who turns all of it by hand does not rest.
    select 0 as done, mutirao.now() + (r.until - mutirao.stopwatch()) as next_at into answer from mutirao.rest r where r.duty = turn_clock.duty and r.until > mutirao.stopwatch();
    if not found then
      execute format('select * from mutirao.clock_%s($1)', each) into answer using room;
    end if;
    done := done || jsonb_build_object(each, answer.done);
    -- What is due but in somebody's hands is not asked for without end.
    next_at := least(next_at, case when answer.done = 0 and answer.next_at is not null then greatest(answer.next_at, mutirao.now() + interval '100 milliseconds') else answer.next_at end);
  end loop;
end $$;
comment on function mutirao.turn_clock(int, text) is
  'One turn of a clock: all its duties, or one alone in a transaction of its own. Answers how much it did of each, and when there is something '
  'to do again. Any number of clocks may run.';
