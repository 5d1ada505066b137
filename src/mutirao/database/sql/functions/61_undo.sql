-- Undoing: a rollback goes back over what was done, by the compensations that tasks name.
--
-- B follows A if B's job was fired by A's write or after it: the row of the trace that is B's cause is not before the row by which A ended. A job that
-- somebody lets be tried again is fired by that: it sees what A wrote.
-- A is undone when all that follow it are; of two that do not follow each other neither waits for the other. What was undone stands in the trace,
-- as rows that name the row they undo; so a rollback is found again where it was, whoever was killed meanwhile.
--
-- While an instance is rolled back nothing fires. What runs ends first; what had not begun goes. The state changes only by what compensations write.

create or replace function mutirao.is_undoing(hold text, instance bigint) returns boolean
language sql stable
return case hold when 'undoing' then true when 'suspended' then exists (select from mutirao.undoing u where u.instance = is_undoing.instance) else false end;
comment on function mutirao.is_undoing(text, bigint) is 'Whether an instance that is held so is being rolled back, if only when it is resumed.';

create or replace function mutirao.job_hold(hold text, instance bigint, cause bigint, undoes bigint) returns text
language sql stable
return case
  when hold is distinct from 'undoing' then hold
  when undoes is not null then null
  when cause >= (select u.since from mutirao.undoing u where u.instance = job_hold.instance) then 'cancelled'
  else 'suspended' end;
comment on function mutirao.job_hold(text, bigint, bigint, bigint) is
  'How a job is held by what its instance is held by. In a rollback compensations go on, what is to be undone ends when it can, and the rest is interrupted.';

-- A rollback to a safe-point undoes what follows it; going back takes that back without undoing it, and also what its task had done before. One pass over
-- the trace: an instance may have ended thousands of jobs, and whoever asks holds it. Tasks that became others in a migration are told by what they are now.
create or replace function mutirao.ends(instance bigint, until bigint default 9223372036854775807)
returns table (id bigint, kind text, version int, job bigint, task int, was int, cause bigint, is_compensation boolean, is_compensated boolean, is_forgotten boolean)
language sql stable as $$
  with known as materialized (select mutirao.renamings(ends.instance) as renamings),
  past as materialized (
    select t.id, t.kind, t.flow, t.version, t.job, mutirao.task_since(k.renamings, t.id, t.task, ends.until) as task, t.task as was, t.cause, (t.note ->> 'undoes')::bigint as undoes, case when t.kind = 'go_back' then t.note ->> 'task' end as again,
      min((t.note ->> 'since')::bigint) filter (where t.kind in ('rolled_back', 'go_back')) over (order by t.id desc) as back_to
    from known k, mutirao.trace t where t.instance = ends.instance and t.id < ends.until and t.kind in ('finish', 'skip', 'compensate', 'rolled_back', 'go_back'))
  select p.id, p.kind, p.version, p.job, p.task, p.was, p.cause, p.undoes is not null, u.undoes is not null, coalesce(p.back_to <= p.cause, false) or coalesce(p.id < g.id, false)
  from past p left join (select distinct x.undoes from past x) u on u.undoes = p.id
  left join (
    select mutirao.task_since(k.renamings, x.id, t.id, ends.until) as task, max(x.id) as id from known k, past x join mutirao.task t on t.flow = x.flow and t.name = x.again
    group by 1) g on g.task = p.task
  where p.kind in ('finish', 'skip', 'compensate')
$$;
comment on function mutirao.ends(bigint, bigint) is
  'The rows by which jobs of an instance have ended well, before another row of its trace; whether each undoes another, was undone, or was taken back, so that it may happen again.';

create or replace function mutirao.is_childs_own(t mutirao.trace) returns boolean
language sql stable
return t.kind in ('fail', 'drop') and not coalesce(t.note ? 'undoes', false)
  and not exists (select from mutirao.trace r where r.instance = t.instance and r.id > t.id
    and (r.kind = 'retry' and r.job = t.job or r.kind in ('compensate', 'skip') and (r.note ->> 'undoes')::bigint = t.id));
comment on function mutirao.is_childs_own(mutirao.trace) is
  'Whether a job failed for good that is no compensation, and was not undone: if its child has completed, its outputs were refused, and what it did is done.';

create or replace function mutirao.undoable(instance bigint, since bigint)
returns table (done bigint, cause bigint, task int, job bigint, compensation int, critical boolean, child bigint)
language sql stable as $$
  select t.id, t.cause, t.task, t.job, r.compensation, coalesce(r.critical, g.critical or g.compensation is not null or c.instance is not null, false), c.instance
  from mutirao.instance i cross join lateral (
    select e.id, e.kind, e.version, e.job, e.task, e.was, e.cause from mutirao.ends(i.id) e where e.kind = 'finish' and not e.is_compensated
    union all
    select x.id, x.kind, x.version, x.job, mutirao.task_since(mutirao.renamings(i.id), x.id, x.task), x.task, x.cause
    from mutirao.child k join mutirao.trace x on x.instance = k.parent and x.job = k.job
    where k.parent = i.id and mutirao.is_childs_own(x)) t
  left join mutirao.rule r on r.version = i.version and r.task = t.task
  left join mutirao.rule g on g.version = t.version and g.task = t.was and r.task is null
  left join mutirao.child c on c.job = t.job and r.compensation is null and (c.status = 'closed.completed' or c.undone_by is not null)
  where i.id = undoable.instance and t.cause >= undoable.since and (t.kind = 'finish' or c.job is not null)
$$;
comment on function mutirao.undoable(bigint, bigint) is
  'The finished jobs of an open instance that follow a row of its trace and were not undone. One whose compensation the version has no more cannot be undone.';

create or replace function mutirao.undoable_soon(instance bigint, since bigint) returns table (job bigint, task int, compensation int, critical boolean)
language sql stable as $$
  select j.id, j.task, r.compensation, coalesce(r.critical, (
    select g.critical or g.compensation is not null or g.child is not null from mutirao.trace t join mutirao.rule g on g.version = t.version and g.task = j.task
    where t.instance = j.instance and t.id = j.cause), false)
  from mutirao.job j join mutirao.instance i on i.id = j.instance left join mutirao.rule r on r.version = i.version and r.task = j.task
  where j.instance = undoable_soon.instance and (j.status = 'running' or j.change is not null) and j.cause >= undoable_soon.since
$$;
comment on function mutirao.undoable_soon(bigint, bigint) is 'The jobs of an open instance that follow a row of its trace and run, or wait with their change: a rollback lets them end first.';

create or replace function mutirao.critical_words(instance bigint, since bigint) returns text
language plpgsql stable as $$
begin
  return (select c.words from mutirao.critical_tasks(instance, since) c limit 1);
end $$;
comment on function mutirao.critical_words(bigint, bigint) is 'What cannot be undone among what a rollback would undo; null: nothing.';

-- A child that has ended is looked into by its own trace: it is closed, so nothing is rolled back in it at this moment.
create or replace function mutirao.critical_tasks(instance bigint, since bigint) returns table (task int, words text)
language sql stable as $$
  select t.id, format('task "%s" of instance %s', t.name, critical_tasks.instance)
  from (
    select u.task from mutirao.undoable(critical_tasks.instance, critical_tasks.since) u where u.critical
    union all
    select u.task from mutirao.undoable_soon(critical_tasks.instance, critical_tasks.since) u where u.critical
    union all
    select r.task from mutirao.closed c cross join mutirao.ends(c.id) e join mutirao.rule r on r.version = c.version and r.task = e.task and e.kind = 'finish'
    where c.id = critical_tasks.instance and c.status = 'closed.completed' and r.critical) x
  join mutirao.task t on t.id = x.task
  union all
  select x.task, w.words
  from (
    select u.task, u.child from mutirao.undoable(critical_tasks.instance, critical_tasks.since) u where u.child is not null
    union
    select j.task, c.instance from mutirao.child c join mutirao.job j on j.id = c.job
    where c.parent = critical_tasks.instance and c.instance is not null and j.cause >= critical_tasks.since
    union
    select c.task, c.instance from mutirao.child c
    where c.parent = critical_tasks.instance and c.instance is not null and not exists (select from mutirao.instance i where i.id = critical_tasks.instance)) x
  cross join lateral mutirao.critical_words(x.child, 0) w(words) where w.words is not null
$$;
comment on function mutirao.critical_tasks(bigint, bigint) is 'The tasks of an instance for which it is not rolled back: they are critical, or something is in what their children did; and what that is.';

create or replace function mutirao.critical_now(instance bigint, since bigint) returns text
language plpgsql as $$
begin
  perform mutirao.lock_jobs(instance);
  return mutirao.critical_words(instance, since);
end $$;
comment on function mutirao.critical_now(bigint, bigint) is 'As mutirao.critical_words, of an instance that is locked; what a worker is just claiming counts as running.';

-- The instances are locked, and nothing in them is critical.
create or replace function mutirao.undo_instances(instances bigint[], since bigint, writer text, reason text, hold text default 'undoing') returns void
language plpgsql as $$
begin
  insert into mutirao.undoing as u (instance, since, begun_at) select n, undo_instances.since, mutirao.now() from unnest(instances) n
  on conflict on constraint undoing_pkey do update set since = least(u.since, excluded.since);
  delete from mutirao.delayed d where d.instance = any (instances);
  perform from mutirao.child c where c.parent = any (instances) order by c.job for update;
  -- Of a parent that was interrupted, children that are not undone go on with it: it waits for them.
  update mutirao.child c set wants = case when u.is_undone then 'undo' else 'resume' end, due_at = mutirao.now()
  from mutirao.job j join mutirao.instance i on i.id = j.instance cross join lateral (select j.undoes is null and j.cause >= undo_instances.since as is_undone) u
  where c.parent = any (instances) and c.instance is not null and c.status is null and j.id in (c.job, c.undone_by)
    and (u.is_undone or i.hold = 'suspended' and undo_instances.hold = 'undoing');
  if found then
    perform pg_notify('mutirao', 'clock');
  end if;
  perform mutirao.write_all(array(
    select row(1, 'roll_back', i.id, i.flow, i.version, null, null, null, null, null, i.state, i.pending, i.failed, i.fired, i.reached, i.latest, null,
      i.parked, (select jsonb_agg(r) from jsonb_array_elements(i.reasons) r where r ? 'job'), undo_instances.hold, i.firings, i.priority, i.started_at, writer,
      coalesce(mutirao.note(reason), '{}') || case when undo_instances.since > 0 then jsonb_build_object('since', undo_instances.since) else '{}' end)::mutirao.work
    from mutirao.instance i where i.id = any (instances)));
end $$;
comment on function mutirao.undo_instances(bigint[], bigint, text, text, text) is
  'Begins to roll instances back: what follows this row of their trace; 0: everything. One that stays suspended begins when it is resumed.';

-- What has not begun goes, and what does not follow the safe-point rests. Answers whether something still runs that is to end first.
create or replace function mutirao.clear_for_undo(i mutirao.instance, since bigint) returns boolean
language plpgsql as $$
declare
  excepted int := (select f.exception_task from mutirao.flow f where f.id = i.flow);
begin
  delete from mutirao.child c using mutirao.job j where c.job = j.id and c.instance is null and j.instance = i.id and j.undoes is null and j.cause >= since;
  delete from mutirao.job j where j.instance = i.id and j.undoes is null and j.status <> 'running' and j.cause >= since and j.task <> excepted;
  update mutirao.job j set status = 'held', due_at = null where j.instance = i.id and j.undoes is null and j.status in ('ready', 'waiting') and j.task <> excepted;
  update mutirao.instance x set
    pending = array(select j.task from mutirao.job j where j.instance = i.id and j.status <> 'failed' and j.task <> excepted order by j.id),
    failed = array(select j.task from mutirao.job j where j.instance = i.id and j.status = 'failed' order by j.id),
    parked = (select count(*) from mutirao.job j where j.instance = i.id and j.status = 'parked'),
    reasons = k.reasons, status = case when k.reasons is null then 'open.running' else 'open.exception' end::mutirao.instance_status
  from (select jsonb_agg(r) as reasons from jsonb_array_elements(i.reasons) r where exists (select from mutirao.job j where j.id = (r ->> 'job')::bigint)) k
  where x.id = i.id;
  return exists (select from mutirao.job j where j.instance = i.id and j.undoes is null and j.status = 'running' and j.task <> excepted);
end $$;

-- The jobs that undo what nothing undoable follows any more. A task that undoes several undoes one at a time.
create or replace function mutirao.make_compensations(i mutirao.instance, since bigint) returns int
language plpgsql as $$
declare
  at timestamptz := mutirao.now();
  latest bigint := (select max(t.id) from mutirao.trace t where t.instance = i.id and t.state is not null);
  made bigint[];
  todo int;
begin
  with todo as materialized (
    select u.*, coalesce(u.compensation, u.task) as by from mutirao.undoable(i.id, since) u where u.compensation is not null or u.child is not null),
  free as (
    select distinct on (t.by) t.* from todo t
    where t.done > (select max(f.cause) from todo f) and not exists (select from mutirao.job j where j.instance = i.id and j.task = t.by)
    order by t.by, t.done desc),
  made as (
    insert into mutirao.job (instance, flow, task, status, by_clock, role, class, slot, priority, cause, timeout, undoes, created_at, attempt, worker, lease_until)
    select i.id, i.flow, f.by, case when f.child is null then 'ready' else 'running' end::mutirao.job_status,
      f.child is not null or r.child is not null, case when f.child is null then r.role end, case when f.child is null then r.class_id end,
      case when f.child is null and r.slot_by is not null then mutirao.slot_of(i.state, r.slot_by) end, r.priority + i.priority, latest,
      case when f.child is null then r.timeout end, f.done, at,
      case when f.child is not null then nextval('mutirao.attempt_number') end, case when f.child is not null then 'child' end,
      case when f.child is not null then 'infinity'::timestamptz end
    from free f join mutirao.rule r on r.version = i.version and r.task = f.by order by f.done desc
    returning id, undoes, task),
  undone as (
    update mutirao.child c set wants = 'undo', undone_by = m.id, due_at = at from made m join free f on f.done = m.undoes where c.instance = f.child)
  select (select count(*) from todo), (select array_agg(m.id) from made m) into todo, made;
  if made is not null then
    update mutirao.instance x set pending = x.pending || array(select j.task from mutirao.job j where j.id = any (made)) where x.id = i.id;
    perform mutirao.hand_out_made(made);
  end if;
  return todo;
end $$;
comment on function mutirao.make_compensations(mutirao.instance, bigint) is 'Answers how many jobs are still to be undone.';

create or replace function mutirao.hand_out_made(jobs bigint[]) returns void
language plpgsql as $$
declare
  of_people bigint[] := array(select j.id from mutirao.job j where j.id = any (jobs) and j.role is not null);
  of_children bigint[] := array(select j.id from mutirao.job j where j.id = any (jobs) and j.by_clock and j.status = 'ready');
begin
  perform mutirao.wake(array(select distinct j.flow from mutirao.job j where j.id = any (jobs)));
  if of_people <> '{}' then
    perform mutirao.offer_items(of_people);
  end if;
  if of_children <> '{}' then
    perform mutirao.want_children(of_children);
  end if;
  if exists (select from mutirao.child c where c.undone_by = any (jobs)) then
    perform pg_notify('mutirao', 'clock');
  end if;
end $$;
comment on function mutirao.hand_out_made(bigint[]) is 'Tells those who are to do jobs that were just made: workers, people or other instances.';

-- The marks are not taken from those there were: a task has reached what its own jobs and those of its contingencies have, and of these some stay.
create or replace function mutirao.marked_before(w mutirao.work, since bigint, again int, until bigint default 9223372036854775807) returns mutirao.work
language plpgsql stable as $$
declare
  v mutirao.version := (select x from mutirao.version x where x.id = w.version);
  stays int[];
  ended bigint[];
  e record;
begin
  select coalesce(array_agg(x.task), '{}'), array_agg(x.id) into stays, ended from (
    select t.task, max(t.id) as id from mutirao.ends(w.instance, until) t
    where t.cause < since and t.task is distinct from again and not t.is_compensation and not t.is_forgotten group by 1) x;
  w.fired := array(select unnest(v.once) intersect select unnest(stays || w.pending || w.failed));
  w.reached := array(select t from unnest(w.reached) t where mutirao.term_state(t) in ('ready', 'running') and mutirao.term_task(t) = any (stays || w.pending || w.failed));
  w.latest := w.latest - array(select t.name from mutirao.task t where t.id = any (v.named) and t.id <> all (w.pending));
  -- In the order in which it happened: what has failed may have been replaced since. What fails at this moment has no row yet.
  for e in
    select s.task, s.id, false as is_failed from unnest(stays, ended) s(task, id)
    union all
    select f, (select max(t.id) from mutirao.trace t where t.instance = w.instance and t.id < until and t.task = f and t.kind = 'fail'), true from unnest(w.failed) f
    order by 2
  loop
    w.reached := mutirao.reached_by(v, w.reached, e.task, e.is_failed);
    if e.task <> all (w.pending) then
      w.latest := mutirao.latest_by(v, w.latest, e.task, e.is_failed);
    end if;
  end loop;
  return w;
end $$;
comment on function mutirao.marked_before(mutirao.work, bigint, int, bigint) is
  'An instance with the marks that are left when all goes that follows a row of its trace, and all that one task has done. Its jobs are those that stay.';

create or replace function mutirao.end_undo(i mutirao.instance, since bigint) returns void
language plpgsql as $$
declare
  w mutirao.work := mutirao.work_of(i, 'rolled_back', 'mutirao', null);
begin
  delete from mutirao.undoing u where u.instance = i.id;
  if since = 0 then
    w.hold := 'undone';
  else
    w := mutirao.marked_before(w, since, null);
    perform mutirao.forget_alarms(w);
    w.hold := null;
    w.note := jsonb_build_object('since', since);
    update mutirao.job j set status = 'ready', due_at = null where j.instance = i.id and j.status = 'held';
    perform mutirao.resume_alerts(array[i.id]);
    perform mutirao.wake(array[i.flow]);
  end if;
  perform mutirao.write(w);
  if since > 0 then
    perform mutirao.hand_out(array[i.id]);
  end if;
end $$;

create or replace function mutirao.undo_next(instances bigint[]) returns void
language plpgsql as $$
declare
  i mutirao.instance;
  since bigint;
  parked mutirao.entry;
begin
  for i in select x.* from mutirao.instance x where x.id = any (instances) and x.hold = 'undoing' order by x.id loop
    since := (select u.since from mutirao.undoing u where u.instance = i.id);
    select 1, 1, j.id, null, j.instance, j.task, j.cause, j.failures, j.change, null, 'mutirao', j.undoes into parked
    from mutirao.job j where i.parked > 0 and j.instance = i.id and j.status = 'parked' and j.change is not null and j.cause >= since order by j.id limit 1;
    if found then
      -- It is done, and nothing keeps its change back any more: writing it comes here again. If it is refused, the job has failed.
      perform mutirao.finish_round(array[parked], 1, null);
      delete from mutirao.job j where j.id = parked.job;
      if found then
        perform mutirao.undo_next(array[i.id]);
      end if;
      continue;
    end if;
    continue when mutirao.clear_for_undo(i, since);
    select * into i from mutirao.instance x where x.id = i.id;
    if mutirao.make_compensations(i, since) = 0 then
      perform mutirao.end_undo(i, since);
    end if;
  end loop;
end $$;
comment on function mutirao.undo_next(bigint[]) is 'Goes on with the rollback of instances, which are locked, as far as it can go now.';

------------------------------------------------------------------------------------------------------------------ beginning

create or replace function mutirao.safe_points(i mutirao.instance) returns table (id bigint, task int)
language sql stable as $$
  select e.id, e.task from mutirao.ends(i.id) e join mutirao.rule r on r.version = i.version and r.task = e.task
  where r.safe_point and not e.is_forgotten and not e.is_compensated
$$;
comment on function mutirao.safe_points(mutirao.instance) is 'The safe-points that an instance has passed, and the rows of the trace by which they ended.';

create or replace function mutirao.safe_point_before(instance bigint, trace bigint) returns bigint
language sql stable as $$
  select coalesce(max(s.id), 0) from mutirao.instance i cross join mutirao.safe_points(i) s where i.id = safe_point_before.instance and s.id <= safe_point_before.trace
$$;
comment on function mutirao.safe_point_before(bigint, bigint) is 'The row of the trace by which the last safe-point before another row ended; 0: there is none.';

-- A job has failed for good. Its instance is locked.
create or replace function mutirao.undo_failed(s mutirao.verdict) returns void
language plpgsql as $$
declare
  action text := (select r.on_failure from mutirao.rule r where r.version = s.version and r.task = s.task);
  since bigint := 0;
  critical text;
begin
  if coalesce(action, 'block') not in ('roll_back', 'safe_point') or exists (select from mutirao.job j where j.id = s.job and j.undoes is not null) then return; end if;
  if action = 'safe_point' then
    since := mutirao.safe_point_before(s.instance, (select j.cause from mutirao.job j where j.id = s.job));
  end if;
  critical := mutirao.critical_now(s.instance, since);
  if critical is not null then
    update mutirao.instance i set reasons = coalesce(i.reasons, '[]') || jsonb_build_object('code', 'critical_task', 'job', s.job,
      'error', format('it is not rolled back: %s is critical and has ended', critical)) where i.id = s.instance;
  else
    perform mutirao.undo_instances(array[s.instance], since, 'mutirao', format('task "%s" failed', (select t.name from mutirao.task t where t.id = s.task)),
      (select case when i.hold = 'suspended' then i.hold else 'undoing' end from mutirao.instance i where i.id = s.instance));
  end if;
end $$;

create or replace function mutirao.safe_point_named(i mutirao.instance, task text) returns bigint
language plpgsql stable as $$
declare
  found_point bigint := (select max(s.id) from mutirao.safe_points(i) s join mutirao.task n on n.id = s.task where n.name = safe_point_named.task);
begin
  if found_point is null then
    perform mutirao.refuse('unknown_safe_point', format('instance %s has passed no safe-point "%s"; it has passed %s', i.id, task, coalesce(
      (select string_agg(distinct n.name, ', ') from mutirao.safe_points(i) s join mutirao.task n on n.id = s.task), 'none')));
  end if;
  return found_point;
end $$;

create or replace function mutirao.undo_instance(instance bigint, safe_point text, writer text, reason text) returns void
language plpgsql as $$
declare
  i mutirao.instance := mutirao.lock_instance(instance);
  back_to bigint := case when safe_point is null then 0 else mutirao.safe_point_named(i, safe_point) end;
  critical text := mutirao.critical_now(instance, back_to);
begin
  if (select u.since <= back_to from mutirao.undoing u where u.instance = i.id) then
    perform mutirao.refuse('instance_undoing', format('instance %s is being rolled back already', instance));
  elsif critical is not null then
    perform mutirao.refuse('critical_task', format('%s is critical and cannot be undone: nothing was', critical));
  end if;
  perform mutirao.undo_instances(array[instance], back_to, writer, reason);
end $$;

create or replace function mutirao.roll_back(instance bigint, safe_point text default null, reason text default null, writer text default session_user) returns void
language sql security definer begin atomic select mutirao.undo_instance(instance, safe_point, mutirao.signed(writer), reason); end;
comment on function mutirao.roll_back(bigint, text, text, text) is
  'Undoes what an instance has done, by the compensations of its tasks, and closes it as terminated; or back to a safe-point, from which it goes on.';

-- Nothing is locked: whoever asks is told, and the rollback itself looks again. What a child has done is undone by the child, unless its task names a compensation.
create or replace function mutirao.preview_undo(actor int, instance bigint, safe_point text default null)
returns table (task text, times bigint, compensation text, is_critical boolean, by_child boolean, is_running boolean)
language plpgsql stable security definer as $$
declare
  i mutirao.instance := (select x from mutirao.instance x where x.id = preview_undo.instance);
  since bigint := 0;
begin
  perform mutirao.check_steer(actor, instance);
  if i.id is null then
    perform mutirao.refuse('instance_closed', format('instance %s has ended and takes no more changes', instance));
  elsif safe_point is not null then
    since := mutirao.safe_point_named(i, safe_point);
  end if;
  return query
    with refusing as materialized (select distinct c.task from mutirao.critical_tasks(i.id, since) c),
    undone as (
      select u.task, u.compensation, u.child, u.done, false as is_running from mutirao.undoable(i.id, since) u
      union all
      select u.task, u.compensation, case when u.compensation is null then k.instance end, null, true
      from mutirao.undoable_soon(i.id, since) u join mutirao.job j on j.id = u.job join mutirao.flow f on f.id = j.flow and f.exception_task <> j.task
        left join mutirao.child k on k.job = j.id where j.undoes is null)
    select t.name, count(x.done), c.name, t.id in (select r.task from refusing r), bool_or(x.child is not null), bool_or(x.is_running)
    from (
      select u.task, u.compensation, u.child, u.done, u.is_running from undone u
      union all
      -- Nothing of these would be undone, and yet they are in the way: a compensation at work, or a task that failed after its child had ended.
      select r.task, null, null, null, false from refusing r where not exists (select from undone u where u.task = r.task)) x
    join mutirao.task t on t.id = x.task left join mutirao.task c on c.id = x.compensation
    group by t.id, t.name, c.name order by max(x.done) desc nulls first, t.name;
end $$;
comment on function mutirao.preview_undo(int, bigint, text) is
  'What a rollback would undo, task by task, the last first, for whoever may order it. is_critical: it would be refused. is_running: that ends first.';

--------------------------------------------------------------------------------------------------------------------- children

-- Its parent has still to hear how it ends this time.
create or replace function mutirao.reopen_to_undo(instance bigint) returns boolean
language plpgsql as $$
begin
  with gone as (
    delete from mutirao.closed c where c.id = reopen_to_undo.instance and c.status <> 'closed.terminated' returning c.*)
  insert into mutirao.instance (id, flow, version, status, state, fired, reached, latest, firings, priority, started_at)
  select g.id, g.flow, g.version, 'open.running', g.state, g.fired, g.reached, g.latest, g.firings, g.priority, g.started_at from gone g;
  if not found then
    return false;
  end if;
  update mutirao.charge c set ended = false where c.instance = reopen_to_undo.instance;
  update mutirao.child c set status = null where c.instance = reopen_to_undo.instance;
  return true;
end $$;
comment on function mutirao.reopen_to_undo(bigint) is 'Opens an instance that has ended, for its parent to be rolled back. Answers whether there is one.';

-- The child is locked, if it is open. What became critical since its parent began to be rolled back is a matter for a person. One that
-- somebody stopped is undone only if that was its undoing, which is tried again.
create or replace function mutirao.undo_child(c mutirao.child) returns void
language plpgsql as $$
declare
  reason text := format('its parent, instance %s, is rolled back', c.parent);
  critical text;
begin
  -- Who interrupted the parent meanwhile interrupts that, too.
  update mutirao.child x set due_at = case when s.wants is not null then mutirao.now() end, wants = s.wants
  from (select (select 'suspend' from mutirao.instance i where i.id = c.parent and i.hold = 'suspended')) s(wants) where x.job = c.job;
  if exists (select from mutirao.instance i left join mutirao.undoing u on u.instance = i.id
    where i.id = c.instance and (i.hold = 'cancelled' or i.hold = 'undoing' and u.since = 0)) then return; end if;
  if c.status is not null and (c.status = 'closed.aborted' and c.undone_by is null or not mutirao.reopen_to_undo(c.instance)) then
    update mutirao.child x set due_at = mutirao.now(), wants = null where x.job = c.job;  -- its parent hears that nothing was undone
    return;
  end if;
  critical := mutirao.critical_now(c.instance, 0);
  if critical is not null then
    update mutirao.instance i set status = 'open.exception', reasons = coalesce(i.reasons, '[]') || jsonb_build_object('code', 'critical_task',
      'error', format('%s, and %s is critical and cannot be undone', reason, critical)) where i.id = c.instance;
    perform mutirao.show_exceptions(array[c.instance]);
  else
    perform mutirao.undo_instances(array[c.instance], 0, 'mutirao', reason);
  end if;
end $$;
