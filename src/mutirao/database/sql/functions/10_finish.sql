-- Ending jobs: by a change or by an error, in batches, each instance one after another.

-- The state each instance of this round would have. The jobs of one instance go one after another, each with its own look.
create or replace function mutirao.finish_round(entries mutirao.entry[], round int, hungry mutirao.appetite) returns setof mutirao.settled
language plpgsql as $$
declare
  work mutirao.work[];
  versions int[];
begin
  select
    array_agg(row(e.n, case when e.error is null then case when e.undoes is null then 'finish' else 'compensate' end when g.is_gone then 'drop' else 'fail' end,
      i.id, i.flow, v.id, e.job, e.task, e.attempt, e.cause, e.change,
      i.state || coalesce(e.change, '{}'),
      array_remove(i.pending, e.task),
      case when e.error is null or g.is_gone then i.failed else array_remove(i.failed, e.task) || e.task end,
      i.fired,
      case when v.terms = '{}' then i.reached when e.task = any (v.standing) then mutirao.reached_by(v, i.reached, e.task, e.error is not null)
        else mutirao.reached_with(i.reached, v.terms, array[e.task], case when e.error is null then 'succeeded' else 'failed' end) end,
      case when v.named = '{}' then i.latest when e.task = any (v.standing) then mutirao.latest_by(v, i.latest, e.task, e.error is not null)
        else mutirao.latest_with(i.latest, v.named, array[e.task], case when e.error is null then 'succeeded' else 'failed' end) end,
      array_remove(i.pending, e.task) || case when e.error is null then i.failed else i.failed || e.task end || i.fired,
      case when e.attempt is null then i.parked - 1 else i.parked end,
      case
        when e.error is not null and e.task <> all (v.handled) and not g.is_gone then coalesce(i.reasons, '[]')
          || jsonb_build_object('code', case when e.undoes is null then 'task_failed' else 'compensation_failed' end, 'job', e.job,
          'task', (select t.name from mutirao.task t where t.id = e.task), 'error', e.error ->> 'error')
        when i.reasons is null then null
        else mutirao.reasons_without(i.reasons, array[e.job]) end,
      i.hold, i.firings, i.priority, i.started_at, e.writer, case when e.undoes is null then e.error else coalesce(e.error, '{}') || jsonb_build_object('undoes', e.undoes) end)::mutirao.work order by v.id, e.n),
    array_agg(distinct v.id)
    into work, versions
  from unnest(entries) e join mutirao.instance i on i.id = e.instance join mutirao.version v on v.id = i.version
  cross join lateral (select i.hold is not null and mutirao.job_hold(i.hold, i.id, e.cause, e.undoes) is not distinct from 'cancelled' as is_gone) g
  where e.k = round;
  if work is not null then
    return query select * from mutirao.settle(work, versions, hungry);
  end if;
end $$;

-- When a job of an instance has ended, those of it that are parked try again, oldest first, until none of them gets through. Not
-- while it is suspended: then no condition has a say, and a change that was refused would slip through.
create or replace function mutirao.finish_parked(instances bigint[]) returns void
language plpgsql as $$
declare
  entries mutirao.entry[];
  tried bigint[] := '{}';
  flows int[];
  watched bigint[];
begin
  with again as (
    update mutirao.job j set status = 'ready', due_at = null where j.instance = any (instances) and j.status = 'parked' and j.change is null
    returning j.id, j.instance, j.flow, j.watched),
  counted as (
    update mutirao.instance i set parked = i.parked - cardinality(a.jobs), reasons = mutirao.reasons_without(i.reasons, a.jobs),
      status = case when mutirao.reasons_without(i.reasons, a.jobs) is null then 'open.running' else i.status end
    from (select instance, array_agg(id) as jobs from again group by 1) a where i.id = a.instance)
  select array_agg(distinct a.flow), array_agg(a.id order by a.id) filter (where a.watched) into flows, watched from again a;
  perform mutirao.ready_again(flows, watched);
  loop
    select array_agg(row(1, 1, e.id, null, e.instance, e.task, e.cause, e.failures, e.change, null, 'mutirao', e.undoes)::mutirao.entry) into entries
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

create or replace function mutirao.pause_before(failures int, backoff interval) returns interval
language sql volatile
return least(backoff * 10 ^ least(failures, 6), greatest(backoff, interval '5 minutes')) * (0.5 + random());
comment on function mutirao.pause_before(int, interval) is
  'How long to wait after the first failure, the second, …: ten times as long each time, up to five minutes or so, and never all at once.';

-- An attempt has failed: another try is due later, unless none is left, or the task said that trying is of no use.
create or replace function mutirao.retry_later(entries mutirao.entry[]) returns bigint[]
language plpgsql as $$
#variable_conflict use_column
declare
  at timestamptz := mutirao.now();
  retried bigint[];
  watched bigint[];
  children bigint[];
begin
  with failing as (
    select e.*, i.flow, r.child, mutirao.job_hold(i.hold, i.id, e.cause, e.undoes) as hold, i.status, v.id as version,
      coalesce(r.retries, 3) as retries, coalesce(r.backoff, interval '100 milliseconds') as backoff, coalesce(r.force, false) as force
    from unnest(entries) e join mutirao.instance i on i.id = e.instance join mutirao.version v on v.id = i.version
    left join mutirao.rule r on r.version = v.id and r.task = e.task
    where e.error is not null),
  again as (
    select * from failing where (force or failures < retries and error -> 'final' is distinct from 'true') and hold is distinct from 'cancelled'),
  moved as (
    update mutirao.job j set attempt = null, worker = null, lease_until = null, deadline_at = null, failures = j.failures + 1, losses = 0, error = a.error,
      status = case when a.hold = 'suspended' then 'held' else 'waiting' end::mutirao.job_status,
      due_at = case when a.hold is null then at + mutirao.pause_before(a.failures, a.backoff) end
    from again a where j.id = a.job
    returning j.id, j.watched, a.child),
  traced as (
    insert into mutirao.trace (instance, id, flow, version, kind, job, task, attempt, cause, status, writer, note, at)
    select a.instance, nextval('mutirao.trace_id'), a.flow, a.version, 'retry', a.job, a.task, a.attempt, a.cause, a.status, a.writer, a.error, at
    from (select * from again order by n) a),
  given_up as (
    update mutirao.job j set status = 'failed', due_at = null, attempt = null, worker = null, lease_until = null, deadline_at = null, failures = j.failures + 1, error = x.error
    from failing x where j.id = x.job and x.hold is distinct from 'cancelled' and not exists (select from again a where a.job = x.job))
  select array_agg(m.id), array_agg(m.id order by m.id) filter (where m.watched), array_agg(m.id) filter (where m.child is not null) into retried, watched, children from moved m;
  if retried is not null then
    perform pg_notify('mutirao', 'clock');
  end if;
  if children is not null then
    perform mutirao.want_children(children);
  end if;
  if watched is not null then
    perform mutirao.reach(watched, 'ready');
  end if;
  return retried;
end $$;

-- To take the _EXCPT job and write is a repair; it ends with its last reason. Where a reason is left, or the attempt failed, it goes
-- back for another try after a pause.
create or replace function mutirao.finish_exceptions(entries mutirao.entry[]) returns setof mutirao.settled
language plpgsql as $$
declare
  e mutirao.entry;
begin
  for e in select x.* from unnest(entries) x join mutirao.flow f on f.exception_task = x.task order by x.n loop
    begin
      if e.error is null then
        perform mutirao.repair_instance(e.instance, e.change, e.writer, null, e.attempt);
      end if;
      update mutirao.job j set attempt = null, worker = null, lease_until = null, deadline_at = null, failures = e.failures + 1,
        status = case when i.hold is not null then 'held' else 'waiting' end::mutirao.job_status,
        due_at = case when i.hold is null then mutirao.now() + mutirao.pause_before(e.failures, interval '100 milliseconds') end
      from mutirao.instance i where j.instance = e.instance and j.task = e.task and i.id = j.instance;  -- a repair may have made another
      if found then
        perform pg_notify('mutirao', 'clock');
      end if;
      if e.error is not null then
        insert into mutirao.trace (instance, id, flow, version, kind, job, task, attempt, cause, status, writer, note, at)
        select i.id, nextval('mutirao.trace_id'), i.flow, i.version, 'retry', e.job, e.task, e.attempt, e.cause, i.status, e.writer, e.error, mutirao.now()
        from mutirao.instance i where i.id = e.instance;
      end if;
    exception when others then
      if sqlstate not like 'MU%' then raise; end if;
      return next row('refused', e.job, e.attempt, e.instance, e.task, null, null, null,
        jsonb_build_object('code', split_part(sqlerrm, ': ', 1), 'error', substr(sqlerrm, strpos(sqlerrm, ': ') + 2)))::mutirao.settled;
    end;
  end loop;
end $$;

create or replace function mutirao.finish_jobs(
  writer text, jobs bigint[], attempts bigint[], changes jsonb[], errors jsonb[], hungry mutirao.appetite, items boolean default false)
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
  if exists (select from mutirao.recheck) then
    perform mutirao.catch_up(locked);
  end if;
  -- A new statement, and so a new snapshot: from here on everything about these instances is ours. Who gives neither a change nor an
  -- error has failed.
  select array_agg(row(x.k, x.n, x.job, x.attempt, x.instance, x.task, x.cause, x.failures, case when x.error is null then x.change end,
      case when x.error is not null then mutirao.short_error(x.error) when x.change is null then '{"error": "it gave no change"}' end, finish_jobs.writer, x.undoes)::mutirao.entry),
    max(x.k), bool_or(x.error is not null or x.change is null)
    into entries, rounds, failing
  from (
    select row_number() over (partition by j.instance order by x.n)::int as k, x.n, x.job, x.attempt, j.instance, j.task, j.cause, j.failures, x.change, x.error, j.undoes
    from unnest(jobs, attempts, changes, errors) with ordinality x(job, attempt, change, error, n)
    join mutirao.job j on j.id = x.job and j.attempt = x.attempt and (j.role is null or finish_jobs.items)
    where j.instance = any (locked)) x;

  if rounds > 1 then
    -- A job named twice ends once.
    select array_agg(e) into entries from (select distinct on (u.job) u.* from unnest(entries) u order by u.job, u.n) e;
  end if;
  if coalesce(cardinality(entries), 0) < cardinality(jobs) then
    return query
      select case when j.id is null or j.instance = any (locked) then 'lost' else 'busy' end, x.job, x.attempt, j.instance, j.task, null::int, null::float8, null::jsonb, null::jsonb
      from unnest(jobs, attempts) with ordinality x(job, attempt, n) left join mutirao.job j on j.id = x.job and j.attempt = x.attempt and (j.role is null or finish_jobs.items)
      where not exists (select from unnest(entries) e where e.n = x.n);
  end if;
  if troubled then
    return query select * from mutirao.finish_exceptions(entries);
    select array_agg(e) into entries from unnest(entries) e where not exists (select from mutirao.flow f where f.exception_task = e.task);
  end if;
  if failing then
    retried := mutirao.retry_later(entries);
    if retried is not null then
      perform mutirao.undo_next(array(select e.instance from unnest(entries) e where e.job = any (retried)));
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
comment on function mutirao.finish_jobs(text, bigint[], bigint[], jsonb[], jsonb[], mutirao.appetite, boolean) is
  'Ends many jobs, of workers alone unless `items` says otherwise, each by a change or by an error; answers only what did not simply go well, and the jobs leased in exchange.';
