-- The life of an instance: start, claim, finish, renew, release. Running workers: none can exist yet.
--
-- How a write goes. Whoever writes first locks the instances, in id order, in a statement of its own, so that what follows sees
-- what others committed; instances that someone else holds are skipped and answered `busy`, so nobody waits behind a long
-- transaction and no two writers can deadlock. Then, for the whole batch at once:
--
--   work    what each instance would be after its change                    mutirao.finish_round, .start_instances, .write
--   look    is it final, which tasks fire, what is wrong with it            mutirao.look, generated per version
--   settle  ended jobs; then instance, closed, trace and new jobs           mutirao.settle
--
-- A claim touches only jobs that are ready and does not lock their instances. Everything that takes a job out of `running` holds
-- its instance. So locks are always taken in the order instance, job.

insert into mutirao.refusal (code, sqlstate, meaning) values
  ('nothing_fires',    'MU205', 'an initial state that is not final and fires nothing'),
  ('final_blocked',    'MU206', 'the state would be final while jobs are pending'),
  ('lease_lost',       'MU207', 'the attempt is no longer the current one'),
  ('unknown_instance', 'MU208', 'there is no such instance'),
  ('instance_closed',  'MU209', 'the instance has ended'),
  ('instance_busy',    'MU210', 'another transaction is writing the instance');

create type mutirao.settled as (kind text, job bigint, attempt bigint, instance bigint, task int, failures int, timeout float8, state jsonb, note jsonb);
comment on type mutirao.settled is
  'What a worker is told. job: this one is leased to you. parked: done, but its change must wait. refused: the change does not fit, and nothing happened. '
  'lost: not your attempt any more. busy: somebody holds the instance, try again. What is not mentioned went well.';

create type mutirao.appetite as (worker text, tasks int[], room int, lease interval, floor int);
comment on type mutirao.appetite is
  'A worker that gives back ten jobs may have up to ten of those that they fire leased to it as they are made, without a claim. '
  'Never more than it gave, so that others get their share, and none below the floor: the highest priority that is waiting for it.';

create type mutirao.verdict as (
  n int, outcome text, kind text, instance bigint, flow int, version int, job bigint, task int, attempt bigint, change jsonb,
  reasons jsonb, problem jsonb, parked int, writer text, trace bigint
);

----------------------------------------------------------------------------------------------------------------- settling

create function mutirao.wake(flows int[]) returns void
language sql as $$
  select pg_notify('mutirao', case when cardinality(flows) > 50 then '*' else array_to_string(flows, ',') end)
$$;
comment on function mutirao.wake(int[]) is 'Tells listening workers that jobs of these flows are ready. One notification a batch: NOTIFY serialises commits.';

create function mutirao.lease_end(at timestamptz, lease interval, deadline timestamptz) returns timestamptz
language sql stable parallel safe
return least(at + lease, deadline + interval '5 seconds');
comment on function mutirao.lease_end(timestamptz, interval, timestamptz) is
  'A lease outlives the deadline only by the grace a worker has to report its own timeout; so the clock finds both in one index.';

create function mutirao.reasons_after(reasons jsonb, found jsonb) returns jsonb
language sql immutable
return case
  when reasons is null and found is null then null
  when reasons is null then jsonb_build_array(found)
  else (
    select jsonb_agg(kept.r) from (
      select r from jsonb_array_elements(reasons) r
      where r ->> 'code' not in ('nothing_fires', 'final_blocked', 'runaway') and (r ->> 'code' <> 'condition_failed' or r ? 'job')
      union all select found where found is not null) kept(r)) end;
comment on function mutirao.reasons_after(jsonb, jsonb) is 'The exceptions an instance is left with; those that only a look can tell are found anew each time.';

create function mutirao.reasons_without(reasons jsonb, jobs bigint[]) returns jsonb
language sql immutable
return case when reasons is null then null else (
  select jsonb_agg(r) from jsonb_array_elements(reasons) r where coalesce((r ->> 'job')::bigint <> all (jobs), true)) end;

-- The one _EXCPT job of an instance exists exactly as long as there are reasons, and carries them.
create function mutirao.show_exceptions(instances bigint[]) returns void
language plpgsql as $$
declare
  flows int[];
begin
  delete from mutirao.job j using mutirao.flow f
  where j.instance = any (instances) and f.id = j.flow and j.task = f.exception_task
    and not exists (select from mutirao.instance i where i.id = j.instance and i.reasons is not null);
  update mutirao.job j set error = i.reasons from mutirao.instance i join mutirao.flow f on f.id = i.flow
  where i.id = any (instances) and j.instance = i.id and j.task = f.exception_task and j.error is distinct from i.reasons;
  with made as (
    insert into mutirao.job (instance, flow, task, status, cause, error, created_at)
    select i.id, i.flow, f.exception_task, case when i.hold is null then 'ready' else 'held' end::mutirao.job_status,
      (select max(r.id) from mutirao.trace r where r.instance = i.id and r.state is not null), i.reasons, mutirao.now()
    from mutirao.instance i join mutirao.flow f on f.id = i.flow
    where i.id = any (instances) and i.reasons is not null
    order by i.id
    on conflict (instance, task) do nothing
    returning flow)
  select array_agg(distinct m.flow) into flows from made m;
  if flows is not null then
    perform mutirao.wake(flows);
  end if;
end $$;

-- A change that may not be written yet waits in its job. All pending jobs parked: nothing moves any more, and a person must look.
create function mutirao.park(parking mutirao.verdict[], at timestamptz) returns void
language plpgsql as $$
begin
  update mutirao.instance i set
    parked = i.parked + (j.status <> 'parked')::int,
    reasons = case
      when p.outcome = 'problem' then coalesce(mutirao.reasons_without(i.reasons, array[p.job]), '[]') || (p.problem || jsonb_build_object('job', p.job))
      when i.parked + (j.status <> 'parked')::int = cardinality(i.pending) and not coalesce(i.reasons @> '[{"code": "final_blocked"}]', false)
        then coalesce(i.reasons, '[]') || jsonb_build_object('code', 'final_blocked')
      else i.reasons end
  from unnest(parking) p join mutirao.job j on j.id = p.job
  where i.id = p.instance;
  update mutirao.instance i set status = 'open.exception'
  from unnest(parking) p where i.id = p.instance and i.reasons is not null and i.hold is null;
  update mutirao.job j set status = 'parked', change = p.change, attempt = null, worker = null, lease_until = null, deadline_at = null
  from unnest(parking) p where j.id = p.job and j.status <> 'parked';
  insert into mutirao.trace (instance, id, flow, version, kind, job, task, attempt, status, writer, note, at)
  select p.instance, p.trace, p.flow, p.version, 'parked', p.job, p.task, p.attempt, i.status, p.writer,
    coalesce(p.problem, jsonb_build_object('code', 'final_blocked')), at
  from unnest(parking) p join mutirao.instance i on i.id = p.instance
  where p.attempt is not null;
end $$;

-- What is rare: rows that could not be written, and instances that are, were or become exceptions.
create function mutirao.settle_special(special mutirao.verdict[], at timestamptz) returns setof mutirao.settled
language plpgsql as $$
declare
  parking mutirao.verdict[];
begin
  select array_agg(s) into parking from unnest(special) s
  where s.kind = 'finish' and (s.outcome = 'blocked' or s.problem ->> 'code' = 'condition_failed');
  if parking is not null then
    perform mutirao.park(parking, at);
  end if;
  delete from mutirao.job j using unnest(special) s where s.outcome in ('completed', 'aborted') and j.instance = s.instance;
  perform mutirao.show_exceptions(array(select s.instance from unnest(special) s));
  return query
    select case when s.kind = 'finish' and (s.outcome = 'blocked' or s.problem ->> 'code' = 'condition_failed') then 'parked' else 'refused' end,
      s.job, s.attempt, s.instance, s.task, null::int, null::float8, null::jsonb, coalesce(s.problem, jsonb_build_object('code', 'final_blocked'))
    from unnest(special) s where s.outcome in ('blocked', 'problem');
end $$;

-- A value is kept up to a length that fits into the index; whoever searches for a longer one compares the state as well.
create function mutirao.make_searchable(instances bigint[]) returns void
language plpgsql as $$
begin
  with wanted as materialized (
    select i.flow, n.name, left(i.state ->> n.name, 200) as value, i.id as instance
    from (select id, flow, version, state from mutirao.instance where id = any (instances)
          union all select id, flow, version, state from mutirao.closed where id = any (instances)) i
    join mutirao.version v on v.id = i.version cross join unnest(v.searchable) n(name)
    where i.state ->> n.name is not null),
  gone as (
    delete from mutirao.search s where s.instance = any (instances)
      and not exists (select from wanted w where w.instance = s.instance and w.name = s.name and w.value = s.value))
  insert into mutirao.search (flow, name, value, instance)
  select w.flow, w.name, w.value, w.instance from wanted w
  on conflict do nothing;
end $$;
comment on function mutirao.make_searchable(bigint[]) is 'Brings the searchable values of these instances up to date.';

create function mutirao.settle(work mutirao.work[], versions int[], hungry mutirao.appetite, looked mutirao.looked[] default null) returns setof mutirao.settled
language plpgsql as $$
#variable_conflict use_column
declare
  at timestamptz := mutirao.now();
  answers mutirao.settled[];
  special mutirao.verdict[];
  flows int[];
  searchable bigint[];
begin
  looked := coalesce(looked, mutirao.look(work, versions));
  -- Ended jobs go first: their task may fire again at once, and (instance, task) is unique.
  delete from mutirao.job j where j.id = any (array(
    select w.job from unnest(work, looked) w
    where w.kind in ('finish', 'skip', 'drop') and w.problem is null
      and (w.hold = 'cancelled' or not w.final or (w.pending = '{}'
        and (w.failed = '{}' or w.failed <@ (select v.handled from mutirao.version v where v.id = w.version))))));

  with judged as materialized (
    select w.*, nextval('mutirao.trace_id') as trace, v.terms, v.named, v.watched, v.once, v.searchable, f.exception_task,
      case
        when w.problem is not null then case when w.kind in ('finish', 'skip', 'start', 'set', 'repair') then 'problem' else 'raised' end
        when w.hold = 'cancelled' then case when w.pending = '{}' then 'aborted' else 'kept' end
        when w.final and (w.pending <> '{}' or not w.failed <@ v.handled) then case when w.kind in ('finish', 'skip', 'start', 'set', 'repair') then 'blocked' else 'kept' end
        when w.hold is not null then 'kept'
        when w.final then 'completed'
        when w.fires = '{}' and w.pending = '{}' and w.failed <@ v.handled then case v.ends when 'quiet' then 'completed' else 'stuck' end
        when w.firings + cardinality(w.fires) > v.firing_limit then 'runaway'
        else 'running'
      end as outcome
    from unnest(work, looked) w join mutirao.version v on v.id = w.version join mutirao.flow f on f.id = w.flow
  ),
  written as materialized (
    select d.*, case when d.outcome = 'running' then d.fires else '{}' end as starts,
      case when d.hold is not null or d.reasons is null and d.outcome not in ('stuck', 'runaway', 'raised') then d.reasons else mutirao.reasons_after(d.reasons, case d.outcome
        when 'stuck' then jsonb_build_object('code', 'nothing_fires')
        when 'runaway' then jsonb_build_object('code', 'runaway', 'firings', d.firings)
        when 'raised' then d.problem end) end as left_with
    from judged d where d.outcome not in ('problem', 'blocked')
  ),
  stated as materialized (
    select d.*,
      case
        when d.outcome = 'completed' then 'closed.completed'
        when d.outcome = 'aborted' then 'closed.aborted'
        when d.hold = 'suspended' then 'open.notrunning.suspended'
        when d.left_with is not null then 'open.exception'
        else 'open.running'
      end::mutirao.instance_status as status
    from written d
  ),
  -- An upsert and not an update: what the planner believes of a table that is empty now and full later decides how it joins, and a
  -- plan that is kept would go on joining so. An upsert finds each row by its key, whatever the planner believes.
  opened as (
    insert into mutirao.instance as i (id, flow, version, status, state, pending, failed, fired, reached, latest, parked, reasons, hold, firings, priority, started_at)
    select d.instance, d.flow, d.version, d.status, d.state, d.pending || d.starts, d.failed,
      case when d.once = '{}' then d.fired else d.fired || array(select unnest(d.starts) intersect select unnest(d.once)) end,
      case when d.terms = '{}' then d.reached else mutirao.reached_with(d.reached, d.terms, d.starts, 'ready') end,
      case when d.named = '{}' then d.latest else mutirao.latest_with(d.latest, d.named, d.starts, 'ready') end,
      d.parked, d.left_with, d.hold, d.firings + cardinality(d.starts), d.priority, d.started_at
    from stated d where d.outcome not in ('completed', 'aborted')
    on conflict (id) do update set
      version = excluded.version, status = excluded.status, state = excluded.state, pending = excluded.pending, failed = excluded.failed,
      fired = excluded.fired, reached = excluded.reached, latest = excluded.latest, parked = excluded.parked, reasons = excluded.reasons,
      hold = excluded.hold, firings = excluded.firings
  ),
  ended as (
    delete from mutirao.instance i where i.id = any (array(select instance from stated where outcome in ('completed', 'aborted')))
  ),
  closed as (
    insert into mutirao.closed (id, flow, version, status, state, fired, reached, latest, firings, priority, started_at, closed_at)
    select d.instance, d.flow, d.version, d.status, d.state, d.fired, d.reached, d.latest, d.firings, d.priority, d.started_at, at
    from stated d where d.outcome in ('completed', 'aborted')
  ),
  traced as (
    insert into mutirao.trace (instance, id, flow, version, kind, job, task, attempt, cause, fired, status, state, writer, note, at)
    select d.instance, d.trace, d.flow, d.version, d.kind, d.job, d.task, d.attempt, d.cause,
      case when d.outcome in ('stuck', 'runaway', 'raised') then array[d.exception_task] else d.starts end,
      d.status, d.state, d.writer, d.note, at
    from stated d
  ),
  offered as (
    select d.instance, d.flow, r.task, r.priority + d.priority as priority, r.timeout, d.trace, d.state, d.n, f.o,
      mutirao.term(r.task, 'running') = any (d.watched) as watched,
      r.task = any (hungry.tasks) and r.priority + d.priority >= hungry.floor and mutirao.term(r.task, 'running') <> all (d.watched)
        and row_number() over (partition by r.task = any (hungry.tasks) order by r.priority + d.priority desc, d.n) <= hungry.room as granted
    from stated d cross join unnest(d.starts) with ordinality f(task, o)
    cross join lateral (select r.* from mutirao.rule r where r.version = d.version and r.task = f.task limit 1) r
  ),
  numbered as materialized (
    select o.*, nextval('mutirao.job_id') as id, case when o.granted then nextval('mutirao.attempt_number') end as attempt
    from (select * from offered order by n, o) o
  ),
  made as (
    insert into mutirao.job (id, instance, flow, task, status, priority, watched, cause, timeout, attempt, worker, lease_until, deadline_at, created_at)
    select o.id, o.instance, o.flow, o.task, case when o.granted then 'running' else 'ready' end::mutirao.job_status, o.priority, o.watched, o.trace, o.timeout,
      o.attempt, case when o.granted then hungry.worker end,
      case when o.granted then mutirao.lease_end(at, hungry.lease, at + o.timeout) end, case when o.granted then at + o.timeout end, at
    from numbered o
  )
  select
    (select array_agg(row('job', o.id, o.attempt, o.instance, o.task, 0, extract(epoch from o.timeout), o.state, null)::mutirao.settled)
     from numbered o where o.granted),
    (select array_agg(distinct o.flow) from numbered o where o.granted is not true),
    (select array_agg(row(d.n, d.outcome, d.kind, d.instance, d.flow, d.version, d.job, d.task, d.attempt, d.change,
       d.reasons, d.problem, d.parked, d.writer, d.trace)::mutirao.verdict order by d.n)
     from judged d where d.outcome not in ('running', 'completed', 'kept') or d.reasons is not null or d.failed <> '{}'),
    (select array_agg(d.instance) from stated d where d.searchable <> '{}')
  into answers, flows, special, searchable;

  if flows is not null then
    perform mutirao.wake(flows);
  end if;
  if searchable is not null then
    perform mutirao.make_searchable(searchable);
  end if;
  if special is not null then
    return query select * from mutirao.settle_special(special, at);
  end if;
  return query select * from unnest(answers);
end $$;
comment on function mutirao.settle(mutirao.work[], int[], mutirao.appetite, mutirao.looked[]) is
  'Looks at the work and writes what follows. The instances must be locked, the work ordered by version, one row an instance.';

----------------------------------------------------------------------------------------------------------------- starting

create function mutirao.start_instances(flow text, states jsonb[], priority int, writer text) returns setof bigint
language plpgsql as $$
#variable_conflict use_column
declare
  f mutirao.flow;
  v mutirao.version;
  work mutirao.work[];
  looked mutirao.looked[];
  bad record;
begin
  select * into f from mutirao.flow x where x.name = start_instances.flow;
  if not found then
    perform mutirao.refuse('unknown_flow', format('there is no flow "%s"', flow));
  end if;
  if priority not between -1000000 and 1000000 then
    perform mutirao.refuse('wrong_call', format('a priority is at most a million either way: got %s', priority));
  end if;
  select * into strict v from mutirao.version x where x.id = f.version;
  select array_agg(row(x.n, 'start', nextval('mutirao.instance_id'), f.id, v.id, null, null, null, null, x.state, v.defaults || x.state,
      '{}', '{}', '{}', '{}', null, '{}', 0, null, null, 0, start_instances.priority, mutirao.now(), start_instances.writer, null)::mutirao.work order by x.n)
    into work
  from (select coalesce(s, '{}') as state, n from unnest(states) with ordinality u(s, n)) x;
  if work is null then return; end if;
  looked := mutirao.look(work, array[v.id]);
  select w.n, w.problem into bad from unnest(work, looked) w
  where w.problem is not null or not w.final and w.fires = '{}'
  order by w.n limit 1;
  if found then
    perform mutirao.refuse(coalesce(bad.problem ->> 'code', 'nothing_fires'),
      format('start of flow "%s"%s: %s', f.name, case when cardinality(states) > 1 then format(', state %s of %s', bad.n, cardinality(states)) else '' end,
        coalesce(case when bad.problem ->> 'task' is not null then format('condition of %s: ', bad.problem ->> 'task') else '' end || (bad.problem ->> 'error'),
          'this initial state is not final and no condition holds on it, so nothing would ever happen')));
  end if;
  perform mutirao.settle(work, array[v.id], null, looked);
  return query select w.instance from unnest(work) w;
end $$;
comment on function mutirao.start_instances(text, jsonb[], int, text) is
  'Starts one instance per state, all or none: a state that is not final and fires nothing is rejected, and the whole call with it.';

----------------------------------------------------------------------------------------------------------------- claiming

create function mutirao.top_priority(tasks int[], below int) returns int
language sql stable
return (
  select max(head.priority) from unnest(tasks) t(id), lateral (
    select j.priority from mutirao.job j where j.task = t.id and j.status = 'ready' and j.priority < below order by j.priority desc limit 1) head);
comment on function mutirao.top_priority(int[], int) is 'The highest priority, below a given one, among the jobs that are ready for these tasks.';

-- Priority is strict across tasks: the highest level that is waiting is emptied before the next one is touched. Within a level, the
-- task whose oldest job is oldest goes first. Each task has its own run in the index, so a backlog of other tasks costs nothing.
create function mutirao.claim_jobs(worker text, tasks int[], room int, lease interval) returns setof mutirao.settled
language plpgsql as $$
#variable_conflict use_column
declare
  at timestamptz := mutirao.now();
  level int := 2147483647;
  got mutirao.settled[];
  watched bigint[];
  given_back bigint[];
begin
  loop
    level := mutirao.top_priority(tasks, level);
    exit when level is null or room <= 0;
    with heads as (
      select t.id from unnest(tasks) t(id), lateral (
        select j.id as oldest from mutirao.job j where j.task = t.id and j.status = 'ready' and j.priority = level order by j.id limit 1) head
      order by head.oldest),
    picked as materialized (
      select c.id from heads h, lateral (
        select j.id from mutirao.job j where j.task = h.id and j.status = 'ready' and j.priority = level order by j.id limit room for update skip locked) c
      limit room),
    claimed as (
      update mutirao.job j set status = 'running', attempt = nextval('mutirao.attempt_number'), worker = claim_jobs.worker,
        deadline_at = at + j.timeout, lease_until = mutirao.lease_end(at, lease, at + j.timeout)
      where j.id = any (array(select id from picked))
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
    room := room - coalesce(cardinality(got), 0);
  end loop;
end $$;
comment on function mutirao.claim_jobs(text, int[], int, interval) is 'Leases up to `room` ready jobs of these tasks to a worker.';

-- Somebody waits for jobs to be in this state, so reaching it is looked at like a write, one job after another. Their instances
-- must be locked.
create function mutirao.reach(jobs bigint[], state text) returns void
language plpgsql as $$
declare
  one bigint;
  work mutirao.work[];
  versions int[];
begin
  foreach one in array jobs loop
    select array[row(1, 'reach', i.id, i.flow, v.id, null, j.task, j.attempt, j.cause, null,
        case when i.version = v.id then i.state else v.defaults || i.state end, i.pending, i.failed, i.fired,
        mutirao.reached_with(i.reached, v.terms, array[j.task], reach.state),
        mutirao.latest_with(case when i.version = v.id then i.latest else mutirao.latest_from(i.id, i.latest, v.named) end, v.named, array[j.task], reach.state),
        i.pending || i.failed || i.fired, i.parked, i.reasons, i.hold, i.firings, i.priority, i.started_at, coalesce(j.worker, 'mutirao'), null)::mutirao.work], array[v.id]
      into work, versions
    from mutirao.job j join mutirao.instance i on i.id = j.instance join mutirao.flow f on f.id = i.flow
    join mutirao.version v on v.id = case when f.live then f.version else i.version end
    where j.id = one;
    if work is not null then
      perform mutirao.settle(work, versions, null);
    end if;
  end loop;
end $$;

-- A claim holds jobs already and must not wait for an instance: where it is busy, the claim is given back.
create function mutirao.reach_running(jobs bigint[]) returns bigint[]
language plpgsql as $$
declare
  locked bigint[];
  given_back bigint[];
begin
  select coalesce(array_agg(q.id), '{}') into locked from (
    select i.id from mutirao.instance i where i.id in (select j.instance from mutirao.job j where j.id = any (jobs)) order by i.id for no key update skip locked) q;
  with back as (
    update mutirao.job j set status = 'ready', attempt = null, worker = null, lease_until = null, deadline_at = null
    where j.id = any (jobs) and j.instance <> all (locked) returning j.id)
  select coalesce(array_agg(b.id), '{}') into given_back from back b;
  perform mutirao.reach(array(select j from unnest(jobs) j where j <> all (given_back) order by j), 'running');
  return given_back;
end $$;

---------------------------------------------------------------------------------------------------------------- finishing

create type mutirao.entry as (k int, n int, job bigint, attempt bigint, instance bigint, task int, cause bigint, failures int, change jsonb, error jsonb, writer text);
comment on type mutirao.entry is 'One job that is being finished; k: it is the k-th of its instance in this call, and goes in round k.';

-- The state each instance of this round would have. The jobs of one instance go one after another, each with its own look.
create function mutirao.finish_round(entries mutirao.entry[], round int, hungry mutirao.appetite) returns setof mutirao.settled
language plpgsql as $$
declare
  work mutirao.work[];
  versions int[];
begin
  select
    array_agg(row(e.n, case when e.error is null then 'finish' when i.hold = 'cancelled' then 'drop' else 'fail' end,
      i.id, i.flow, v.id, e.job, e.task, e.attempt, e.cause, e.change,
      case when i.version = v.id then i.state else v.defaults || i.state end || coalesce(e.change, '{}'),
      array_remove(i.pending, e.task),
      case when e.error is null or i.hold = 'cancelled' then i.failed else i.failed || e.task end,
      i.fired,
      case when v.terms = '{}' then i.reached else mutirao.reached_with(i.reached, v.terms, array[e.task], case when e.error is null then 'succeeded' else 'failed' end) end,
      case when v.named = '{}' then i.latest else mutirao.latest_with(
        case when i.version = v.id then i.latest else mutirao.latest_from(i.id, i.latest, v.named) end, v.named, array[e.task], case when e.error is null then 'succeeded' else 'failed' end) end,
      array_remove(i.pending, e.task) || case when e.error is null then i.failed else i.failed || e.task end || i.fired,
      case when e.attempt is null then i.parked - 1 else i.parked end,
      case
        when e.error is not null and e.task <> all (v.handled) and i.hold is distinct from 'cancelled' then coalesce(i.reasons, '[]') || jsonb_build_object('code', 'task_failed', 'job', e.job,
          'task', (select t.name from mutirao.task t where t.id = e.task), 'error', e.error ->> 'error')
        when i.reasons is null then null
        else mutirao.reasons_without(i.reasons, array[e.job]) end,
      i.hold, i.firings, i.priority, i.started_at, e.writer, e.error)::mutirao.work order by v.id, e.n),
    array_agg(distinct v.id)
    into work, versions
  from unnest(entries) e join mutirao.instance i on i.id = e.instance join mutirao.flow f on f.id = i.flow
  join mutirao.version v on v.id = case when f.live then f.version else i.version end
  where e.k = round;
  if work is not null then
    return query select * from mutirao.settle(work, versions, hungry);
  end if;
end $$;

-- When a job of an instance has ended, those of it that are parked try again, oldest first, until none of them gets through. Not
-- while it is suspended: then no condition has a say, and a change that was refused would slip through.
create function mutirao.finish_parked(instances bigint[]) returns void
language plpgsql as $$
declare
  entries mutirao.entry[];
  tried bigint[] := '{}';
  flows int[];
  watched bigint[];
begin
  with again as (
    update mutirao.job j set status = 'ready' where j.instance = any (instances) and j.status = 'parked' and j.change is null
    returning j.id, j.instance, j.flow, j.watched),
  counted as (
    update mutirao.instance i set parked = i.parked - cardinality(a.jobs), reasons = mutirao.reasons_without(i.reasons, a.jobs),
      status = case when mutirao.reasons_without(i.reasons, a.jobs) is null then 'open.running' else i.status end
    from (select instance, array_agg(id) as jobs from again group by 1) a where i.id = a.instance)
  select array_agg(distinct a.flow), array_agg(a.id order by a.id) filter (where a.watched) into flows, watched from again a;
  if flows is not null then
    perform mutirao.wake(flows);
  end if;
  if watched is not null then
    perform mutirao.reach(watched, 'ready');
  end if;
  loop
    select array_agg(row(1, 1, e.id, null, e.instance, e.task, e.cause, e.failures, e.change, null, 'mutirao')::mutirao.entry) into entries
    from (select distinct on (j.instance) j.* from mutirao.job j
          where j.instance = any (instances) and j.status = 'parked' and j.id <> all (tried) order by j.instance, j.id) e;
    exit when entries is null;
    perform mutirao.finish_round(entries, 1, null);
    -- One that got through has changed its instance, so the others of that instance have a new chance.
    tried := array(
      select t.id from unnest(tried || array(select e.job from unnest(entries) e)) t(id) join mutirao.job j on j.id = t.id
      where not exists (select from unnest(entries) e where e.instance = j.instance and not exists (select from mutirao.job g where g.id = e.job)));
  end loop;
  perform mutirao.show_exceptions(instances);
end $$;

-- An attempt has failed: another try is due later, unless none is left, or the task said that trying is of no use.
create function mutirao.retry_later(entries mutirao.entry[]) returns bigint[]
language plpgsql as $$
#variable_conflict use_column
declare
  at timestamptz := mutirao.now();
  retried bigint[];
  watched bigint[];
begin
  with failing as (
    select e.*, i.flow, i.hold, i.status, v.id as version, coalesce(r.retries, 3) as retries, coalesce(r.backoff, interval '100 milliseconds') as backoff
    from unnest(entries) e join mutirao.instance i on i.id = e.instance join mutirao.flow f on f.id = i.flow
    join mutirao.version v on v.id = case when f.live then f.version else i.version end
    left join mutirao.rule r on r.version = v.id and r.task = e.task
    where e.error is not null),
  again as (
    select * from failing where failures < retries and not coalesce((error ->> 'final')::boolean, false) and hold is distinct from 'cancelled'),
  moved as (
    update mutirao.job j set attempt = null, worker = null, lease_until = null, deadline_at = null, failures = j.failures + 1, losses = 0, error = a.error,
      status = case when a.hold = 'suspended' then 'held' else 'waiting' end::mutirao.job_status,
      due_at = case when a.hold is null then at + least(a.backoff * 10 ^ least(a.failures, 6), greatest(a.backoff, interval '5 minutes')) * (0.5 + random()) end
    from again a where j.id = a.job
    returning j.id, j.watched),
  traced as (
    insert into mutirao.trace (instance, id, flow, version, kind, job, task, attempt, cause, status, writer, note, at)
    select a.instance, nextval('mutirao.trace_id'), a.flow, a.version, 'retry', a.job, a.task, a.attempt, a.cause, a.status, a.writer, a.error, at
    from (select * from again order by n) a),
  given_up as (
    update mutirao.job j set status = 'failed', attempt = null, worker = null, lease_until = null, deadline_at = null, failures = j.failures + 1, error = x.error
    from failing x where j.id = x.job and x.hold is distinct from 'cancelled' and not exists (select from again a where a.job = x.job))
  select array_agg(m.id), array_agg(m.id order by m.id) filter (where m.watched) into retried, watched from moved m;
  if retried is not null then
    perform pg_notify('mutirao', 'clock');
  end if;
  if watched is not null then
    perform mutirao.reach(watched, 'ready');
  end if;
  return retried;
end $$;

-- To take the _EXCPT job and write is a repair; it ends with its last reason. To fail at it is to give it back.
create function mutirao.finish_exceptions(entries mutirao.entry[]) returns setof mutirao.settled
language plpgsql as $$
declare
  e mutirao.entry;
begin
  for e in select x.* from unnest(entries) x join mutirao.flow f on f.exception_task = x.task order by x.n loop
    begin
      if e.error is null then
        perform mutirao.repair_instance(e.instance, e.change, e.writer, null, e.attempt);
      end if;
      update mutirao.job j set status = case when i.hold is null then 'ready' else 'held' end::mutirao.job_status,
        attempt = null, worker = null, lease_until = null, deadline_at = null
      from mutirao.instance i where j.id = e.job and i.id = j.instance;
    exception when others then
      if sqlstate not like 'MU%' then raise; end if;
      return next row('refused', e.job, e.attempt, e.instance, e.task, null, null, null,
        jsonb_build_object('code', split_part(sqlerrm, ': ', 1), 'error', substr(sqlerrm, strpos(sqlerrm, ': ') + 2)))::mutirao.settled;
    end;
  end loop;
end $$;

create function mutirao.finish_jobs(writer text, jobs bigint[], attempts bigint[], changes jsonb[], errors jsonb[], hungry mutirao.appetite)
returns setof mutirao.settled
language plpgsql as $$
declare
  locked bigint[];
  troubled boolean;
  entries mutirao.entry[];
  rounds int;
  failing boolean;
  retried bigint[];
  granted int;
  unblocked bigint[];
begin
  select array_agg(q.id), bool_or(q.reasons is not null) into locked, troubled from (
    select i.id, i.reasons from mutirao.instance i where i.id in (select j.instance from mutirao.job j where j.id = any (jobs)) order by i.id for no key update skip locked) q;
  -- A new statement, and so a new snapshot: from here on everything about these instances is ours. Who gives neither a change nor an
  -- error has failed.
  select array_agg(row(x.k, x.n, x.job, x.attempt, x.instance, x.task, x.cause, x.failures, case when x.error is null then x.change end,
      case when x.error is null and x.change is null then '{"error": "it gave no change"}' else x.error end, finish_jobs.writer)::mutirao.entry),
    max(x.k), bool_or(x.error is not null or x.change is null)
    into entries, rounds, failing
  from (
    select row_number() over (partition by j.instance order by x.n)::int as k, x.n, x.job, x.attempt, j.instance, j.task, j.cause, j.failures, x.change, x.error
    from unnest(jobs, attempts, changes, errors) with ordinality x(job, attempt, change, error, n)
    join mutirao.job j on j.id = x.job and j.attempt = x.attempt
    where j.instance = any (locked)) x;

  if rounds > 1 then
    -- A job named twice ends once.
    select array_agg(e) into entries from (select distinct on (u.job) u.* from unnest(entries) u order by u.job, u.n) e;
  end if;
  if coalesce(cardinality(entries), 0) < cardinality(jobs) then
    return query
      select case when j.id is null or j.instance = any (locked) then 'lost' else 'busy' end, x.job, x.attempt, j.instance, j.task, null::int, null::float8, null::jsonb, null::jsonb
      from unnest(jobs, attempts) with ordinality x(job, attempt, n) left join mutirao.job j on j.id = x.job and j.attempt = x.attempt
      where not exists (select from unnest(entries) e where e.n = x.n);
  end if;
  if troubled then
    return query select * from mutirao.finish_exceptions(entries);
    select array_agg(e) into entries from unnest(entries) e where not exists (select from mutirao.flow f where f.exception_task = e.task);
  end if;
  if failing then
    retried := mutirao.retry_later(entries);
    if retried is not null then
      select array_agg(e) into entries from unnest(entries) e where e.job <> all (retried);
    end if;
  end if;

  for round in 1 .. coalesce(rounds, 0) loop
    return query select * from mutirao.finish_round(entries, round, hungry);
    get diagnostics granted = row_count;
    hungry.room := hungry.room - granted;
  end loop;

  -- Parked changes have a new chance where a job has ended.
  select array_agg(i.id) into unblocked from unnest(locked) l(id) join mutirao.instance i on i.id = l.id
  where i.parked > 0 and i.hold is null and exists (
    select from unnest(entries) e where e.instance = i.id and not exists (select from mutirao.job j where j.id = e.job and j.status in ('running', 'parked')));
  if unblocked is not null then
    perform mutirao.finish_parked(unblocked);
  end if;
end $$;
comment on function mutirao.finish_jobs(text, bigint[], bigint[], jsonb[], jsonb[], mutirao.appetite) is
  'Ends many jobs, each by a change or by an error; answers only what did not simply go well, and the jobs leased in exchange.';
