-- Limits: how many jobs of a task run at once, in all and for each value of an attribute, and how many begin per second.
--
-- A task with a limit has a row in mutirao.throttle, and its jobs are leased only under the lock of that row, which is held for the
-- few milliseconds from the claim to its commit. Running jobs are counted, not kept count of: whatever ends a job (a report, a lost
-- lease, a kill) frees its place without having to know about limits. Such jobs are never leased as follow-ups, so the oldest goes
-- first, whichever instance it is of; where there is a limit for each value, the values take turns.
--
-- Who was refused is not told when a place becomes free. The worker that ends a job asks for another in the same turn; for all
-- other cases a clock looks, and wakes the workers of the flow.

create or replace function mutirao.slot_of(state jsonb, per text) returns text
language sql immutable
return coalesce(left(state ->> per, 200), '');
comment on function mutirao.slot_of(jsonb, text) is 'By what a job is counted; no longer than fits into an index.';

create or replace function mutirao.limited(tasks int[]) returns int[]
language sql stable
return array(select t.task from mutirao.throttle t where t.task = any (tasks) order by t.task);

-- At most ceil(r) jobs in any period of ceil(r) / r seconds: r in any second, and one in ten seconds for a tenth. The period is cut
-- into twenty parts, and those that a period can touch are 21.
create or replace function mutirao.roll(t mutirao.throttle, at timestamptz) returns mutirao.throttle
language plpgsql immutable as $$
declare
  part float8 := ceil(t.per_second) / t.per_second / 20;
  current bigint := floor(extract(epoch from at) / part);
  gone int := least(greatest(current - t.recent_at, 0), 21);
begin
  t.recent := t.recent[gone + 1 : 21] || array_fill(0, array[gone]);
  t.recent_at := greatest(current, t.recent_at);
  return t;
end $$;
comment on function mutirao.roll(mutirao.throttle, timestamptz) is 'The throttle with its recent beginnings as of now.';

create or replace function mutirao.rate_room(t mutirao.throttle) returns int
language sql immutable
return ceil(t.per_second)::int - (select sum(n)::int from unnest(t.recent) n);

create or replace function mutirao.rate_opens_at(t mutirao.throttle) returns timestamptz
language sql immutable
return to_timestamp((t.recent_at + (select min(o) from unnest(t.recent) with ordinality r(n, o) where n > 0)) * ceil(t.per_second) / t.per_second / 20);
comment on function mutirao.rate_opens_at(mutirao.throttle) is 'When the earliest of the recent beginnings no longer counts.';

-- Round and round: beginning after the value that was served last, each value gets as many as it may have; then the next. It stops with
-- the last job asked for, so that it meets no more values than those it serves and those that have all they may have.
create or replace function mutirao.next_in_turn(t mutirao.throttle, room int) returns table (job bigint, value text)
language plpgsql as $$
begin
  return query
    with recursive ring(slot, is_second, is_first) as (
      select t.served, false, true
      union all
      select coalesce(further.slot, first.slot), r.is_second or further.slot is null, false
      from ring r
      left join lateral (
        select j.slot from mutirao.job j where j.task = t.task and j.status = 'ready' and j.slot > r.slot order by j.slot limit 1) further on true
      left join lateral (
        select j.slot from mutirao.job j where j.task = t.task and j.status = 'ready' and j.slot is not null order by j.slot limit 1) first
        on further.slot is null and not r.is_second
      where r.slot is not null and (not r.is_second or r.slot <= t.served))
    select c.id, r.slot from ring r cross join lateral (
      select j.id from mutirao.job j where j.task = t.task and j.status = 'ready' and j.slot = r.slot order by j.priority desc, j.id
      limit greatest(0, t.each - (select count(*) from mutirao.job x where x.task = t.task and x.status = 'running' and x.slot = r.slot))) c
    where not r.is_first and (not r.is_second or r.slot <= t.served)
    limit room;
end $$;

create or replace function mutirao.limit_room(t mutirao.throttle, room int) returns int
language sql stable
return least(room,
  case when t.at_once is not null then t.at_once - (select count(*)::int from mutirao.job j where j.task = t.task and j.status = 'running' and j.slot is not null) end,
  case when t.per_second is not null then mutirao.rate_room(t) end);
comment on function mutirao.limit_room(mutirao.throttle, int) is 'How many jobs of the task may begin now, up to `room`, by what is limited for all of them together.';

-- Whoever holds the row for long (a claim inside somebody's open transaction) must not stop everybody else's turns: one waits for it a
-- little.
create or replace function mutirao.lock_limit(task int, may_wait boolean) returns mutirao.throttle
language plpgsql set lock_timeout = '200ms' as $$
declare
  t mutirao.throttle;
begin
  if may_wait then
    select * into t from mutirao.throttle x where x.task = lock_limit.task for no key update;
  else
    select * into t from mutirao.throttle x where x.task = lock_limit.task for no key update skip locked;
  end if;
  return t;
exception when lock_not_available then
  return null;
end $$;

-- Jobs that somebody holds at this moment (he suspends their instance, say) are passed over.
create or replace function mutirao.pick_limited(t mutirao.throttle, free int, only_job bigint) returns table (job bigint, value text)
language plpgsql as $$
begin
  if free <= 0 or t.per is not null and not t.slotted then
    return;
  elsif only_job is not null then
    return query select j.id, j.slot from mutirao.job j where j.id = only_job and j.status = 'ready' and (t.each is null or t.each > (
      select count(*) from mutirao.job r where r.task = t.task and r.status = 'running' and r.slot = j.slot)) for update skip locked;
  elsif t.per is null then
    return query select j.id, j.slot from mutirao.job j where j.task = t.task and j.status = 'ready' and j.role is null and not j.by_clock order by j.priority desc, j.id limit free for update skip locked;
  else
    return query select j.id, j.slot from mutirao.job j
      where j.id = any (array(select n.job from mutirao.next_in_turn(t, free) n)) and j.status = 'ready' for update skip locked;
  end if;
end $$;

create or replace function mutirao.claim_within(t mutirao.throttle, worker text, room int, lease interval, only_job bigint default null) returns setof mutirao.settled
language plpgsql as $$
declare
  at timestamptz := mutirao.now();
  picked bigint[];
begin
  if t.per_second is not null then
    t := mutirao.roll(t, at);
  end if;
  -- Values up to the one that was served last come after those beyond it.
  select array_agg(p.job), coalesce(max(p.value) filter (where p.value <= t.served), max(p.value), t.served) into picked, t.served
  from mutirao.pick_limited(t, mutirao.limit_room(t, room), only_job) p;
  if picked is not null then
    return query select * from mutirao.lease_jobs(worker, picked, lease, true);
    t.recent[21] := t.recent[21] + cardinality(picked);
  end if;
  -- Less than was asked for, though there is more: a clock will look.
  t.look_at := case when coalesce(cardinality(picked), 0) < room and exists (select from mutirao.job j where j.task = t.task and j.status = 'ready' and j.role is null and not j.by_clock)
    then mutirao.look_at_limit(t, at) end;
  update mutirao.throttle x set served = t.served, recent = t.recent, recent_at = t.recent_at, look_at = t.look_at where x.task = t.task;
end $$;
comment on function mutirao.claim_within(mutirao.throttle, text, int, interval, bigint) is
  'Leases up to `room` ready jobs of one task to a worker, as far as its limits allow. The caller has locked them.';

-- A claim holds the limits it went by until it commits, so one does not queue up behind others while there is something else to take;
-- whoever is left empty-handed waits for one of them. He holds none then, so nobody waits in a circle.
create or replace function mutirao.claim_limited(worker text, tasks int[], room int, lease interval) returns setof mutirao.settled
language plpgsql as $$
declare
  one int;
  t mutirao.throttle;
  holds boolean := false;
  passed_over int[] := '{}';
  got int;
begin
  foreach one in array tasks loop
    exit when room <= 0;
    continue when not exists (select from mutirao.job j where j.task = one and j.status = 'ready' and j.role is null and not j.by_clock);
    t := mutirao.lock_limit(one, false);
    if t.task is null then
      passed_over := passed_over || one;
      continue;
    end if;
    holds := true;
    return query select * from mutirao.claim_within(t, worker, room, lease);
    get diagnostics got = row_count;
    room := room - got;
  end loop;
  if room <= 0 then return; end if;
  if not holds and passed_over <> '{}' then
    t := mutirao.lock_limit(passed_over[1], true);
    if t.task is null then return; end if;
    passed_over := passed_over[2:];
    return query select * from mutirao.claim_within(t, worker, room, lease);
  end if;
  if passed_over <> '{}' then
    perform mutirao.wake(array(select distinct x.flow from mutirao.throttle x where x.task = any (passed_over)));
  end if;
end $$;
comment on function mutirao.claim_limited(text, int[], int, interval) is 'Leases up to `room` ready jobs of tasks that have limits to a worker, as far as those allow.';

create or replace function mutirao.take_limited(flow int, task text, instance bigint) returns setof mutirao.taken
language plpgsql as $$
declare
  task_id int := (select t.id from mutirao.task t where t.flow = take_limited.flow and t.name = take_limited.task);
  wanted bigint := (select j.id from mutirao.job j where j.instance = take_limited.instance and j.task = task_id);
  t mutirao.throttle;
  got mutirao.settled;
begin
  if instance is not null and wanted is null then return; end if;
  t := mutirao.lock_limit(task_id, true);
  if t.task is null then return; end if;
  select c.* into got from mutirao.claim_within(t, session_user, 1, interval '15 minutes', wanted) c;
  return query select j.id, j.attempt, j.instance, got.state, j.lease_until from mutirao.job j where j.id = got.job;
end $$;
comment on function mutirao.take_limited(int, text, bigint) is 'As take_job, for a task that has a limit.';

create or replace function mutirao.look_at_limit(t mutirao.throttle, at timestamptz) returns timestamptz
language plpgsql as $$
begin
  if t.look_at is null then
    perform pg_notify('mutirao', 'clock');
  end if;
  return case when mutirao.rate_room(t) <= 0 then greatest(mutirao.rate_opens_at(t), at) else at + interval '50 milliseconds' end;
end $$;

create or replace function mutirao.without_slot(t mutirao.throttle, up_to bigint) returns table (job bigint, slot text)
language sql stable as $$
  select j.id, mutirao.slot_of(r.state, t.per) from mutirao.job j join mutirao.trace r on r.instance = j.instance and r.id = j.cause
  where j.id > t.slot_after and j.id <= up_to and j.task = t.task and (t.per is not null or j.status = 'running') and j.slot is distinct from mutirao.slot_of(r.state, t.per)
$$;
comment on function mutirao.without_slot(mutirao.throttle, bigint) is
  'The next jobs that fired before the limit was put in place, with the slot that they would have got, by what they fired on. Without `per`, only those that run need one, to be counted.';

-- It is done when it has come past all jobs and nobody is left who may not know of the limit. Jobs that somebody has locked are not waited
-- for: he may be waiting for one that is locked here. It does not come past them, either.
create or replace function mutirao.give_slots(t mutirao.throttle, room int) returns int
language plpgsql as $$
declare
  window_end bigint := t.slot_after + 20 * room;
  newest bigint := (select s.last_value from mutirao.job_id s);
  locked bigint[] := array(select j.id from mutirao.job j where j.id = any (array(select w.job from mutirao.without_slot(t, window_end) w)) for update skip locked);
  given int;
begin
  update mutirao.job j set slot = w.slot from mutirao.without_slot(t, window_end) w where w.job = any (locked) and j.id = w.job;
  get diagnostics given = row_count;
  if not exists (select from mutirao.without_slot(t, window_end)) then
    update mutirao.throttle x set slotted = x.slotted or window_end >= newest,
      slot_after = case when window_end < newest then window_end when pg_snapshot_xmin(pg_current_snapshot()) <= t.put_in then 0 end
    where x.task = t.task;
  end if;
  return given;
end $$;

create or replace function mutirao.reslot(instances bigint[]) returns void
language sql as $$
  update mutirao.job j set slot = mutirao.slot_of(i.state, t.per) from mutirao.instance i, mutirao.throttle t
  where j.instance = any (instances) and i.id = j.instance and t.task = j.task and t.per is not null and j.status <> 'running'
    and j.slot is distinct from mutirao.slot_of(i.state, t.per)
$$;
comment on function mutirao.reslot(bigint[]) is 'For instances whose attributes or tasks have other names by now. They must be locked.';

create or replace function mutirao.clock_limits(room int, out done int, out next_at timestamptz)
language plpgsql as $$
declare
  at timestamptz := mutirao.now();
  t mutirao.throttle;
begin
  done := 0;
  for t in select x.* from mutirao.throttle x where x.look_at <= at or x.slot_after is not null for no key update skip locked loop
    if t.slot_after is not null then
      done := done + mutirao.give_slots(t, room);
    end if;
    continue when t.look_at is null or t.look_at > at;
    if t.per_second is not null then
      t := mutirao.roll(t, at);
    end if;
    if not exists (select from mutirao.job j where j.task = t.task and j.status = 'ready' and j.role is null and not j.by_clock) then
      t.look_at := null;
    elsif mutirao.limit_room(t, 1) > 0 and (t.per is null or exists (select from mutirao.next_in_turn(t, 1))) then
      perform mutirao.wake(array[t.flow]);
      t.look_at := null;
    else
      t.look_at := case when mutirao.rate_room(t) <= 0 then mutirao.rate_opens_at(t) else at + interval '50 milliseconds' end;
    end if;
    update mutirao.throttle x set look_at = t.look_at where x.task = t.task;
  end loop;
  next_at := (
    select min(least(x.look_at, case when x.slot_after is not null then at + case when x.slotted then interval '1 second' else interval '0' end end))
    from mutirao.throttle x where x.look_at is not null or x.slot_after is not null);
end $$;
comment on function mutirao.clock_limits(int) is 'Wakes workers where a limit kept jobs back and has room again.';

----------------------------------------------------------------------------------------------------------------- defining

create or replace function mutirao.put_limit(task int, flow int, at_once int, per_second float8, per text, each int, defined jsonb) returns void
language plpgsql as $$
declare
  -- Nobody can have made a job of it yet.
  is_new boolean := not exists (select from mutirao.rule r join mutirao.version v on v.id = r.version where r.task = put_limit.task and v.made_in <> pg_current_xact_id());
begin
  if num_nonnulls(at_once, per_second, each, defined) = 0 then
    delete from mutirao.throttle t where t.task = put_limit.task;
    update mutirao.rule r set slot_by = null where r.task = put_limit.task and r.slot_by is not null;
    return;
  end if;
  insert into mutirao.throttle (task, flow, at_once, per_second, per, each, defined, slotted, slot_after)
  values (task, flow, at_once, per_second, per, each, defined, is_new, case when is_new then null else 0 end)
  on conflict on constraint throttle_pkey do update set
    at_once = excluded.at_once, per_second = excluded.per_second, per = excluded.per, each = excluded.each, defined = excluded.defined,
    recent = array_fill(0, array[21]), recent_at = 0, look_at = mutirao.now(), put_in = excluded.put_in, slotted = false, slot_after = 0;
  update mutirao.rule r set slot_by = put_limit.per where r.task = put_limit.task and r.slot_by is distinct from put_limit.per;
  -- Those that run already count as well; the clock finds whom this misses.
  update mutirao.job j set slot = '' where j.id in (
    select x.id from mutirao.job x where x.task = put_limit.task and x.status = 'running' and x.slot is null for update skip locked);
  perform pg_notify('mutirao', 'clock');
end $$;

create or replace function mutirao.define_limits(flow int) returns void
language plpgsql as $$
begin
  perform mutirao.put_limit(coalesce((d.r).task, t.task), define_limits.flow, (d.r).at_once, (d.r).per_second, (d.r).per, (d.r).each, mutirao.defined_limit(d.r))
  from (select x as r from mutirao.flow f join mutirao.rule x on x.version = f.version where f.id = define_limits.flow) d
  full join (select x.* from mutirao.throttle x where x.flow = define_limits.flow) t on t.task = (d.r).task
  where mutirao.defined_limit(d.r) is distinct from t.defined or t.per is not null and not exists (
    select from mutirao.flow f join mutirao.attribute a on a.version = f.version where f.id = define_limits.flow and a.name = t.per);
  update mutirao.rule r set slot_by = t.per from mutirao.throttle t, mutirao.flow f
  where f.id = define_limits.flow and r.version = f.version and t.task = r.task and r.slot_by is distinct from t.per;
end $$;
comment on function mutirao.define_limits(int) is
  'Puts the limits of a flow''s newest version in force, where they differ from those of the one before, or what was set by hand is for an attribute that is gone.';

create or replace function mutirao.limit_task(flow text, task text, at_once int default null, per_second float8 default null, per text default null, each int default null)
returns void
language plpgsql security definer as $$
declare
  f mutirao.flow;
  t int;
begin
  select i.id into t from mutirao.task_ids(flow, array[task]) i;
  select * into f from mutirao.flow x where x.name = limit_task.flow;
  if at_once <= 0 or per_second <= 0 or per_second > 1000000 or each <= 0 or (per is null) <> (each is null) then
    perform mutirao.refuse('wrong_call', format('task "%s": at_once, per_second and each are more than zero, and each goes with per, the attribute it is for', task));
  end if;
  perform mutirao.check_limit_attribute(f.version, task, per);
  perform mutirao.put_limit(t, f.id, at_once, per_second, per, each, (
    select mutirao.defined_limit(r) from mutirao.rule r where r.version = f.version and r.task = t));
end $$;
comment on function mutirao.limit_task(text, text, int, float8, text, int) is
  'Limits the jobs of a task from now on, whatever its definition says; without a limit: frees them. A new definition with another limit takes over.';

create or replace function mutirao.check_limit_attribute(version int, task text, name text) returns void
language plpgsql as $$
begin
  if name is not null and not exists (select from mutirao.attribute a where a.version = check_limit_attribute.version and a.name = check_limit_attribute.name) then
    perform mutirao.refuse('unknown_attribute', format('task "%s" is limited per "%s", which is no attribute of the flow; it has %s', task, name,
      coalesce((select string_agg(a.name, ', ' order by a.position) from mutirao.attribute a where a.version = check_limit_attribute.version), 'none')));
  end if;
end $$;

----------------------------------------------------------------------------------------------------------------- looking

create or replace function mutirao.limit_of(job bigint) returns jsonb
language plpgsql stable security definer as $$
declare
  j mutirao.job;
  t mutirao.throttle;
  running int;
  same int;
begin
  select * into j from mutirao.job x where x.id = limit_of.job;
  select * into t from mutirao.throttle x where x.task = j.task;
  if t.task is null then return null; end if;
  if t.per_second is not null then
    t := mutirao.roll(t, mutirao.now());
  end if;
  running := (select count(*) from mutirao.job x where x.task = t.task and x.status = 'running' and x.slot is not null);
  same := (select count(*) from mutirao.job x where x.task = t.task and x.status = 'running' and x.slot = j.slot);
  return jsonb_strip_nulls(jsonb_build_object(
    'at_once', t.at_once, 'running', running,
    'per_second', t.per_second, 'began', case when t.per_second is not null then ceil(t.per_second)::int - mutirao.rate_room(t) end,
    'opens_at', case when mutirao.rate_room(t) <= 0 then mutirao.rate_opens_at(t) end,
    'per', t.per, 'each', t.each, 'value', case when t.per is not null then j.slot end, 'running_with_value', case when t.per is not null then same end,
    'keeps_back', case
      when j.status <> 'ready' then null
      when running >= t.at_once then 'at_once'
      when mutirao.rate_room(t) <= 0 then 'per_second'
      when same >= t.each then 'each' end));
end $$;
comment on function mutirao.limit_of(bigint) is 'The limits of a job''s task and how far they are used; keeps_back names the one that a ready job waits for.';
