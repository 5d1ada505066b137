-- What people do to instances and jobs: set, repair, cancel, suspend, resume, retry, skip.

-- An instance of a live flow follows the newest version before it is written to.
create or replace function mutirao.lock_instance(instance bigint) returns mutirao.instance
language plpgsql as $$
declare
  i mutirao.instance;
begin
  select * into i from mutirao.instance x where x.id = lock_instance.instance for no key update;
  if found and exists (select from mutirao.recheck) then
    perform mutirao.catch_up(array[i.id]);
    select * into i from mutirao.instance x where x.id = lock_instance.instance;
  end if;
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

create or replace function mutirao.lock_job(job bigint) returns mutirao.job
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

create or replace function mutirao.lock_jobs(instance bigint) returns void
language plpgsql as $$
begin
  perform from mutirao.job j where j.instance = lock_jobs.instance order by j.id for no key update;
end $$;
comment on function mutirao.lock_jobs(bigint) is 'Locks the jobs of an instance that is locked itself: from here on none of them is claimed.';

create or replace function mutirao.terms_without(reached int[], tasks int[]) returns int[]
language sql immutable
return array(select t from unnest(reached) t where mutirao.term_task(t) <> all (tasks));

create or replace function mutirao.terms_without_end(v mutirao.version, reached int[], task int) returns int[]
language plpgsql stable as $$
declare
  principals int[] := case when task = any (v.standing) then mutirao.principals(v.id, task) else '{}' end;
begin
  return array(
    select t from unnest(reached) t
    where mutirao.term_task(t) <> task and (mutirao.term_task(t) <> all (principals) or mutirao.term_state(t) not in ('succeeded', 'failed')));
end $$;
comment on function mutirao.terms_without_end(mutirao.version, int[], int) is 'The reached terms when a job of a task has not ended after all; those in whose place it runs have not, either.';

create or replace function mutirao.version_of(i mutirao.instance) returns mutirao.version
language sql stable
return (select v from mutirao.version v where v.id = i.version);

-- Writes without a job, one an instance. Each row comes with what its instance is to become; here it gets what follows from that.
create or replace function mutirao.write_all(writes mutirao.work[]) returns setof mutirao.settled
language plpgsql as $$
declare
  work mutirao.work[];
  versions int[];
  refused mutirao.settled[];
  unblocked bigint[];
begin
  select array_agg(row(w.n, w.kind, w.instance, w.flow, w.version, w.job, w.task, w.attempt, w.cause, w.change, w.state || coalesce(w.change, '{}'),
      w.pending, w.failed, w.fired, w.reached, w.latest, coalesce(w.held, w.pending || w.failed || w.fired), w.parked, w.reasons, w.hold, w.firings,
      w.priority, w.started_at, w.writer, w.note)::mutirao.work order by w.version, w.instance),
    array_agg(distinct w.version)
    into work, versions
  from unnest(writes) w;
  if work is null then return; end if;
  select array_agg(s) into refused from mutirao.settle(work, versions, null) s where s.kind = 'refused';
  select array_agg(i.id) into unblocked from mutirao.instance i
  where i.id = any (array(select w.instance from unnest(work) w)) and i.parked > 0 and i.hold is null
    and not exists (select from unnest(refused) r where r.instance = i.id);
  if unblocked is not null then
    perform mutirao.finish_parked(unblocked);
  end if;
  return query select * from unnest(refused);
end $$;
comment on function mutirao.write_all(mutirao.work[]) is 'Writes without a job, one row an instance, which must be locked. Answers those that are refused.';

create or replace function mutirao.refusal_words(refused mutirao.settled) returns text
language sql stable
return format('instance %s: %s', refused.instance, coalesce(
  case when refused.note ->> 'task' is not null then format('condition of %s: ', refused.note ->> 'task') else '' end || (refused.note ->> 'error'),
  'the state would be final while jobs are pending; wait for them, or cancel the instance'));

create or replace function mutirao.write(w mutirao.work) returns void
language plpgsql as $$
declare
  refused mutirao.settled;
begin
  select * into refused from mutirao.write_all(array[w]);
  if found then
    perform mutirao.refuse(refused.note ->> 'code', mutirao.refusal_words(refused));
  end if;
end $$;

-- Its being ready may be what others wait for: so they are looked at as if it were.
create or replace function mutirao.fire_also(w mutirao.work, task int) returns boolean
language plpgsql as $$
declare
  v mutirao.version := (select x from mutirao.version x where x.id = w.version);
  looked mutirao.looked[];
begin
  w.held := coalesce(w.held, w.pending || w.failed || w.fired);
  looked := mutirao.look(array[w], array[v.id]);
  if looked[1].problem is null and not looked[1].final and task <> all (looked[1].fires) then
    w.held := w.held || task;
    w.reached := mutirao.reached_with(w.reached, v.terms, mutirao.without(array[task], v.gated), 'ready');
    w.latest := mutirao.latest_fired(w.latest, v.named, array[task], v.gated);
    looked := mutirao.look(array[w], array[v.id]);
    looked[1].fires := looked[1].fires || task;
  end if;
  perform mutirao.settle(array[w], array[v.id], null, looked);
  return exists (select from mutirao.job j where j.instance = w.instance and j.task = fire_also.task);
end $$;
comment on function mutirao.fire_also(mutirao.work, int) is
  'Writes without a job, as mutirao.write; and this task fires, whether or not its condition holds. Answers whether it has: it does not where the state is final, or a condition raises.';

create or replace function mutirao.work_of(i mutirao.instance, kind text, writer text, note jsonb) returns mutirao.work
language sql stable
return row(1, kind, i.id, i.flow, i.version, null, null, null, null, null, i.state, i.pending, i.failed, i.fired, i.reached, i.latest, null,
  i.parked, i.reasons, i.hold, i.firings, i.priority, i.started_at, writer, note)::mutirao.work;

create or replace function mutirao.note(text) returns jsonb
language plpgsql immutable as $$
begin
  if octet_length($1) > 64000 then
    perform mutirao.refuse('too_large', format('a reason has %s bytes, and the trace keeps at most 64000', octet_length($1)));
  end if;
  return case when $1 is not null then jsonb_build_object('reason', $1) end;
end $$;

------------------------------------------------------------------------------------------------------------------- people

create or replace function mutirao.set_instance(instance bigint, change jsonb, writer text, reason text) returns void
language plpgsql as $$
declare
  w mutirao.work := mutirao.work_of(mutirao.lock_instance(instance), 'set', writer, mutirao.note(reason));
begin
  if mutirao.is_undoing(w.hold, w.instance) then
    perform mutirao.refuse('instance_undoing', format('instance %s is being rolled back: only compensations change it', w.instance));
  end if;
  w.change := change;
  perform mutirao.write(w);
end $$;

-- A repair corrects the state and lets every condition be looked at as if nothing had failed: failed jobs go, and fire again where
-- their conditions still hold. A failure that some task handles is no exception, and stays. Whoever repairs a runaway has seen it, so
-- its firings are counted anew.
create or replace function mutirao.repair_instance(instance bigint, change jsonb, writer text, reason text, attempt bigint default null) returns void
language plpgsql as $$
declare
  i mutirao.instance := mutirao.lock_instance(instance);
  v mutirao.version := mutirao.version_of(i);
  w mutirao.work := mutirao.work_of(i, 'repair', writer, mutirao.note(reason));
  undone int[] := array(select unnest(i.failed) except select unnest(v.handled));
begin
  if mutirao.is_undoing(i.hold, i.id) then
    perform mutirao.refuse('instance_undoing', format('instance %s is being rolled back: %s', i.id, case when i.reasons is null then 'only compensations change it' else 'retry or skip the compensation that failed' end));
  elsif i.reasons is null then
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
  w.reasons := (select jsonb_agg(r) from jsonb_array_elements(i.reasons) r where r ->> 'code' = 'condition_failed' and r ? 'job' or r ->> 'code' = 'wait_circle');
  perform mutirao.write(w);
  -- settle looks after the _EXCPT job only of those that still have reasons.
  perform mutirao.show_exceptions(array[i.id]);
end $$;

-- What follows is done to many instances at once. They must be locked, and none of them cancelled before.
create or replace function mutirao.cancel_instances(instances bigint[], writer text, reason text) returns void
language plpgsql as $$
begin
  delete from mutirao.job j using mutirao.flow f
  where j.instance = any (instances) and f.id = j.flow and (j.status <> 'running' or j.task = f.exception_task);
  delete from mutirao.delayed d where d.instance = any (instances);
  delete from mutirao.undoing u where u.instance = any (instances);
  perform mutirao.steer_children(instances, 'cancel');
  perform mutirao.write_all(array(
    select row(1, 'cancel', i.id, i.flow, i.version, null, null, null, null, null, i.state,
      array(select j.task from mutirao.job j where j.instance = i.id), '{}', i.fired, i.reached, i.latest, null,
      0, null, 'cancelled', i.firings, i.priority, i.started_at, writer, mutirao.note(reason))::mutirao.work
    from mutirao.instance i where i.id = any (instances)));
end $$;

create or replace function mutirao.cancel_instance(instance bigint, writer text, reason text) returns void
language plpgsql as $$
begin
  perform mutirao.lock_instance(instance);
  perform mutirao.cancel_instances(array[instance], writer, reason);
end $$;

create or replace function mutirao.hold_before(instance bigint) returns text
language sql stable
return case
  when exists (select from mutirao.undoing u where u.instance = hold_before.instance) then 'undoing'
  when exists (select from mutirao.delayed d where d.instance = hold_before.instance) then 'delayed' end;
comment on function mutirao.hold_before(bigint) is 'How an instance was held when it was suspended.';

create or replace function mutirao.hold_instances(instances bigint[], kind text, writer text, reason text) returns void
language plpgsql as $$
declare
  flows int[];
begin
  if kind = 'suspend' then
    update mutirao.job j set status = 'held', due_at = null where j.instance = any (instances) and j.status in ('ready', 'waiting');
  else
    with moved as (update mutirao.job j set status = 'ready', due_at = null where j.instance = any (instances) and j.status = 'held' returning j.flow)
    select array_agg(distinct m.flow) into flows from moved m;
    if flows is not null then
      perform mutirao.wake(flows);
    end if;
    perform mutirao.resume_alerts(instances);
  end if;
  perform mutirao.steer_children(instances, kind);
  perform mutirao.write_all(array(
    select row(1, hold_instances.kind, i.id, i.flow, i.version, null, null, null, null, null, i.state, i.pending, i.failed, i.fired, i.reached, i.latest, null,
      i.parked, i.reasons, case when hold_instances.kind = 'suspend' then 'suspended' else mutirao.hold_before(i.id) end, i.firings, i.priority, i.started_at, writer, mutirao.note(reason))::mutirao.work
    from mutirao.instance i where i.id = any (instances)));
  if kind = 'resume' then
    perform mutirao.hand_out(instances);
  end if;
end $$;
comment on function mutirao.hold_instances(bigint[], text, text, text) is 'Suspends or resumes many instances. One whose time has still to come goes on waiting for it.';

create or replace function mutirao.suspend_instance(instance bigint, writer text, reason text) returns void
language plpgsql as $$
begin
  perform mutirao.lock_instance(instance);
  perform mutirao.hold_instances(array[instance], 'suspend', writer, reason);
end $$;

create or replace function mutirao.resume_instance(instance bigint, writer text, reason text) returns void
language plpgsql as $$
declare
  i mutirao.instance := mutirao.lock_instance(instance);
begin
  if i.hold is distinct from 'suspended' then
    perform mutirao.refuse('not_suspended', format('instance %s is %s: only a suspended instance is resumed', i.id, i.status));
  end if;
  perform mutirao.hold_instances(array[instance], 'resume', writer, reason);
end $$;

create or replace function mutirao.check_not_undoing(j mutirao.job) returns void
language plpgsql stable as $$
begin
  if j.undoes is null and (select mutirao.is_undoing(i.hold, i.id) from mutirao.instance i where i.id = j.instance) then
    perform mutirao.refuse('instance_undoing', format('instance %s is being rolled back: meanwhile only its compensations are retried or skipped', j.instance));
  end if;
end $$;

-- One job an instance.
create or replace function mutirao.retry_jobs(jobs bigint[], writer text, reason text) returns void
language plpgsql as $$
declare
  writes mutirao.work[];
  retried bigint[];
begin
  select array_agg(row(1, 'retry', i.id, i.flow, i.version, j.id, j.task, null, null, null, i.state,
      case when f.failed then i.pending || j.task else i.pending end, case when f.failed then array_remove(i.failed, j.task) else i.failed end, i.fired,
      case when f.failed then mutirao.reached_with(mutirao.terms_without_end(v, i.reached, j.task), v.terms, mutirao.without(array[j.task], v.gated), 'ready') else i.reached end,
      case when f.failed then mutirao.latest_fired(i.latest, v.named, array[j.task], v.gated) else i.latest end, null,
      i.parked, case when f.failed then mutirao.reasons_without(i.reasons, array[j.id]) else i.reasons end, i.hold, i.firings, i.priority, i.started_at,
      writer, mutirao.note(reason))::mutirao.work),
    array_agg(i.id)
    into writes, retried
  from mutirao.job j join mutirao.instance i on i.id = j.instance cross join lateral (select j.status = 'failed' as failed) f
  join mutirao.version v on v.id = i.version
  where j.id = any (jobs);
  update mutirao.job j set status = case when mutirao.job_hold(i.hold, i.id, j.cause, j.undoes) is null then 'ready' else 'held' end::mutirao.job_status,
    due_at = null, failures = 0, losses = 0
  from mutirao.instance i where j.id = any (jobs) and i.id = j.instance;
  perform mutirao.wake(array(select distinct w.flow from unnest(writes) w));
  perform mutirao.write_all(writes);
  -- What is tried again is tried on the state as it is by now: somebody may have corrected it for that.
  update mutirao.job j set cause = r.id, slot = coalesce((select mutirao.slot_of(r.state, t.per) from mutirao.throttle t where t.task = j.task and t.per is not null), j.slot)
  from unnest(writes) w cross join lateral (select t.id, t.state from mutirao.trace t where t.instance = w.instance and t.kind = 'retry' and t.job = w.job order by t.id desc limit 1) r
  where j.id = w.job;
  perform mutirao.offer_items(array(select j.id from mutirao.job j where j.id = any (jobs) and j.role is not null));
  perform mutirao.want_children(array(select j.id from mutirao.job j where j.id = any (jobs) and j.by_clock and mutirao.is_childs(j)));
  perform mutirao.show_exceptions(retried);
end $$;
comment on function mutirao.retry_jobs(bigint[], text, text) is 'Tries jobs again that have failed or wait for another try, at most one of each instance.';

create or replace function mutirao.retry_job(job bigint, writer text, reason text) returns void
language plpgsql as $$
declare
  j mutirao.job := mutirao.lock_job(job);
begin
  if mutirao.job_state(j.status, j.gate) not in ('failed', 'waiting') then
    perform mutirao.refuse('job_not_failed', format('job %s is %s: only a job that has failed or waits for another try is retried', job, mutirao.job_state(j.status, j.gate)));
  end if;
  perform mutirao.check_not_undoing(j);
  perform mutirao.retry_jobs(array[job], writer, reason);
end $$;

-- The job ends as if it had succeeded, with the change given. In this one look its task is held, or it would fire again at once
-- wherever the change does not take its condition away.
create or replace function mutirao.skip_job(job bigint, change jsonb, writer text, reason text) returns void
language plpgsql as $$
declare
  j mutirao.job := mutirao.lock_job(job);
  i mutirao.instance;
  v mutirao.version;
  w mutirao.work;
begin
  select * into i from mutirao.instance x where x.id = j.instance;
  if j.status = 'running' then
    perform mutirao.refuse('job_running', coalesce(
      (select format('job %s is done by its child, instance %s: cancel that instance first', skip_job.job, c.instance) from mutirao.child c where j.id in (c.job, c.undone_by)),
      format('job %s is running at %s: wait for it, or %s', job, j.worker, case when j.role is null then 'let its lease end' else 'let them return it' end)));
  elsif j.task = (select f.exception_task from mutirao.flow f where f.id = j.flow) then
    perform mutirao.refuse('job_not_failed', format('job %s stands for the exceptions of instance %s: repair the instance', job, i.id));
  end if;
  perform mutirao.check_not_undoing(j);
  v := mutirao.version_of(i);
  w := mutirao.work_of(i, 'skip', writer, mutirao.note(reason));
  w.job := j.id;
  w.task := j.task;
  w.cause := j.cause;
  w.change := change;
  w.pending := array_remove(i.pending, j.task);
  w.failed := array_remove(i.failed, j.task);
  w.held := i.pending || i.failed || i.fired;
  w.parked := i.parked - (j.status = 'parked')::int;
  w.reached := mutirao.reached_by(v, mutirao.terms_without(i.reached, array[j.task]), j.task, false);
  w.latest := mutirao.latest_by(v, i.latest, j.task, false);
  w.reasons := mutirao.reasons_without(i.reasons, array[j.id]);
  if j.undoes is not null then
    w.note := coalesce(w.note, '{}') || jsonb_build_object('undoes', j.undoes);
  end if;
  perform mutirao.write(w);
  perform mutirao.show_exceptions(array[i.id]);
end $$;

create or replace function mutirao.task_of(i mutirao.instance, task text) returns int
language plpgsql stable as $$
declare
  found_task int := (select t.id from mutirao.rule r join mutirao.task t on t.id = r.task
    where r.version = i.version and r.enabled and t.name = task_of.task and t.name <> '_FINAL' and r.stands_by is distinct from 'compensation');
begin
  if found_task is null then
    perform mutirao.refuse('unknown_task', format('the flow of instance %s has no task "%s" to start; it has %s', i.id, task, (
      select string_agg(t.name, ', ' order by r.position) from mutirao.rule r join mutirao.task t on t.id = r.task
      where r.version = i.version and r.enabled and t.name <> '_FINAL' and r.stands_by is distinct from 'compensation')));
  end if;
  return found_task;
end $$;

create or replace function mutirao.check_at_work(i mutirao.instance) returns void
language plpgsql stable as $$
begin
  if i.hold = 'suspended' then
    perform mutirao.refuse('instance_suspended', format('instance %s is interrupted: resume it first', i.id));
  elsif i.hold = 'undoing' then
    perform mutirao.refuse('instance_undoing', format('instance %s is being rolled back', i.id));
  elsif i.hold is not null then
    perform mutirao.refuse('instance_suspended', format('instance %s has not begun yet', i.id));
  end if;
end $$;

-- Starts a task by hand, whether or not its condition holds.
create or replace function mutirao.start_task_of(instance bigint, task text, writer text, reason text) returns void
language plpgsql as $$
declare
  i mutirao.instance := mutirao.lock_instance(instance);
  t int := mutirao.task_of(i, task);
begin
  perform mutirao.check_at_work(i);
  if t = any (i.pending || i.failed) then
    perform mutirao.refuse('job_pending', format('task "%s" of instance %s has a job: %s', task, i.id, case when t = any (i.failed) then 'retry it' else 'wait for it' end));
  end if;
  i.firings := 0;
  if not mutirao.fire_also(mutirao.work_of(i, 'start_task', writer, coalesce(mutirao.note(reason), '{}') || jsonb_build_object('task', task)), t) then
    perform mutirao.refuse('task_not_started', format('task "%s" of instance %s cannot start as its state is: mutirao why %s says more', task, i.id, i.id));
  end if;
  perform mutirao.show_exceptions(array[i.id]);
end $$;

-- Goes back to a task that has ended: it starts again, and what followed it is as if it had not been. Nothing is undone.
create or replace function mutirao.go_back_to(instance bigint, task text, writer text, reason text) returns void
language plpgsql as $$
declare
  i mutirao.instance := mutirao.lock_instance(instance);
  t int := mutirao.task_of(i, task);
  w mutirao.work := mutirao.work_of(i, 'go_back', writer, mutirao.note(reason));
  since bigint;
begin
  perform mutirao.check_at_work(i);
  perform mutirao.lock_jobs(i.id);
  select max(e.id) into since from mutirao.ends(i.id) e where e.task = t and not e.is_forgotten;
  if t = any (i.pending) then
    perform mutirao.refuse('job_pending', format('task "%s" of instance %s has a job: wait for it', task, i.id));
  elsif since is null then
    perform mutirao.refuse('task_not_done', format('task "%s" of instance %s has not ended yet: there is nothing to go back to', task, i.id));
  elsif exists (select from mutirao.job j where j.instance = i.id and j.status = 'running' and (j.cause >= since or j.task = t)) then
    perform mutirao.refuse('job_running', format('instance %s has jobs running that followed task "%s": wait for them, or let them be returned', i.id, task));
  end if;
  delete from mutirao.child c using mutirao.job j where j.id = c.job and j.instance = i.id and c.instance is null and (j.cause >= since or j.task = t);
  delete from mutirao.job j using mutirao.flow f where f.id = i.flow and j.instance = i.id and (j.cause >= since or j.task = t) and j.task <> f.exception_task;
  w.note := coalesce(w.note, '{}') || jsonb_build_object('task', task, 'since', since);
  w.pending := array(select j.task from mutirao.job j where j.instance = i.id and j.status <> 'failed' and j.task = any (i.pending) order by j.id);
  w.failed := array(select j.task from mutirao.job j where j.instance = i.id and j.status = 'failed' order by j.id);
  w.parked := (select count(*) from mutirao.job j where j.instance = i.id and j.status = 'parked');
  w := mutirao.marked_before(w, since, t);
  perform mutirao.forget_alarms(w);
  w.reasons := (select jsonb_agg(r) from jsonb_array_elements(i.reasons) r where (r ->> 'job')::bigint in (select j.id from mutirao.job j where j.instance = i.id));
  w.firings := 0;
  if not mutirao.fire_also(w, t) then
    perform mutirao.refuse('task_not_started', format('task "%s" of instance %s cannot start as its state is: mutirao why %s says more', task, i.id, i.id));
  end if;
  perform mutirao.show_exceptions(array[i.id]);
end $$;
