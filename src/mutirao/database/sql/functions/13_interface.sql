-- The functions that clients call: any language, many rows at once.

-- Inside a definer function current_user is the owner of the engine, who may write whatever he likes in any case.
create or replace function mutirao.signed(writer text) returns text
language sql stable
return case when writer is null then session_user::text when writer = session_user or session_user = current_user then writer else format('%s (%s)', writer, session_user) end;
comment on function mutirao.signed(text) is 'Who wrote, as the caller says; with the role that the caller is, where that is another.';

---------------------------------------------------------------------------------------------------------------- instances

create or replace function mutirao.start(
  flow text, state jsonb default '{}', priority int default 0, key text default null, at timestamptz default null, note jsonb default null) returns bigint
language sql security definer
begin atomic
  select * from mutirao.start_instances(flow, array[state], priority, session_user::text,
    case when key is not null then array[key] end, case when note is not null then array[note] end, at);
end;
comment on function mutirao.start(text, jsonb, int, text, timestamptz, jsonb) is
  'Starts one instance; attributes not given take their defaults. Answers its id. A key that has an instance starts nothing and answers that '
  'one. With a time to come, a clock starts it then. The trace keeps the note.';

create or replace function mutirao.start_many(
  flow text, states jsonb[], priority int default 0, writer text default session_user,
  keys text[] default null, at timestamptz default null, note jsonb default null) returns setof bigint
language sql security definer
begin atomic
  select * from mutirao.start_instances(flow, states, priority, mutirao.signed(writer), keys,
    case when note is not null then array_fill(note, array[cardinality(states)]) end, at);
end;
comment on function mutirao.start_many(text, jsonb[], int, text, text[], timestamptz, jsonb) is
  'Starts one instance per state, all or none. Answers their ids in order.';

create or replace function mutirao.set(instance bigint, change jsonb, reason text default null, writer text default session_user) returns void
language sql security definer begin atomic select mutirao.set_instance(instance, change, mutirao.signed(writer), reason); end;
comment on function mutirao.set(bigint, jsonb, text, text) is 'Changes attributes of an open instance from outside, and looks.';

create or replace function mutirao.repair(instance bigint, change jsonb default '{}', reason text default null, writer text default session_user) returns void
language sql security definer begin atomic select mutirao.repair_instance(instance, change, mutirao.signed(writer), reason); end;
comment on function mutirao.repair(bigint, jsonb, text, text) is 'Corrects an instance that is an exception; failed jobs go, and fire again where their conditions hold.';

create or replace function mutirao.cancel(instance bigint, reason text default null, writer text default session_user) returns void
language sql security definer begin atomic select mutirao.cancel_instance(instance, mutirao.signed(writer), reason); end;
comment on function mutirao.cancel(bigint, text, text) is 'Stops an instance: what runs may finish, nothing else starts.';

create or replace function mutirao.suspend(instance bigint, reason text default null, writer text default session_user) returns void
language sql security definer begin atomic select mutirao.suspend_instance(instance, mutirao.signed(writer), reason); end;

create or replace function mutirao.resume(instance bigint, reason text default null, writer text default session_user) returns void
language sql security definer begin atomic select mutirao.resume_instance(instance, mutirao.signed(writer), reason); end;

create or replace function mutirao.retry(job bigint, reason text default null, writer text default session_user) returns void
language sql security definer begin atomic select mutirao.retry_job(job, mutirao.signed(writer), reason); end;
comment on function mutirao.retry(bigint, text, text) is 'Tries a failed job again, with all its retries.';

create or replace function mutirao.skip(job bigint, change jsonb default '{}', reason text default null, writer text default session_user) returns void
language sql security definer begin atomic select mutirao.skip_job(job, change, mutirao.signed(writer), reason); end;
comment on function mutirao.skip(bigint, jsonb, text, text) is 'Ends a job as if it had succeeded, with the change given.';

create or replace function mutirao.start_task(instance bigint, task text, reason text default null, writer text default session_user) returns void
language sql security definer begin atomic select mutirao.start_task_of(instance, task, mutirao.signed(writer), reason); end;
comment on function mutirao.start_task(bigint, text, text, text) is 'Starts a task of an open instance by hand, whether or not its condition holds.';

create or replace function mutirao.go_back(instance bigint, task text, reason text default null, writer text default session_user) returns void
language sql security definer begin atomic select mutirao.go_back_to(instance, task, mutirao.signed(writer), reason); end;
comment on function mutirao.go_back(bigint, text, text, text) is 'Starts a task again that has ended, as if nothing had followed it. Nothing is undone.';

------------------------------------------------------------------------------------------------------------------ workers

create or replace function mutirao.task_ids(flow text, names text[] default null) returns table (id int, name text)
language plpgsql stable security definer as $$
declare
  missing text;
begin
  if not exists (select from mutirao.flow f where f.name = task_ids.flow) then
    perform mutirao.refuse_flow(flow);
  end if;
  select n into missing from unnest(names) n where not exists (
    select from mutirao.task t join mutirao.flow f on f.id = t.flow where f.name = task_ids.flow and t.name = n) limit 1;
  if missing is not null then
    perform mutirao.refuse('unknown_task', format('flow "%s" has no task "%s"; it has %s', flow, missing, (
      select string_agg(t.name, ', ' order by t.id) from mutirao.task t join mutirao.flow f on f.id = t.flow
      where f.name = task_ids.flow and t.name not in ('_FINAL', '_EXCPT'))));
  end if;
  return query select t.id, t.name from mutirao.task t join mutirao.flow f on f.id = t.flow
    where f.name = task_ids.flow and (t.name = any (names) or names is null and t.name not in ('_FINAL', '_EXCPT'));
end $$;
comment on function mutirao.task_ids(text, text[]) is 'The numbers of a flow''s tasks, which claim and turn take; all of them, or those named.';

create or replace function mutirao.claim(worker text, tasks int[], room int default 1, lease interval default interval '60 seconds') returns setof mutirao.settled
language plpgsql security definer as $$
declare
  limited int[] := mutirao.limited(tasks);
begin
  return query select * from mutirao.claim_jobs(worker, mutirao.without(tasks, limited), limited, room, lease);
end $$;
comment on function mutirao.claim(text, int[], int, interval) is 'Leases ready jobs to a worker. Each comes with its attempt, which complete, fail and renew must name.';

-- Finish a batch and get the next in one transaction: one commit a step.
create or replace function mutirao.turn(worker text, jobs bigint[], attempts bigint[], changes jsonb[], errors jsonb[], tasks int[], room int, lease interval default interval '60 seconds')
returns setof mutirao.settled
language plpgsql security definer as $$
declare
  limited int[] := mutirao.limited(tasks);
  free int[] := mutirao.without(tasks, limited);
  hungry mutirao.appetite;
  got int := 0;
  answers mutirao.settled[];
begin
  if not coalesce(cardinality(jobs) = all (array[cardinality(attempts), cardinality(changes), cardinality(errors)]), jobs is null) then
    perform mutirao.refuse('wrong_call', 'jobs, attempts, changes and errors must be of one length');
  end if;
  if cardinality(jobs) > 0 then
    hungry := row(worker, free, least(room, cardinality(jobs)), lease, mutirao.top_priority(free, 2147483647));
    if hungry.floor is not null or limited <> '{}' and mutirao.top_priority(limited, 2147483647) is not null then
      -- Somebody waits: one place in eight is theirs, or instances that always have a next step would keep all others out.
      hungry.room := floor(hungry.room * 0.875 + random());
    end if;
    hungry.floor := coalesce(hungry.floor, -2147483648);
    select array_agg(s), count(*) filter (where s.kind = 'job') into answers, got
    from mutirao.finish_jobs(mutirao.signed(worker), jobs, attempts, changes, errors, hungry) s;
    return query select * from unnest(answers);
    -- Whom these jobs kept back may be claimed at once. From here on nobody is waited for, unless a limit has to be locked.
    if limited = '{}' and exists (select from mutirao.class) then
      set constraints mutirao.gate_begin, mutirao.gate_change, mutirao.gate_end immediate;
      set constraints mutirao.gate_begin, mutirao.gate_change, mutirao.gate_end deferred;  -- the transaction may have another turn
    end if;
  end if;
  if got < room then
    return query select * from mutirao.claim_jobs(worker, free, limited, room - got, lease);
  end if;
end $$;
comment on function mutirao.turn(text, bigint[], bigint[], jsonb[], jsonb[], int[], int, interval) is
  'Ends jobs, each by a change or an error, and leases up to `room` new ones: the whole traffic of a worker.';

create or replace function mutirao.check_change(job bigint, change jsonb) returns void
language plpgsql as $$
begin
  if change is null then
    perform mutirao.refuse('wrong_call', format('job %s: null is no change; give {} when nothing changes, or fail the job', job));
  end if;
end $$;

create or replace function mutirao.complete(job bigint, attempt bigint, change jsonb default '{}') returns text
language plpgsql security definer as $$
declare
  answer mutirao.settled;
begin
  perform mutirao.check_change(job, change);
  select * into answer from mutirao.finish_jobs(session_user::text, array[job], array[attempt], array[change], array[null::jsonb], null);
  case answer.kind
    when 'parked' then return 'parked';
    when 'busy' then perform mutirao.refuse('instance_busy', format('another transaction is writing instance %s: try again', answer.instance));
    when 'lost' then perform mutirao.refuse('lease_lost', format('attempt %s is no longer the current one of job %s', attempt, job));
    when 'refused' then perform mutirao.refuse(answer.note ->> 'code', format('job %s: %s', job, answer.note ->> 'error'));
    else return 'ok';
  end case;
end $$;
comment on function mutirao.complete(bigint, bigint, jsonb) is
  'Ends one job by writing its change. Answers ok, or parked when the change must wait (the state would be final while others are pending, or a condition raised).';

create or replace function mutirao.fail(job bigint, attempt bigint, error text, final boolean default false) returns void
language plpgsql security definer as $$
declare
  answer mutirao.settled;
begin
  select * into answer from mutirao.finish_jobs(session_user::text, array[job], array[attempt], array[null::jsonb],
    array[jsonb_build_object('error', error, 'final', final)], null);
  case answer.kind
    when 'busy' then perform mutirao.refuse('instance_busy', format('another transaction is writing instance %s: try again', answer.instance));
    when 'lost' then perform mutirao.refuse('lease_lost', format('attempt %s is no longer the current one of job %s', attempt, job));
    else null;
  end case;
end $$;
comment on function mutirao.fail(bigint, bigint, text, boolean) is 'Reports that an attempt failed; with final, that trying again is of no use.';

-- A job that is locked at this moment is being ended, and waiting for it could be waiting for one another. It is neither renewed nor lost.
create or replace function mutirao.renew(jobs bigint[], attempts bigint[], lease interval default interval '60 seconds') returns setof bigint
language plpgsql security definer as $$
declare
  at timestamptz := mutirao.now();
begin
  with held as (
    select j.id from mutirao.job j join unnest(jobs, attempts) x(job, attempt) on j.id = x.job and j.attempt = x.attempt
    where j.role is null order by j.id for no key update of j skip locked)
  update mutirao.job j set lease_until = mutirao.lease_end(at, lease, j.deadline_at) from held h where j.id = h.id;
  return query
    select x.attempt from unnest(jobs, attempts) x(job, attempt)
    where not exists (select from mutirao.job j where j.id = x.job and j.attempt = x.attempt and j.role is null);
end $$;
comment on function mutirao.renew(bigint[], bigint[], interval) is 'Prolongs leases. Answers the attempts that have lost theirs.';

create or replace function mutirao.drop_jobs(jobs bigint[], error text) returns void
language plpgsql as $$
begin
  if jobs <> '{}' then
    perform mutirao.finish_jobs('mutirao', jobs, array(select j.attempt from unnest(jobs) with ordinality x(id, n) join mutirao.job j on j.id = x.id order by x.n),
      array_fill(null::jsonb, array[cardinality(jobs)]), array_fill(jsonb_build_object('error', error), array[cardinality(jobs)]), null, true);
  end if;
end $$;
comment on function mutirao.drop_jobs(bigint[], text) is 'Ends running jobs by an error.';

create or replace function mutirao.put_back(jobs bigint[], attempts bigint[]) returns setof bigint
language plpgsql as $$
#variable_conflict use_column
declare
  locked bigint[];
  ended bigint[];
  watched bigint[];
  flows int[];
begin
  select array_agg(q.id) into locked from (
    select i.id from mutirao.instance i where i.id in (select j.instance from mutirao.job j where j.id = any (jobs)) order by i.id for no key update skip locked) q;
  with released as (
    update mutirao.job j set attempt = null, worker = null, lease_until = null, deadline_at = null, due_at = null,
      status = case when mutirao.job_hold(i.hold, i.id, j.cause, j.undoes) is null then 'ready' else 'held' end::mutirao.job_status
    from unnest(jobs, attempts) x(job, attempt), mutirao.instance i
    where j.id = x.job and j.attempt = x.attempt and j.instance = any (locked) and i.id = j.instance
      and mutirao.job_hold(i.hold, i.id, j.cause, j.undoes) is distinct from 'cancelled'
    returning j.id, j.flow, j.watched)
  select array_agg(distinct r.flow), array_agg(r.id order by r.id) filter (where r.watched) into flows, watched from released r;
  perform mutirao.ready_again(flows, watched);
  perform mutirao.undo_next(locked);
  -- Given back to an instance that is being cancelled, or rolled back over it, a job ends.
  perform mutirao.drop_jobs(array(
    select j.id from mutirao.job j join unnest(jobs, attempts) x(job, attempt) on j.id = x.job and j.attempt = x.attempt
    where j.instance = any (locked)), 'it was given back');
  return query
    select j.id from mutirao.job j join unnest(jobs, attempts) x(job, attempt) on j.id = x.job and j.attempt = x.attempt;
end $$;
comment on function mutirao.put_back(bigint[], bigint[]) is 'Makes running jobs ready again, of workers or of persons. Answers those it could not.';

create or replace function mutirao.release(jobs bigint[], attempts bigint[]) returns setof bigint
language plpgsql security definer as $$
begin
  return query
    select b from (select array_agg(j.id) as jobs, array_agg(j.attempt) as attempts
      from mutirao.job j join unnest(release.jobs, release.attempts) x(job, attempt) on j.id = x.job and j.attempt = x.attempt where j.role is null) own,
    mutirao.put_back(own.jobs, own.attempts) b;
end $$;
comment on function mutirao.release(bigint[], bigint[]) is
  'Gives jobs back untouched, at once. Answers those it could not, because somebody is writing their instances: they come back when the lease ends.';

------------------------------------------------------------------------------------------------------ transactional tasks

-- For a task that does its work in the job's own transaction: the last statement of it. It waits for the instance, since giving up
-- would undo the work; and it raises where `complete` would park, since the work must be undone then.
create or replace function mutirao.complete_here(job bigint, attempt bigint, change jsonb) returns void
language plpgsql security definer as $$
declare
  answer mutirao.settled;
begin
  perform mutirao.check_change(job, change);
  perform from mutirao.instance i where i.id = (select j.instance from mutirao.job j where j.id = complete_here.job) for no key update;
  select * into answer from mutirao.finish_jobs(session_user::text, array[job], array[attempt], array[change], array[null::jsonb], null);
  if answer.kind = 'lost' then
    perform mutirao.refuse('lease_lost', format('attempt %s is no longer the current one of job %s', attempt, job));
  elsif answer.kind is not null then
    perform mutirao.refuse(answer.note ->> 'code', format('job %s: %s', job, coalesce(answer.note ->> 'error', 'the state would be final while other jobs are pending')));
  end if;
end $$;
comment on function mutirao.complete_here(bigint, bigint, jsonb) is 'Ends a job inside the transaction that did its work; raises when the change cannot be written now.';

create or replace function mutirao.park_attempt(job bigint, attempt bigint, change jsonb, problem jsonb) returns void
language plpgsql security definer as $$
declare
  j mutirao.job;
begin
  if coalesce(problem ->> 'code', '') not in ('final_blocked', 'condition_failed') then
    perform mutirao.refuse('wrong_call', format('job %s: a job is parked for a problem {"code": …, "error": …} whose code is final_blocked or condition_failed', job));
  end if;
  select * into j from mutirao.job x where x.id = park_attempt.job;
  perform from mutirao.instance i where i.id = j.instance for no key update;
  select * into j from mutirao.job x where x.id = park_attempt.job and x.attempt = park_attempt.attempt and x.role is null;
  if not found then
    perform mutirao.refuse('lease_lost', format('attempt %s is no longer the current one of job %s', attempt, job));
  end if;
  -- Where nothing fires any more there is nothing to wait for: what is cancelled or to be undone ends, and a compensation has failed this time.
  if j.undoes is not null
    or (select mutirao.job_hold(coalesce(mutirao.hold_before(i.id), i.hold), i.id, j.cause, null) = 'cancelled' from mutirao.instance i where i.id = j.instance)
  then
    perform mutirao.drop_jobs(array[j.id], problem ->> 'error');
    return;
  end if;
  -- What was in the way may have ended since the change was refused. Then nobody would try the job again: it goes back at once.
  if change is null and problem ->> 'code' = 'final_blocked' and exists (
    select from mutirao.instance i join mutirao.version v on v.id = i.version
    where i.id = j.instance and i.pending = array[j.task] and i.failed <@ v.handled)
  then
    perform mutirao.release(array[j.id], array[j.attempt]);
    return;
  end if;
  perform mutirao.park(array[row(case when problem ->> 'code' = 'final_blocked' then 'blocked' else 'problem' end, 'finish', j.instance, j.flow, i.version,
    j.id, j.task, j.attempt, change, problem, j.worker, nextval('mutirao.trace_id'))::mutirao.verdict], mutirao.now())
  from mutirao.instance i where i.id = j.instance;
  perform mutirao.undo_next(array[j.instance]);
  perform mutirao.show_exceptions(array[j.instance]);
end $$;
comment on function mutirao.park_attempt(bigint, bigint, jsonb, jsonb) is
  'Parks a job whose change cannot be written now and says why: a transactional task (without a change: it will run again), or a condition that took too long.';
