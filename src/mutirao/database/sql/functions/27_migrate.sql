-- Moving instances of a pinned flow to another of its versions, newer or older: as a batch, or to see beforehand what it would do.
--
-- A task is the same in all versions of its flow, so what is pending, has failed, fired or been reached stays so under its name. A mapping
-- says what tasks that were renamed or merged become, and what attributes were renamed. Unclaimed jobs of tasks that the version lacks
-- go, and the trace says which; what runs may finish, and then fires by the new version. What the old version had no need
-- to remember (a dependency, a task that fires once) is found in the trace.

------------------------------------------------------------------------------------------------------------------ checking

create or replace function mutirao.check_mapping(what text, flow text, mapping jsonb, old text[], new text[]) returns void
language plpgsql as $$
declare
  code text := case what when 'task' then 'unknown_task' else 'unknown_attribute' end;
  odd text;
begin
  if jsonb_typeof(mapping) <> 'object' or exists (select from jsonb_each(mapping) e where jsonb_typeof(e.value) <> 'string') then
    perform mutirao.refuse('wrong_call', format('a mapping of %ss is a JSON object {"old": "new"}: it cannot be %s', what, left(mapping::text, 100)));
  end if;
  select k into odd from jsonb_object_keys(mapping) k where k <> all (old) limit 1;
  if odd is not null then
    perform mutirao.refuse(code, format('the mapping is from the %s "%s", which no version of flow "%s" that is left has; there are %s', what, odd, flow, array_to_string(old, ', ')));
  end if;
  select e.value into odd from jsonb_each_text(mapping) e where e.value <> all (new) limit 1;
  if odd is not null then
    perform mutirao.refuse(code, format('the mapping is to the %s "%s", which the version lacks; it has %s', what, odd, array_to_string(new, ', ')));
  end if;
end $$;

create or replace function mutirao.tasks_in(versions int[]) returns text[]
language sql stable
return array(select distinct t.name from mutirao.rule r join mutirao.task t on t.id = r.task
  where r.version = any (versions) and r.enabled and t.name not in ('_FINAL', '_EXCPT') order by 1);

create or replace function mutirao.attributes_in(versions int[]) returns text[]
language sql stable return array(select distinct a.name from mutirao.attribute a where a.version = any (versions) order by 1);

create or replace function mutirao.draft_migration(flow text, from_version int, to_version int, tasks jsonb, attributes jsonb, filter jsonb) returns mutirao.batch
language plpgsql as $$
declare
  f mutirao.flow;
  target mutirao.version;
  left_versions int[];
begin
  select * into f from mutirao.flow x where x.name = draft_migration.flow;
  if not found then
    perform mutirao.refuse_flow(flow);
  elsif f.live then
    perform mutirao.refuse('flow_live', format('flow "%s" is defined by SQL: its instances follow the newest version by themselves', flow));
  end if;
  select * into target from mutirao.version v where v.flow = f.id and case when to_version is null then v.id = f.version else v.number = to_version end;
  left_versions := array(select v.id from mutirao.version v where v.flow = f.id and v.id <> target.id and (from_version is null or v.number = from_version));
  if target.id is null or from_version is not null and not exists (select from mutirao.version v where v.flow = f.id and v.number = from_version) then
    perform mutirao.refuse('unknown_version', format('flow "%s" has no version %s; its newest is %s', flow, case when target.id is null then to_version else from_version end,
      (select max(v.number) from mutirao.version v where v.flow = f.id)));
  elsif from_version = target.number then
    perform mutirao.refuse('wrong_call', format('from version %s to version %s there is nothing to migrate', from_version, target.number));
  end if;
  perform mutirao.check_mapping('task', flow, coalesce(tasks, '{}'), mutirao.tasks_in(left_versions), mutirao.tasks_in(array[target.id]));
  perform mutirao.check_mapping('attribute', flow, coalesce(attributes, '{}'), mutirao.attributes_in(left_versions), mutirao.attributes_in(array[target.id]));
  return mutirao.draft_batch('migrate',
    coalesce(filter, '{}') || jsonb_build_object('flow', flow, 'version', from_version, 'not_version', target.number),
    jsonb_build_object('to', target.number, 'tasks', coalesce(tasks, '{}'), 'attributes', coalesce(attributes, '{}')), null, null);
end $$;

create or replace function mutirao.target_version(b mutirao.batch) returns mutirao.version
language sql stable return (select v from mutirao.version v where v.flow = b.flow and v.number = (b.arguments ->> 'to')::int);

create or replace function mutirao.migrate_flow(flow text, to_version int default null, from_version int default null, tasks jsonb default '{}', attributes jsonb default '{}',
  filter jsonb default '{}', reason text default null, writer text default session_user) returns bigint
language plpgsql security definer as $$
declare
  b mutirao.batch := mutirao.draft_migration(flow, from_version, to_version, tasks, attributes, filter);
begin
  return mutirao.new_batch(b.kind, b.filter, b.arguments, reason, mutirao.signed(writer));
end $$;
comment on function mutirao.migrate_flow(text, int, int, jsonb, jsonb, jsonb, text, text) is
  'Moves the open instances of a pinned flow to another version, by default the newest, as a batch. Answers the batch.';

----------------------------------------------------------------------------------------------------------------- working out

-- Where several jobs become one, the one that has come furthest stays. `ours` are the jobs that are locked; any other is being claimed at
-- this moment, and as good as running. Without it, as in a preview, nobody is claiming. What `synchronizes` has to pass the gate, first or once more.
create or replace function mutirao.migrated_jobs(b mutirao.batch, target int, instances bigint[], ours bigint[])
returns table (job bigint, instance bigint, task int, becomes int, status mutirao.job_status, goes boolean, clashes boolean, synchronizes boolean)
language sql stable as $$
  select j.id, j.instance, j.task, j.becomes, j.status, j.is_free and (not j.is_known or j.nth > 1), not j.is_free and j.nth > 1, j.synchronizes
  from (
    select j.id, j.instance, j.task, m.becomes, j.status, not (c.is_running or j.status = 'parked' and j.change is not null) as is_free, coalesce(r.enabled, false) as is_known,
      row_number() over (partition by j.instance, m.becomes order by c.is_running desc, j.status = 'parked' desc, j.status = 'failed', j.id) as nth,
      coalesce(r.task = any ((select v.gated from mutirao.version v where v.id = target)::int[]), false) and not c.is_running and case j.status
        when 'ready' then j.gate is distinct from 'holds' or (j.class, coalesce(j.ordered, false)) is distinct from (r.class_id, r.ordered)
        when 'waiting' then j.gate is not null or j.failures = 0 else j.status = 'held' end as synchronizes
    from mutirao.job j join mutirao.task t on t.id = j.task
    cross join lateral (select case when b.arguments -> 'tasks' ? t.name
      then (select n.id from mutirao.task n where n.flow = b.flow and n.name = b.arguments -> 'tasks' ->> t.name) else j.task end as becomes) m
    cross join lateral (select j.status = 'running' or coalesce(j.id <> all (ours), false) as is_running) c
    left join mutirao.rule r on r.version = target and r.task = m.becomes
    where j.instance = any (instances) and t.name <> '_EXCPT') j
$$;

create or replace function mutirao.mapped(b mutirao.batch, tasks int[]) returns int[]
language sql stable as $$
  select coalesce(array_agg(distinct coalesce(n.id, t.id)), '{}') from mutirao.task t
  left join mutirao.task n on n.flow = b.flow and n.name = b.arguments -> 'tasks' ->> t.name
  where t.id = any (tasks)
$$;
comment on function mutirao.mapped(mutirao.batch, int[]) is 'What these tasks become.';

create or replace function mutirao.mapped_terms(b mutirao.batch, terms int[]) returns int[]
language sql stable as $$
  select coalesce(array_agg(distinct (mutirao.mapped(b, array[x / 8]))[1] * 8 + x % 8), '{}') from unnest(terms) x
$$;

create or replace function mutirao.renamed(document jsonb, mapping jsonb) returns jsonb
language sql immutable as $$
  select case when document is null or mapping = '{}' then document
    else document - array(select jsonb_object_keys(mapping)) || coalesce(
      (select jsonb_object_agg(m.value, document -> m.key order by m.key) from jsonb_each_text(mapping) m where document ? m.key), '{}') end
$$;

------------------------------------------------------------------------------------------------------------------ the past

create or replace function mutirao.renamings(instance bigint) returns jsonb
language sql stable
return (select jsonb_agg(jsonb_build_object('row', t.id, 'tasks', t.note -> 'tasks') order by t.id) from mutirao.trace t
  where t.instance = renamings.instance and t.kind = 'migrate' and t.note ? 'tasks');
comment on function mutirao.renamings(bigint) is 'The rows of its trace by which tasks of an instance became others, and which; null: none.';

create or replace function mutirao.renamed_task(renamings jsonb, since bigint, task int, until bigint) returns int
language plpgsql stable as $$
declare
  r jsonb;
begin
  for r in select x from jsonb_array_elements(renamings) x where (x ->> 'row')::bigint > since and (x ->> 'row')::bigint < until loop
    task := coalesce((select n.id from mutirao.task o join mutirao.task n on n.flow = o.flow and n.name = r -> 'tasks' ->> o.name where o.id = renamed_task.task), task);
  end loop;
  return task;
end $$;

-- Asked of every row of a trace: most instances have no renamings, and then it is nothing but the task.
create or replace function mutirao.task_since(renamings jsonb, since bigint, task int, until bigint default 9223372036854775807) returns int
language sql stable
return case when renamings is null then task else mutirao.renamed_task(renamings, since, task, until) end;
comment on function mutirao.task_since(jsonb, bigint, int, bigint) is 'What a task that a row of the trace names has become since, by now or before another row.';

---------------------------------------------------------------------------------------------------------------- what it would be

-- What each instance would be under the target version. Only reads.
create or replace function mutirao.migrate_work(b mutirao.batch, v mutirao.version, instances bigint[], ours bigint[]) returns mutirao.work[]
language sql stable as $$
  with jobs as materialized (
    select * from mutirao.migrated_jobs(b, v.id, instances, ours)),
  standing as materialized (
    select i.id, coalesce(array_agg(j.becomes) filter (where j.status <> 'failed' and not j.goes), '{}') as pending,
      coalesce(array_agg(j.becomes) filter (where j.status = 'failed' and not j.goes), '{}') as failed,
      count(*) filter (where j.status = 'parked' and not j.goes)::int as parked,
      coalesce(array_agg(j.job) filter (where j.goes), '{}') as gone,
      jsonb_agg(jsonb_build_object('job', j.job, 'task', t.name) order by j.job) filter (where j.goes) as removed,
      coalesce(jsonb_object_agg(n.name, case when j.status in ('running', 'parked') then 'running' when j.status = 'failed' then 'failed' when j.synchronizes then 'synchronizing' else 'ready' end)
        filter (where not j.goes and j.becomes = any (v.named)), '{}') as latest,
      coalesce(array_agg(j.becomes) filter (where j.synchronizes), '{}') as synchronizing,
      coalesce(array_agg(n.name) filter (where j.goes), '{}') as forgotten,
      jsonb_agg(jsonb_build_object('code', 'task_failed', 'job', j.job, 'task', n.name, 'error', (select x.error ->> 'error' from mutirao.job x where x.id = j.job)) order by j.job)
        filter (where j.status = 'failed' and not j.goes and j.becomes <> all (v.handled)) as failures
    from unnest(instances) i(id) left join jobs j on j.instance = i.id left join mutirao.task t on t.id = j.task left join mutirao.task n on n.id = j.becomes
    group by i.id),
  -- What the version before had no need to keep, and this one has.
  versions as materialized (
    select o.id, o.number, mutirao.mapped_terms(b, o.terms) as terms, mutirao.mapped(b, o.once) as once, mutirao.mapped(b, o.named) as named
    from mutirao.version o where o.flow = b.flow),
  past as materialized (
    select i.id, mutirao.mapped(b, p.fired) as fired, mutirao.mapped(b, p.done) as done
    from mutirao.instance i join versions o on o.id = i.version
    cross join lateral (
      select coalesce(array_agg(distinct mutirao.task_since(l.list, r.id, f.task)) filter (where f.task is not null), '{}') as fired,
        coalesce(array_agg(distinct mutirao.task_since(l.list, r.id, r.task)) filter (where r.kind in ('finish', 'skip') and r.task is not null), '{}') as done
      from (select mutirao.renamings(i.id) as list offset 0) l join mutirao.trace r on r.instance = i.id left join lateral unnest(r.fired) f(task) on true) p
    where i.id = any (instances) and not (v.terms <@ o.terms and v.once <@ o.once and v.named <@ o.named))
  select coalesce(array_agg(row(1, 'migrate', i.id, i.flow, v.id, null, null, null, null,
      (select coalesce(jsonb_object_agg(e.key, e.value), '{}') from jsonb_each(n.state) e where v.defaults ? e.key),
      n.state, s.pending, s.failed, n.fired, n.reached, n.latest, s.pending || s.failed || n.fired, s.parked,
      case when i.reasons is null and s.failures is null then null else (
        select jsonb_agg(x.r) from (
          select e.r from jsonb_array_elements(i.reasons) e(r) where e.r ->> 'code' <> 'task_failed' and coalesce((e.r ->> 'job')::bigint <> all (s.gone), true)
          union all select jsonb_array_elements(s.failures)) x(r)) end,
      i.hold, i.firings, i.priority, i.started_at, b.made_by,
      jsonb_strip_nulls(jsonb_build_object('from', o.number, 'to', v.number, 'tasks', nullif(b.arguments -> 'tasks', '{}'), 'attributes', nullif(b.arguments -> 'attributes', '{}'), 'removed', s.removed, 'batch', b.id, 'reason', b.reason)))::mutirao.work order by i.id), '{}')
  from mutirao.instance i join standing s on s.id = i.id join versions o on o.id = i.version left join past p on p.id = i.id
  cross join lateral (select
    v.defaults || case when b.arguments -> 'attributes' = '{}' then i.state else mutirao.renamed(i.state, b.arguments -> 'attributes') end as state,
    case when v.once = '{}' then '{}' else array(select unnest(mutirao.mapped(b, i.fired || coalesce(p.fired, '{}'))) intersect select unnest(v.once)) end as fired,
    case when v.terms = '{}' then '{}' else array(select x from (
        select unnest(mutirao.mapped_terms(b, i.reached)) union
        select mutirao.term(t, 'succeeded') from unnest(p.done) t union
        select mutirao.term(t, 'failed') from unnest(s.failed) t union
        select mutirao.term(t, 'ready') from unnest(mutirao.without(p.fired || s.pending, s.synchronizing) || p.done) t union
        select mutirao.term(t, 'running') from unnest(p.done || s.failed) t) r(x)
      where x = any (v.terms) order by x) end as reached,
    case when v.named = '{}' then null else coalesce((select jsonb_object_agg(t.name, 'succeeded') from mutirao.task t where t.id = any (p.done) and t.id = any (v.named)), '{}')
      || (coalesce(mutirao.renamed(i.latest, b.arguments -> 'tasks'), '{}') - s.forgotten) || s.latest end as latest) n
$$;
comment on function mutirao.migrate_work(mutirao.batch, mutirao.version, bigint[], bigint[]) is 'What instances would be under the version that a migration leads to; writes nothing.';

create or replace function mutirao.clashing(b mutirao.batch, target int, instances bigint[], ours bigint[]) returns setof mutirao.batch_outcome
language sql stable as $$
  select distinct on (j.instance) j.instance, 'job_running', format('instance %s: two of its running jobs would become %s; let one of them end first', j.instance,
    (select t.name from mutirao.task t where t.id = j.becomes))
  from mutirao.migrated_jobs(b, target, instances, ours) j where b.arguments -> 'tasks' <> '{}' and j.clashes
$$;

create or replace function mutirao.being_undone(instances bigint[]) returns setof mutirao.batch_outcome
language sql stable as $$
  select u.instance, 'instance_undoing', format('instance %s is being rolled back, by the compensations of its version: let that end first', u.instance)
  from mutirao.undoing u where u.instance = any (instances)
$$;

create or replace function mutirao.being_claimed(b mutirao.batch, target int, instances bigint[], ours bigint[]) returns setof mutirao.batch_outcome
language sql stable as $$
  select distinct j.instance, 'busy', null::text from mutirao.migrated_jobs(b, target, instances, ours) j
  where b.arguments -> 'tasks' <> '{}' and j.task <> j.becomes and j.job <> all (ours)
$$;
comment on function mutirao.being_claimed(mutirao.batch, int, bigint[], bigint[]) is 'Those with a job that is to become another one and is being claimed: whoever wrote it would wait.';

create or replace function mutirao.misfits(problem jsonb) returns boolean
language sql immutable return coalesce(problem ->> 'code' in ('wrong_type', 'missing_attribute', 'unknown_attribute', 'too_large'), false);
comment on function mutirao.misfits(jsonb) is 'Its state does not fit the version: it stays where it is. Any other problem is an exception of its own.';

---------------------------------------------------------------------------------------------------------------------- doing

create or replace function mutirao.take_rules(jobs bigint[], v mutirao.version) returns void
language sql as $$
  -- Who does it is the version's to say: what was offered to others is not offered any more.
  update mutirao.job j set person = null, offered_to = null, reserved = null, transferred = null, finish_by = null, alert_at = null, allowed = null, size = null
  from mutirao.rule r
  where j.id = any (jobs) and j.status not in ('running', 'parked') and r.version = v.id and r.task = j.task and j.role is distinct from r.role;
  -- Whom it excludes is as well, from now on. What runs has its class without having passed the gate: whoever comes later waits for it.
  update mutirao.job j set class = r.class_id, ordered = nullif(r.ordered, false),
    gate = case when j.status = 'running' and (r.class_id is not null or r.ordered) then 'holds' end
  from mutirao.rule r
  where j.id = any (jobs) and j.status in ('running', 'parked') and r.version = v.id and r.task = j.task
    and (j.class, coalesce(j.ordered, false)) is distinct from (r.class_id, r.ordered);
  -- How it is tried is, too. A lease that has begun is left as it is.
  update mutirao.job j set priority = r.priority + i.priority, timeout = r.timeout, watched = mutirao.is_watched(r.task, r.task = any (v.gated), v.watched),
    by_clock = r.by_clock or r.child is not null, role = r.role, class = r.class_id, ordered = nullif(r.ordered, false), gate_at = null,
    gate = case when (j.class, coalesce(j.ordered, false)) is not distinct from (r.class_id, r.ordered) and j.status <> 'waiting' then j.gate end,
    status = case when mutirao.job_state(j.status, j.gate) = 'synchronizing' or j.status = 'waiting' and j.failures = 0 and r.wait is null then 'ready' else j.status end,
    due_at = case when mutirao.job_state(j.status, j.gate) = 'synchronizing' or j.status = 'waiting' and j.failures = 0 and r.wait is null then null else j.due_at end
  from mutirao.rule r, mutirao.instance i
  where j.id = any (jobs) and j.status not in ('running', 'parked') and r.version = v.id and r.task = j.task and i.id = j.instance;
$$;
comment on function mutirao.take_rules(bigint[], mutirao.version) is 'Jobs that nobody does at present are done as this version has it.';

create or replace function mutirao.move_jobs(b mutirao.batch, v mutirao.version, instances bigint[], ours bigint[]) returns void
language plpgsql as $$
declare
  jobs bigint[];
  becomes int[];
begin
  with gone as (
    delete from mutirao.job j using mutirao.migrated_jobs(b, v.id, instances, ours) m where m.goes and j.id = m.job)
  select array_agg(m.job), array_agg(m.becomes) into jobs, becomes from mutirao.migrated_jobs(b, v.id, instances, ours) m where not m.goes and m.job = any (ours);
  -- By way of numbers that no task has: two tasks may change places, and (instance, task) is unique.
  update mutirao.job j set task = -m.becomes, slot = null
  from unnest(jobs, becomes) m(job, becomes) where j.id = m.job and j.task <> m.becomes;
  update mutirao.job j set task = -j.task where j.id = any (jobs) and j.task < 0;
  update mutirao.participation k set task = n.id from mutirao.task o, mutirao.task n
  where b.arguments -> 'tasks' <> '{}' and k.instance = any (instances) and o.id = k.task and n.flow = b.flow and n.name = b.arguments -> 'tasks' ->> o.name;
  -- The old ones go when it is settled.
  insert into mutirao.alarm (instance, task, due_at)
  select a.instance, n.id, min(a.due_at) from mutirao.alarm a join mutirao.task o on o.id = a.task
  join mutirao.task n on n.flow = b.flow and n.name = b.arguments -> 'tasks' ->> o.name
  where a.instance = any (instances) group by 1, 2 on conflict do nothing;
  perform mutirao.take_rules(jobs, v);
end $$;

create or replace function mutirao.batch_migrate(b mutirao.batch, instances bigint[]) returns setof mutirao.batch_outcome
language plpgsql as $$
declare
  v mutirao.version := mutirao.target_version(b);
  ours bigint[];
  refused mutirao.batch_outcome[];
  work mutirao.work[];
  looked mutirao.looked[];
  moving bigint[];
  unblocked bigint[];
begin
  -- A claim holds a job and not its instance. A new statement follows, and so a new snapshot.
  ours := array(select j.id from mutirao.job j where j.instance = any (instances) order by j.id for update skip locked);
  return query select * from mutirao.being_undone(instances);
  instances := array(select n from unnest(instances) n where not exists (select from mutirao.undoing u where u.instance = n));
  refused := array(select c from mutirao.being_claimed(b, v.id, instances, ours) c) || array(select c from mutirao.clashing(b, v.id, instances, ours) c);
  work := mutirao.migrate_work(b, v, array(select n from unnest(instances) n where not exists (select from unnest(refused) r where r.instance = n)), ours);
  if work <> '{}' then
    looked := mutirao.look(work, array[v.id]);
  end if;
  refused := refused || array(
    select row(w.instance, w.problem ->> 'code', format('instance %s: %s', w.instance, w.problem ->> 'error'))::mutirao.batch_outcome
    from unnest(work, looked) w where mutirao.misfits(w.problem));
  select array_agg(row(w.n, w.kind, w.instance, w.flow, w.version, w.job, w.task, w.attempt, w.cause, w.change, w.state, w.pending, w.failed, w.fired, w.reached,
      w.latest, w.held, w.parked, w.reasons, w.hold, w.firings, w.priority, w.started_at, w.writer, w.note)::mutirao.work order by w.instance),
    array_agg(row(w.final, w.fires, w.problem)::mutirao.looked order by w.instance), array_agg(w.instance)
    into work, looked, moving
  from unnest(work, looked) w where not mutirao.misfits(w.problem);
  if moving is not null then
    perform mutirao.move_jobs(b, v, moving, ours);
    perform mutirao.keep_strays(moving, v);
    perform mutirao.settle(work, array[v.id], null, looked);
    perform mutirao.reslot(moving);
    perform mutirao.hand_out(moving);
    perform mutirao.bar_on_principle(moving);
    perform mutirao.show_exceptions(moving);
    perform mutirao.make_searchable(moving);
    perform mutirao.wake(array[b.flow]);
    unblocked := array(select i.id from mutirao.instance i where i.id = any (moving) and i.parked > 0 and i.hold is null);
    if unblocked <> '{}' then
      perform mutirao.finish_parked(unblocked);
    end if;
  end if;
  return query select * from unnest(refused);
end $$;

----------------------------------------------------------------------------------------------------------------- foretelling

create or replace function mutirao.names_of(tasks int[]) returns text[]
language sql stable return array(select t.name from unnest(tasks) with ordinality x(id, n) join mutirao.task t on t.id = x.id order by x.n);

-- What settling would make of each. All of it stands in one statement: a function a row would cost more than the looking.
create or replace function mutirao.foretell_migration(b mutirao.batch, v mutirao.version, instances bigint[])
returns table (instance bigint, version int, outcome text, why text, fires text[], removes text[], moves jsonb)
language plpgsql stable as $$
#variable_conflict use_column
declare
  work mutirao.work[] := mutirao.migrate_work(b, v, instances, null);
begin
  return query
    with moving as materialized (
      select j.instance, jsonb_object_agg(o.name, n.name) as tasks
      from mutirao.migrated_jobs(b, v.id, instances, null) j join mutirao.task o on o.id = j.task join mutirao.task n on n.id = j.becomes
      where b.arguments -> 'tasks' <> '{}' and not j.goes and j.task <> j.becomes group by 1),
    clashing as materialized (
      select c.* from mutirao.clashing(b, v.id, instances, null) c where not exists (select from mutirao.undoing u where u.instance = c.instance)
      union all select * from mutirao.being_undone(instances))
    select w.instance, (w.note ->> 'from')::int, f.outcome,
      case
        when c.code is not null then c.code || ': ' || c.message
        when w.problem is not null then concat(w.problem ->> 'code', ': ', 'condition of ' || (w.problem ->> 'task') || ': ', w.problem ->> 'error')
        when w.hold is not null then null
        when a.is_quiet then case v.ends when 'quiet' then null else 'nothing_fires' end
        when a.is_runaway then 'runaway'
        when f.outcome = 'exception' then (select string_agg(concat_ws(': ', r ->> 'code', r ->> 'task'), ', ') from jsonb_array_elements(mutirao.reasons_after(w.reasons, null)) r) end,
      case when f.outcome in ('running', 'exception') and w.problem is null and not w.final and w.fires <> '{}' then mutirao.names_of(w.fires) else '{}' end,
      array(select r ->> 'task' from jsonb_array_elements(w.note -> 'removed') r), coalesce(m.tasks, '{}')
    from unnest(work, mutirao.look(work, array[v.id])) w left join moving m on m.instance = w.instance left join clashing c on c.instance = w.instance
    cross join lateral (select w.pending = '{}' and w.failed <@ v.handled as is_free offset 0) e
    cross join lateral (select not w.final and w.fires = '{}' and e.is_free
        and not (v.alarming <> '{}' and mutirao.is_alarmed(w.instance, w.flow, w.version, w.reached, w.failed || w.fired)) as is_quiet,
      not w.final and w.firings + cardinality(w.fires) > v.firing_limit as is_runaway offset 0) a
    cross join lateral (select case
        when c.code is not null or mutirao.misfits(w.problem) then 'refused'
        when w.hold is not null then w.hold
        when w.problem is not null or a.is_runaway then 'exception'
        when w.final and e.is_free or a.is_quiet and v.ends = 'quiet' then 'completed'
        when a.is_quiet or w.reasons is not null and mutirao.reasons_after(w.reasons, null) is not null then 'exception'
        else 'running' end as outcome offset 0) f
    order by w.instance;
end $$;

create or replace function mutirao.preview_migration(flow text, to_version int default null, from_version int default null, tasks jsonb default '{}', attributes jsonb default '{}',
  filter jsonb default '{}', after bigint default 0, room int default null)
returns table (instance bigint, version int, outcome text, why text, fires text[], removes text[], moves jsonb)
language plpgsql security definer as $$
declare
  b mutirao.batch := mutirao.draft_migration(flow, from_version, to_version, tasks, attributes, filter);
  v mutirao.version := mutirao.target_version(b);
  c mutirao.condition := mutirao.compile_where(b);
  next bigint[];
  fit record;
begin
  b.function := c.function;
  b.names := c.arguments;
  b.after := after;
  while room is null or room > 0 loop
    next := mutirao.next_instances(b, 'open', 1000);
    exit when next = '{}';
    fit := mutirao.fit_filter(b, 'open', next);
    fit.fitting := fit.fitting[:coalesce(room, 1000)];
    if fit.fitting <> '{}' then
      return query select * from mutirao.foretell_migration(b, v, fit.fitting);
    end if;
    room := room - cardinality(fit.fitting);
    b.after := next[cardinality(next)];
  end loop;
  perform mutirao.drop_where(b);
end $$;
comment on function mutirao.preview_migration(text, int, int, jsonb, jsonb, jsonb, bigint, int) is
  'What migrate_flow would do to each instance, after the one given and at most so many: outcome is running, completed, exception, suspended, delayed or refused. Changes nothing.';
