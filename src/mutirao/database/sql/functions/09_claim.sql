-- Leasing ready jobs to workers; and what follows where somebody waits for a job to be ready or running.

create or replace function mutirao.top_priority(tasks int[], below int) returns int
language sql stable
return (
  select max(head.priority) from unnest(tasks) t(id), lateral (
    select j.priority from mutirao.job j where j.task = t.id and j.status = 'ready' and j.role is null and not j.by_clock and j.priority < below order by j.priority desc limit 1) head);
comment on function mutirao.top_priority(int[], int) is 'The highest priority, below a given one, among the jobs that are ready for these tasks.';

-- Work items are for people, and what a clock does is for clocks: neither is in the index that workers claim by.
--
-- Priority is strict across tasks: the highest level that is waiting is emptied before the next one is touched. Within a level, the
-- task whose oldest job is oldest goes first. Each task has its own run in the index, so a backlog of other tasks costs nothing.
create or replace function mutirao.claim_free(worker text, tasks int[], room int, lease interval) returns setof mutirao.settled
language plpgsql as $$
declare
  level int := 2147483647;
  picked bigint[];
begin
  loop
    level := mutirao.top_priority(tasks, level);
    exit when level is null or room <= 0;
    with heads as (
      select t.id from unnest(tasks) t(id), lateral (
        select j.id as oldest from mutirao.job j where j.task = t.id and j.status = 'ready' and j.role is null and not j.by_clock and j.priority = level order by j.id limit 1) head
      order by head.oldest)
    select array_agg(p.id) into picked from (
      select c.id from heads h, lateral (
        select j.id from mutirao.job j where j.task = h.id and j.status = 'ready' and j.role is null and not j.by_clock and j.priority = level order by j.id limit room for update skip locked) c
      limit room) p;
    continue when picked is null;
    return query select * from mutirao.lease_jobs(worker, picked, lease, false);
    room := room - cardinality(picked);
  end loop;
end $$;
comment on function mutirao.claim_free(text, int[], int, interval) is 'Leases up to `room` ready jobs of these tasks, which have no limit, to a worker.';

create or replace function mutirao.lease_jobs(worker text, jobs bigint[], lease interval, limited boolean) returns setof mutirao.settled
language plpgsql as $$
#variable_conflict use_column
declare
  at timestamptz := mutirao.now();
  got mutirao.settled[];
  watched bigint[];
  given_back bigint[];
begin
  with claimed as (
    update mutirao.job j set status = 'running', attempt = nextval('mutirao.attempt_number'), worker = lease_jobs.worker,
      deadline_at = at + j.timeout, lease_until = mutirao.lease_end(at, lease, at + j.timeout), slot = case when limited then coalesce(j.slot, '') else j.slot end
    where j.id = any (jobs) and j.status = 'ready'
    returning j.id, j.attempt, j.instance, j.task, j.failures, j.timeout, j.cause, j.watched)
  select array_agg(row('job', c.id, c.attempt, c.instance, c.task, c.failures, extract(epoch from c.timeout),
      (select t.state from mutirao.trace t where t.instance = c.instance and t.id = c.cause), null)::mutirao.settled),
    array_agg(c.id) filter (where c.watched)
  into got, watched
  from claimed c;
  if watched is not null then
    given_back := mutirao.reach_running(watched);
    return query select g.* from unnest(got) g where g.job <> all (given_back);
  else
    return query select * from unnest(got);
  end if;
end $$;
comment on function mutirao.lease_jobs(text, bigint[], interval, boolean) is 'Leases these ready jobs, which the caller has locked, to a worker.';

-- Tasks with a limit and those without take turns at being first, so that neither keeps the other out.
create or replace function mutirao.claim_jobs(worker text, tasks int[], limited int[], room int, lease interval) returns setof mutirao.settled
language plpgsql as $$
declare
  free_first boolean := limited = '{}' or random() < 0.5;
  got int;
begin
  room := coalesce(room, 0);
  if free_first then
    return query select * from mutirao.claim_free(worker, tasks, room, lease);
    get diagnostics got = row_count;
    room := room - got;
  end if;
  if limited <> '{}' and room > 0 then
    return query select * from mutirao.claim_limited(worker, limited, room, lease);
    get diagnostics got = row_count;
    room := room - got;
  end if;
  if not free_first and room > 0 then
    return query select * from mutirao.claim_free(worker, tasks, room, lease);
  end if;
end $$;
comment on function mutirao.claim_jobs(text, int[], int[], int, interval) is 'Leases up to `room` ready jobs to a worker: of these tasks, and of those that have a limit.';

-- Somebody waits for jobs to be in this state, so reaching it is looked at like a write, one job after another. Their instances
-- must be locked.
create or replace function mutirao.reach(jobs bigint[], state text) returns void
language plpgsql as $$
declare
  one bigint;
  work mutirao.work[];
  versions int[];
begin
  foreach one in array jobs loop
    select array[row(1, 'reach', i.id, i.flow, v.id, null, j.task, j.attempt, j.cause, null,
        i.state, i.pending, i.failed, i.fired,
        mutirao.reached_with(i.reached, v.terms, array[j.task], reach.state),
        mutirao.latest_with(i.latest, v.named, array[j.task], reach.state),
        i.pending || i.failed || i.fired, i.parked, i.reasons, i.hold, i.firings, i.priority, i.started_at, coalesce(j.worker, 'mutirao'), null)::mutirao.work], array[v.id]
      into work, versions
    from mutirao.job j join mutirao.instance i on i.id = j.instance join mutirao.version v on v.id = i.version
    where j.id = one and (reach.state <> 'ready' or j.gate is distinct from 'waits');
    if work is not null then
      perform mutirao.settle(work, versions, null);
    end if;
  end loop;
end $$;

create or replace function mutirao.ready_again(flows int[], watched bigint[]) returns void
language plpgsql as $$
begin
  if flows is not null then
    perform mutirao.wake(flows);
  end if;
  if watched is not null then
    perform mutirao.reach(watched, 'ready');
  end if;
end $$;
comment on function mutirao.ready_again(int[], bigint[]) is 'Jobs of these flows may be claimed again, and of these jobs somebody waits for that.';

-- A claim holds jobs already and must not wait for an instance: where it is busy, the claim is given back, for another try very soon.
create or replace function mutirao.reach_running(jobs bigint[]) returns bigint[]
language plpgsql as $$
declare
  locked bigint[];
  given_back bigint[];
begin
  select coalesce(array_agg(q.id), '{}') into locked from (
    select i.id from mutirao.instance i where i.id in (select j.instance from mutirao.job j where j.id = any (jobs)) order by i.id for no key update skip locked) q;
  with back as (
    update mutirao.job j set status = 'waiting', due_at = mutirao.now() + interval '100 milliseconds', attempt = null, worker = null, lease_until = null, deadline_at = null
    where j.id = any (jobs) and j.instance <> all (locked) returning j.id)
  select coalesce(array_agg(b.id), '{}') into given_back from back b;
  if given_back <> '{}' then
    perform pg_notify('mutirao', 'clock');
  end if;
  perform mutirao.reach(array(select j from unnest(jobs) j where j <> all (given_back) order by j), 'running');
  return given_back;
end $$;
