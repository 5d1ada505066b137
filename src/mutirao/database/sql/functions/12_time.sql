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
    update mutirao.job j set status = 'ready', due_at = null from due d where j.id = d.id returning j.flow)
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
-- that began before the version was made may still stamp an instance with the old one. So the last pass is one that started when
-- every such transaction had ended (`sure`) and skipped nothing.
create or replace function mutirao.look_again(room int) returns int
language plpgsql as $$
declare
  c mutirao.recheck;
  looked int := 0;
begin
  for c in select r.* from mutirao.recheck r order by r.flow for update skip locked loop
    exit when looked >= room;
    looked := looked + mutirao.look_again_at(c, room - looked);
  end loop;
  return looked;
end $$;

create or replace function mutirao.look_again_at(c mutirao.recheck, room int) returns int
language plpgsql as $$
declare
  f mutirao.flow;
  v mutirao.version;
  behind bigint[];
  parked bigint[];
  work mutirao.work[];
  looked mutirao.looked[];
begin
  select * into f from mutirao.flow x where x.id = c.flow;
  select * into v from mutirao.version x where x.id = f.version;
  if c.after = 0 then
    c.sure := pg_snapshot_xmin(pg_current_snapshot()) > v.made_in;
    if c.again and not c.sure then
      return 0;  -- one pass has been made; the next is the last, when it can be
    end if;
  end if;
  select array_agg(x.id order by x.id) into behind from (
    select i.id from mutirao.instance i where i.flow = f.id and i.id > c.after and i.version <> v.id order by i.id limit room for no key update skip locked) x;
  if behind is null then
    if c.sure and not exists (select from mutirao.instance i where i.flow = f.id and i.version <> v.id) then
      delete from mutirao.recheck r where r.flow = f.id;
    else
      update mutirao.recheck r set after = 0, again = true where r.flow = f.id;
    end if;
    return 0;
  end if;
  select array_agg(row(1, 'look', i.id, i.flow, v.id, null, null, null, null, null, v.defaults || i.state, i.pending, i.failed, i.fired, i.reached,
      case when v.named = '{}' then i.latest else mutirao.latest_from(i.id, i.latest, v.named) end,
      i.pending || i.failed || i.fired, i.parked, i.reasons, i.hold, i.firings, i.priority, i.started_at, 'clock', null)::mutirao.work order by i.id),
    array_agg(i.id) filter (where i.parked > 0 and i.hold is null)
    into work, parked
  from mutirao.instance i where i.id = any (behind);
  looked := mutirao.look(work, array[v.id]);
  update mutirao.instance i set version = v.id, state = w.state, latest = w.latest from unnest(work) w where i.id = w.instance;
  if v.searchable <> '{}' then
    perform mutirao.make_searchable(behind);
  end if;
  if v.waits <> '{}' then
    perform mutirao.move_waits(behind);
  end if;
  select array_agg(row(w.n, w.kind, w.instance, w.flow, w.version, w.job, w.task, w.attempt, w.cause, w.change, w.state, w.pending, w.failed, w.fired, w.reached,
      w.latest, w.held, w.parked, w.reasons, w.hold, w.firings, w.priority, w.started_at, w.writer, w.note)::mutirao.work),
    array_agg(row(w.final, w.fires, w.problem)::mutirao.looked)
    into work, looked
  from unnest(work, looked) w
  where w.hold is null and (w.fires <> '{}' or w.problem is not null or w.final and w.pending = '{}' and w.failed <@ v.handled
    or w.reasons @> '[{"code": "condition_failed"}]');
  if work is not null then
    perform mutirao.settle(work, array[v.id], null, looked);
  end if;
  if parked is not null then
    perform mutirao.finish_parked(parked);
  end if;
  update mutirao.recheck r set after = behind[cardinality(behind)], sure = c.sure where r.flow = f.id;
  return cardinality(behind);
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
  done := mutirao.look_again(room);
  next_at := case when done > 0 then mutirao.now() when exists (select from mutirao.recheck) then mutirao.now() + interval '1 second' end;
end $$;

create or replace function mutirao.clock_duties() returns text[]
language sql immutable
return array['retries', 'leases', 'versions', 'waits', 'limits', 'batches', 'workers', 'starts', 'retention', 'schedules'];

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
    next_at := least(next_at, answer.next_at);
  end loop;
end $$;
comment on function mutirao.turn_clock(int, text) is
  'One turn of a clock: all its duties, or one alone in a transaction of its own. Answers how much it did of each, and when there is something '
  'to do again. Any number of clocks may run.';
