-- What people and the clock do to instances: set, repair, cancel, suspend, resume, retry, skip, and time. Running workers: none can exist yet.

insert into mutirao.refusal (code, sqlstate, meaning) values
  ('not_an_exception',   'MU211', 'there is nothing to repair'),
  ('instance_cancelled', 'MU212', 'the instance is being cancelled'),
  ('unknown_job',        'MU213', 'there is no such job'),
  ('job_not_failed',     'MU214', 'the job is neither failed nor waiting for another try'),
  ('job_running',        'MU215', 'a worker has the job'),
  ('not_suspended',      'MU216', 'the instance is not suspended');

create function mutirao.lock_instance(instance bigint) returns mutirao.instance
language plpgsql as $$
declare
  i mutirao.instance;
begin
  select * into i from mutirao.instance x where x.id = lock_instance.instance for no key update;
  if not found then
    if exists (select from mutirao.closed c where c.id = lock_instance.instance) then
      perform mutirao.refuse('instance_closed', format('instance %s has ended and takes no more changes', instance));
    end if;
    perform mutirao.refuse('unknown_instance', format('there is no instance %s', instance));
  end if;
  if i.hold = 'cancelled' then
    perform mutirao.refuse('instance_cancelled', format('instance %s is being cancelled: it closes when its last running job ends', instance));
  end if;
  return i;
end $$;

create function mutirao.lock_job(job bigint) returns mutirao.job
language plpgsql as $$
declare
  j mutirao.job;
begin
  select * into j from mutirao.job x where x.id = lock_job.job;
  if found then
    perform mutirao.lock_instance(j.instance);
    select * into j from mutirao.job x where x.id = lock_job.job for update;
  end if;
  if not found then
    perform mutirao.refuse('unknown_job', format('there is no job %s; it may have ended', job));
  end if;
  return j;
end $$;
comment on function mutirao.lock_job(bigint) is 'Locks the instance, then the job: the one order in which everybody does.';

create function mutirao.terms_without(reached int[], tasks int[]) returns int[]
language sql immutable
return array(select t from unnest(reached) t where t / 8 <> all (tasks));

create function mutirao.version_of(flow int, version int) returns mutirao.version
language sql stable
return (select v from mutirao.flow f join mutirao.version v on v.id = case when f.live then f.version else version_of.version end where f.id = version_of.flow);
comment on function mutirao.version_of(int, int) is 'The version that an instance goes by which was last written under `version`.';

-- One write without a job. The row `w` comes with what the instance is to become; here it gets what follows from that.
create function mutirao.write(w mutirao.work) returns void
language plpgsql as $$
declare
  refused mutirao.settled;
  v mutirao.version := mutirao.version_of(w.flow, w.version);
begin
  if v.id <> w.version then
    w.version := v.id;
    w.state := v.defaults || w.state;
    w.latest := mutirao.latest_from(w.instance, w.latest, v.named);
  end if;
  w.state := case when w.change is null then w.state else w.state || w.change end;
  w.held := coalesce(w.held, w.pending || w.failed || w.fired);
  select * into refused from mutirao.settle(array[w], array[w.version], null) s where s.kind = 'refused';
  if found then
    perform mutirao.refuse(refused.note ->> 'code', format('instance %s: %s', w.instance, coalesce(
      case when refused.note ->> 'task' is not null then format('condition of %s: ', refused.note ->> 'task') else '' end || (refused.note ->> 'error'),
      'the state would be final while jobs are pending; wait for them, or cancel the instance')));
  end if;
  if exists (select from mutirao.instance i where i.id = w.instance and i.parked > 0 and i.hold is null) then
    perform mutirao.finish_parked(array[w.instance]);
  end if;
end $$;

create function mutirao.work_of(i mutirao.instance, kind text, writer text, note jsonb) returns mutirao.work
language sql stable
return row(1, kind, i.id, i.flow, i.version, null, null, null, null, null, i.state, i.pending, i.failed, i.fired, i.reached, i.latest, null,
  i.parked, i.reasons, i.hold, i.firings, i.priority, i.started_at, writer, note)::mutirao.work;

create function mutirao.note(text) returns jsonb
language sql immutable return case when $1 is not null then jsonb_build_object('reason', $1) end;

------------------------------------------------------------------------------------------------------------------- people

create function mutirao.set_instance(instance bigint, change jsonb, writer text, reason text) returns void
language plpgsql as $$
declare
  w mutirao.work := mutirao.work_of(mutirao.lock_instance(instance), 'set', writer, mutirao.note(reason));
begin
  w.change := change;
  perform mutirao.write(w);
end $$;

-- A repair corrects the state and lets every condition be looked at as if nothing had failed: failed jobs go, and fire again where
-- their conditions still hold. A failure that some task handles is no exception, and stays. Whoever repairs a runaway has seen it, so
-- its firings are counted anew.
create function mutirao.repair_instance(instance bigint, change jsonb, writer text, reason text, attempt bigint default null) returns void
language plpgsql as $$
declare
  i mutirao.instance := mutirao.lock_instance(instance);
  v mutirao.version := mutirao.version_of(i.flow, i.version);
  w mutirao.work := mutirao.work_of(i, 'repair', writer, mutirao.note(reason));
  undone int[] := array(select unnest(i.failed) except select unnest(v.handled));
begin
  if i.reasons is null then
    perform mutirao.refuse('not_an_exception', format('instance %s is %s: only an exception is repaired; use set', i.id, i.status));
  end if;
  delete from mutirao.job j where j.instance = i.id and j.status = 'failed' and j.task = any (undone);
  w.change := change;
  w.task := (select f.exception_task from mutirao.flow f where f.id = i.flow);
  w.job := (select j.id from mutirao.job j where j.instance = i.id and j.task = w.task);
  w.attempt := attempt;
  w.failed := array(select unnest(i.failed) except select unnest(undone));
  w.fired := array(select unnest(i.fired) except select unnest(undone));
  w.reached := mutirao.terms_without(i.reached, undone);
  w.latest := i.latest - array(select t.name from mutirao.task t where t.id = any (undone));
  w.firings := 0;
  w.reasons := (select jsonb_agg(r) from jsonb_array_elements(i.reasons) r where r ->> 'code' = 'condition_failed' and r ? 'job');
  perform mutirao.write(w);
  -- settle looks after the _EXCPT job only of those that still have reasons.
  perform mutirao.show_exceptions(array[i.id]);
end $$;

create function mutirao.cancel_instance(instance bigint, writer text, reason text) returns void
language plpgsql as $$
declare
  i mutirao.instance := mutirao.lock_instance(instance);
  w mutirao.work := mutirao.work_of(i, 'cancel', writer, mutirao.note(reason));
begin
  delete from mutirao.job j using mutirao.flow f where j.instance = i.id and f.id = i.flow and (j.status <> 'running' or j.task = f.exception_task);
  w.pending := array(select j.task from mutirao.job j where j.instance = i.id);
  w.failed := '{}';
  w.parked := 0;
  w.reasons := null;
  w.hold := 'cancelled';
  perform mutirao.write(w);
end $$;

create function mutirao.suspend_instance(instance bigint, writer text, reason text) returns void
language plpgsql as $$
declare
  w mutirao.work := mutirao.work_of(mutirao.lock_instance(instance), 'suspend', writer, mutirao.note(reason));
begin
  update mutirao.job j set status = 'held', due_at = null where j.instance = suspend_instance.instance and j.status in ('ready', 'waiting');
  w.hold := 'suspended';
  perform mutirao.write(w);
end $$;

create function mutirao.resume_instance(instance bigint, writer text, reason text) returns void
language plpgsql as $$
declare
  i mutirao.instance := mutirao.lock_instance(instance);
  w mutirao.work := mutirao.work_of(i, 'resume', writer, mutirao.note(reason));
begin
  if i.hold is null then
    perform mutirao.refuse('not_suspended', format('instance %s is %s: only a suspended instance is resumed', i.id, i.status));
  end if;
  update mutirao.job j set status = 'ready' where j.instance = i.id and j.status = 'held';
  perform mutirao.wake(array[i.flow]);
  w.hold := null;
  perform mutirao.write(w);
end $$;

create function mutirao.retry_job(job bigint, writer text, reason text) returns void
language plpgsql as $$
declare
  j mutirao.job := mutirao.lock_job(job);
  i mutirao.instance;
  v mutirao.version;
  w mutirao.work;
begin
  if j.status not in ('failed', 'waiting') then
    perform mutirao.refuse('job_not_failed', format('job %s is %s: only a job that has failed or waits for another try is retried', job, j.status));
  end if;
  select * into i from mutirao.instance x where x.id = j.instance;
  update mutirao.job x set status = case when i.hold is null then 'ready' else 'held' end::mutirao.job_status, due_at = null, failures = 0, losses = 0 where x.id = j.id;
  perform mutirao.wake(array[j.flow]);
  w := mutirao.work_of(i, 'retry', writer, mutirao.note(reason));
  w.job := j.id;
  w.task := j.task;
  if j.status = 'failed' then
    w.pending := i.pending || j.task;
    w.failed := array_remove(i.failed, j.task);
    v := mutirao.version_of(i.flow, i.version);
    w.reached := mutirao.reached_with(mutirao.terms_without(i.reached, array[j.task]), v.terms, array[j.task], 'ready');
    w.latest := mutirao.latest_with(i.latest, v.named, array[j.task], 'ready');
    w.reasons := mutirao.reasons_without(i.reasons, array[j.id]);
  end if;
  perform mutirao.write(w);
  perform mutirao.show_exceptions(array[i.id]);
end $$;

-- The job ends as if it had succeeded, with the change given. In this one look its task is held, or it would fire again at once
-- wherever the change does not take its condition away.
create function mutirao.skip_job(job bigint, change jsonb, writer text, reason text) returns void
language plpgsql as $$
declare
  j mutirao.job := mutirao.lock_job(job);
  i mutirao.instance;
  v mutirao.version;
  w mutirao.work;
begin
  select * into i from mutirao.instance x where x.id = j.instance;
  if j.status = 'running' then
    perform mutirao.refuse('job_running', format('job %s is running at %s: wait for it, or let its lease end', job, j.worker));
  elsif j.task = (select f.exception_task from mutirao.flow f where f.id = j.flow) then
    perform mutirao.refuse('job_not_failed', format('job %s stands for the exceptions of instance %s: repair the instance', job, i.id));
  end if;
  v := mutirao.version_of(i.flow, i.version);
  w := mutirao.work_of(i, 'skip', writer, mutirao.note(reason));
  w.job := j.id;
  w.task := j.task;
  w.cause := j.cause;
  w.change := change;
  w.pending := array_remove(i.pending, j.task);
  w.failed := array_remove(i.failed, j.task);
  w.held := i.pending || i.failed || i.fired;
  w.parked := i.parked - (j.status = 'parked')::int;
  w.reached := mutirao.reached_with(mutirao.terms_without(i.reached, array[j.task]), v.terms, array[j.task], 'succeeded');
  w.latest := mutirao.latest_with(i.latest, v.named, array[j.task], 'succeeded');
  w.reasons := mutirao.reasons_without(i.reasons, array[j.id]);
  perform mutirao.write(w);
  perform mutirao.show_exceptions(array[i.id]);
end $$;

--------------------------------------------------------------------------------------------------------------------- time

create function mutirao.wake_due(room int) returns int
language plpgsql as $$
declare
  woken int;
  flows int[];
begin
  with due as (
    select j.id from mutirao.job j where j.status = 'waiting' and j.due_at <= mutirao.now() order by j.due_at limit room for update skip locked),
  moved as (
    update mutirao.job j set status = 'ready', due_at = null from due d where j.id = d.id returning j.flow)
  select count(*), array_agg(distinct m.flow) into woken, flows from moved m;
  if flows is not null then
    perform mutirao.wake(flows);
  end if;
  return woken;
end $$;
comment on function mutirao.wake_due(int) is 'Makes ready what waited for another try and is due.';

-- A lease that ended with the deadline behind it is a timeout, and uses a retry. Any other is lost, and uses none; but a job that
-- took twenty workers with it in a row is taken to be the cause.
create function mutirao.end_leases(room int) returns int
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
  if flows is not null then
    perform mutirao.wake(flows);
  end if;
  if watched is not null then
    perform mutirao.reach(watched, 'ready');
  end if;
  return released + coalesce(cardinality(failing.jobs), 0);
end $$;
comment on function mutirao.end_leases(int) is 'Takes jobs away from workers that let their lease or their timeout pass.';

create table mutirao.recheck (
  flow  int primary key references mutirao.flow,
  after bigint not null default 0,
  sure  boolean not null default false
);
comment on table mutirao.recheck is 'Live flows with a new version, whose open instances the clock still has to look at; `after` is how far it has come.';

-- Open instances of a live flow follow its newest version. A pass goes by id and skips what is being written at the moment; a writer
-- that began before the version was made may still stamp an instance with the old one. So the last pass is one that started when
-- every such transaction had ended (`sure`) and skipped nothing.
create function mutirao.look_again(room int) returns int
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

create function mutirao.look_again_at(c mutirao.recheck, room int) returns int
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
  end if;
  select array_agg(x.id order by x.id) into behind from (
    select i.id from mutirao.instance i where i.flow = f.id and i.id > c.after and i.version <> v.id order by i.id limit room for no key update skip locked) x;
  if behind is null then
    if c.sure and not exists (select from mutirao.instance i where i.flow = f.id and i.version <> v.id) then
      delete from mutirao.recheck r where r.flow = f.id;
    else
      update mutirao.recheck r set after = 0 where r.flow = f.id;
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

create function mutirao.tick(room int default 500, out woken int, out ended int, out looked int, out next_at timestamptz)
language plpgsql as $$
begin
  woken := mutirao.wake_due(room);
  ended := mutirao.end_leases(room);
  looked := mutirao.look_again(room);
  next_at := least(
    (select min(j.due_at) from mutirao.job j where j.status = 'waiting'),
    (select min(j.lease_until) from mutirao.job j where j.status = 'running'),
    case when looked > 0 then mutirao.now() when exists (select from mutirao.recheck) then mutirao.now() + interval '1 second' end);
end $$;
comment on function mutirao.tick(int) is 'One turn of a clock: due retries, ended leases, live instances behind their version. Any number of clocks may run.';
