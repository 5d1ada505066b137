-- What is done to the instances of a batch, by kind. 23_batch.sql says what is asked of these functions.

create or replace function mutirao.batch_cancel(b mutirao.batch, instances bigint[]) returns setof mutirao.batch_outcome
language plpgsql as $$
begin
  perform mutirao.cancel_instances(instances, b.made_by, b.reason);
end $$;

create or replace function mutirao.batch_suspend(b mutirao.batch, instances bigint[]) returns setof mutirao.batch_outcome
language plpgsql as $$
declare
  suspended bigint[] := array(select i.id from mutirao.instance i where i.id = any (instances) and i.hold = 'suspended');
begin
  perform mutirao.hold_instances(array(select n from unnest(instances) n where n <> all (suspended)), 'suspend', b.made_by, b.reason);
  return query select n, null::text, null::text from unnest(suspended) n;
end $$;

create or replace function mutirao.batch_resume(b mutirao.batch, instances bigint[]) returns setof mutirao.batch_outcome
language plpgsql as $$
declare
  suspended bigint[] := array(select i.id from mutirao.instance i where i.id = any (instances) and i.hold = 'suspended');
begin
  perform mutirao.hold_instances(suspended, 'resume', b.made_by, b.reason);
  return query select n, null::text, null::text from unnest(instances) n where n <> all (suspended);
end $$;

create or replace function mutirao.batch_set(b mutirao.batch, instances bigint[]) returns setof mutirao.batch_outcome
language plpgsql as $$
begin
  return query select u.instance, 'instance_undoing', format('instance %s is being rolled back: only compensations change it', u.instance) from mutirao.undoing u where u.instance = any (instances);
  return query select r.instance, r.note ->> 'code', mutirao.refusal_words(r) from mutirao.write_all(array(
    select row(1, 'set', i.id, i.flow, i.version, null, null, null, null, b.arguments -> 'change', i.state, i.pending, i.failed, i.fired, i.reached, i.latest, null,
      i.parked, i.reasons, i.hold, i.firings, i.priority, i.started_at, b.made_by, mutirao.note(b.reason))::mutirao.work
    from mutirao.instance i where i.id = any (instances) and not exists (select from mutirao.undoing u where u.instance = i.id))) r;
end $$;

create or replace function mutirao.batch_repair(b mutirao.batch, instances bigint[]) returns setof mutirao.batch_outcome
language plpgsql as $$
declare
  wrong bigint[] := array(select i.id from mutirao.instance i where i.id = any (instances) and i.reasons is not null);
begin
  perform mutirao.repair_instance(n, coalesce(b.arguments -> 'change', '{}'), b.made_by, b.reason) from unnest(wrong) n;
  return query select n, null::text, null::text from unnest(instances) n where n <> all (wrong);
end $$;

-- The failed jobs that the filter means: of each instance the first, the second, and so on. A change on which a condition raises is parked and gets through
-- no more than a failed one: who skips those is meant to give another.
create or replace function mutirao.failed_jobs(b mutirao.batch, instances bigint[]) returns table (job bigint, instance bigint, nth int)
language sql stable as $$
  select j.id, j.instance, row_number() over (partition by j.instance order by j.id)::int
  from mutirao.job j join mutirao.task t on t.id = j.task
  where j.instance = any (instances)
    and (j.status = 'failed' or b.kind = 'skip' and b.filter ->> 'exception' = 'condition_failed' and j.status = 'parked' and exists (
      select from mutirao.instance i where i.id = j.instance and i.reasons @> jsonb_build_array(jsonb_build_object('code', 'condition_failed', 'job', j.id))))
    and (j.undoes is not null or not exists (select from mutirao.undoing u where u.instance = j.instance))
    and (b.filter ->> 'task' is null or t.name = b.filter ->> 'task')
    and (b.filter ->> 'error' is null or j.error ->> 'code' = b.filter ->> 'error' or starts_with(j.error ->> 'error', b.filter ->> 'error'))
$$;

create or replace function mutirao.batch_retry(b mutirao.batch, instances bigint[]) returns setof mutirao.batch_outcome
language plpgsql as $$
declare
  retried bigint[] := '{}';
  round record;
begin
  for round in select array_agg(f.job) as jobs, array_agg(f.instance) as instances from mutirao.failed_jobs(b, instances) f group by f.nth order by f.nth loop
    perform mutirao.retry_jobs(round.jobs, b.made_by, b.reason);
    retried := retried || round.instances;
  end loop;
  return query select n, null::text, null::text from unnest(instances) n where n <> all (retried);
end $$;

create or replace function mutirao.batch_skip(b mutirao.batch, instances bigint[]) returns setof mutirao.batch_outcome
language plpgsql as $$
declare
  skipped bigint[] := '{}';
  f record;
begin
  for f in select x.job, x.instance from mutirao.failed_jobs(b, instances) x order by x.nth, x.job loop
    continue when not exists (select from mutirao.job j where j.id = f.job);  -- the one before may have ended its instance
    perform mutirao.skip_job(f.job, coalesce(b.arguments -> 'change', '{}'), b.made_by, b.reason);
    skipped := skipped || f.instance;
  end loop;
  return query select n, null::text, null::text from unnest(instances) n where n <> all (skipped);
end $$;

create or replace function mutirao.batch_roll_back(b mutirao.batch, instances bigint[]) returns setof mutirao.batch_outcome
language plpgsql as $$
begin
  perform mutirao.undo_instance(n, b.arguments ->> 'safe_point', b.made_by, b.reason) from unnest(instances) n;
end $$;

create or replace function mutirao.batch_start_task(b mutirao.batch, instances bigint[]) returns setof mutirao.batch_outcome
language plpgsql as $$
begin
  perform mutirao.start_task_of(n, b.arguments ->> 'task', b.made_by, b.reason) from unnest(instances) n;
end $$;

create or replace function mutirao.batch_go_back(b mutirao.batch, instances bigint[]) returns setof mutirao.batch_outcome
language plpgsql as $$
begin
  perform mutirao.go_back_to(n, b.arguments ->> 'task', b.made_by, b.reason) from unnest(instances) n;
end $$;
