-- Settling: what follows from a look is written. The heart of the engine.
--
-- How a write goes. Whoever writes first locks the instances, in id order, in a statement of its own, so that what follows sees
-- what others committed; a batch skips instances that someone else holds and answers `busy`, so no worker waits behind a long
-- transaction. Only who writes a single instance waits for it. Then, for the whole batch at once:
--
--   work    what each instance would be after its change                    mutirao.finish_round, .start_instances, .write
--   look    is it final, which tasks fire, what is wrong with it            mutirao.look, generated per version
--   settle  ended jobs; then instance, closed, trace and new jobs           mutirao.settle
--
-- A claim touches only jobs that are ready and does not lock their instances. Everything that takes a job out of `running` holds
-- its instance. So locks are always taken in the order instance, job.

create or replace function mutirao.wake(flows int[]) returns void
language sql as $$
  select pg_notify('mutirao', case when cardinality(flows) > 50 then '*' else array_to_string(flows, ',') end)
$$;
comment on function mutirao.wake(int[]) is 'Tells listening workers that jobs of these flows are ready. One notification a batch: NOTIFY serialises commits.';

create or replace function mutirao.lease_end(at timestamptz, lease interval, deadline timestamptz) returns timestamptz
language sql stable parallel safe
return least(at + lease, deadline + interval '5 seconds');
comment on function mutirao.lease_end(timestamptz, interval, timestamptz) is
  'A lease outlives the deadline only by the grace a worker has to report its own timeout; so the clock finds both in one index.';

create or replace function mutirao.reasons_after(reasons jsonb, found jsonb) returns jsonb
language sql immutable
return case
  when reasons is null and found is null then null
  when reasons is null then jsonb_build_array(found)
  else (
    select jsonb_agg(kept.r) from (
      select r from jsonb_array_elements(reasons) r
      where r ->> 'code' not in ('nothing_fires', 'final_blocked', 'runaway') and (r ->> 'code' not in ('condition_failed', 'too_large') or r ? 'job')
      union all select found where found is not null) kept(r)) end;
comment on function mutirao.reasons_after(jsonb, jsonb) is 'The exceptions an instance is left with; those that only a look can tell are found anew each time.';

create or replace function mutirao.reasons_without(reasons jsonb, jobs bigint[]) returns jsonb
language sql immutable
return case when reasons is null then null else (
  select jsonb_agg(r) from jsonb_array_elements(reasons) r where coalesce((r ->> 'job')::bigint <> all (jobs), true)) end;

-- The one _EXCPT job of an instance exists exactly as long as there are reasons, and carries them.
create or replace function mutirao.show_exceptions(instances bigint[]) returns void
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
create or replace function mutirao.park(parking mutirao.verdict[], at timestamptz) returns void
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
  update mutirao.job j set status = 'parked', due_at = null, change = p.change, attempt = null, worker = null, lease_until = null, deadline_at = null
  from unnest(parking) p where j.id = p.job and j.status <> 'parked';
  insert into mutirao.trace (instance, id, flow, version, kind, job, task, attempt, status, writer, note, at)
  select p.instance, p.trace, p.flow, p.version, 'parked', p.job, p.task, p.attempt, i.status, p.writer,
    coalesce(p.problem, jsonb_build_object('code', 'final_blocked')), at
  from unnest(parking) p join mutirao.instance i on i.id = p.instance
  where p.attempt is not null;
end $$;

-- Of a job that is parked already (without an attempt) no worker can be told anything: whatever is wrong with its change is an exception.
create or replace function mutirao.is_parking(s mutirao.verdict) returns boolean
language sql immutable
return s.kind = 'finish' and (s.outcome = 'blocked' or s.outcome = 'problem' and (s.attempt is null or s.problem ->> 'code' = 'condition_failed'));

-- What is rare: rows that could not be written, and instances that are, were or become exceptions.
create or replace function mutirao.settle_special(special mutirao.verdict[], at timestamptz) returns setof mutirao.settled
language plpgsql as $$
declare
  parking mutirao.verdict[];
  undoing bigint[];
  outdated mutirao.verdict[];
  again record;
begin
  if exists (select from unnest(special) s where mutirao.is_trouble(s)) and exists (select from mutirao.charge) then
    perform mutirao.tell_troubles(special);
  end if;
  select array_agg(s) into outdated from unnest(special) s
  where s.outcome = 'problem' and s.kind = 'finish' and s.attempt is not null and s.problem ->> 'code' in ('unknown_attribute', 'wrong_type');
  if outdated is not null then
    again := mutirao.finish_outdated(outdated);
    special := array(select s from unnest(special) s where s.job is null or s.job <> all (again.tried));
    return query select * from unnest(again.told);
  end if;
  select array_agg(s) into parking from unnest(special) s where mutirao.is_parking(s);
  if parking is not null then
    perform mutirao.park(parking, at);
  end if;
  delete from mutirao.job j using unnest(special) s where s.outcome in ('completed', 'aborted', 'terminated') and j.instance = s.instance;
  perform mutirao.undo_failed(s) from unnest(special) s where s.kind = 'fail';
  undoing := array(select s.instance from unnest(special) s where s.outcome = 'undoing' order by 1);
  if undoing <> '{}' then
    perform mutirao.undo_next(undoing);
  end if;
  perform mutirao.show_exceptions(array(select s.instance from unnest(special) s));
  return query
    select case when mutirao.is_parking(s) then 'parked' else 'refused' end,
      s.job, s.attempt, s.instance, s.task, null::int, null::float8, null::jsonb, coalesce(s.problem, jsonb_build_object('code', 'final_blocked'))
    from unnest(special) s where s.outcome in ('blocked', 'problem');
end $$;

-- A number is one however it is written: 3, 3.0 and 3.00 are found by each other.
create or replace function mutirao.searched(value jsonb, type text default null) returns text
language sql immutable
return case
  when jsonb_typeof(value) = 'number' and (type is null or type in ('integer', 'number', 'json')) then trim_scale(value::numeric)::text
  when jsonb_typeof(value) = 'string' and type in ('integer', 'number') and length(value #>> '{}') <= 1000 and value #>> '{}' ~ '^[-+]?[0-9]+([.][0-9]*)?([eE][-+]?[0-9]{1,3})?$'
    then trim_scale((value #>> '{}')::numeric)::text
  else value #>> '{}' end;
comment on function mutirao.searched(jsonb, text) is 'How mutirao.search has a value of a state; or, of an attribute of this type, a value that somebody asks for.';

-- A value is kept up to a length that fits into the index; whoever searches for a longer one compares the state as well. Of files it is kept
-- who refers to them: so a version counts them among its searchable attributes.
create or replace function mutirao.make_searchable(instances bigint[]) returns void
language plpgsql as $$
begin
  with wanted as materialized (
    select i.flow, n.name, left(mutirao.searched(i.state -> n.name), 200) as value, i.id as instance
    from (select id, flow, version, state from mutirao.instance where id = any (instances)
          union all select id, flow, version, state from mutirao.closed where id = any (instances)) i
    join mutirao.version v on v.id = i.version cross join unnest(v.searchable) n(name)
    where i.state ->> n.name is not null and not exists (select from mutirao.attribute a where a.version = i.version and a.name = n.name and a.type = 'file')),
  gone as (
    delete from mutirao.search s where s.instance = any (instances)
      and not exists (select from wanted w where w.instance = s.instance and w.name = s.name and w.value = s.value))
  insert into mutirao.search (flow, name, value, instance)
  select w.flow, w.name, w.value, w.instance from wanted w
  on conflict do nothing;
  perform mutirao.note_files(instances);
end $$;
comment on function mutirao.make_searchable(bigint[]) is 'Brings the searchable values of these instances up to date.';

create or replace function mutirao.settle(work mutirao.work[], versions int[], hungry mutirao.appetite, looked mutirao.looked[] default null) returns setof mutirao.settled
language plpgsql as $$
#variable_conflict use_column
declare
  at timestamptz := mutirao.now();
  answers mutirao.settled[];
  special mutirao.verdict[];
  flows int[];
  sleeping bigint[];
  soonest timestamptz;
  searchable bigint[];
  items bigint[];
  children bigint[];
  over bigint[];
  alarming bigint[];
begin
  looked := coalesce(looked, mutirao.look(work, versions));
  -- Ended jobs go first: their task may fire again at once, and (instance, task) is unique.
  delete from mutirao.job j where j.id = any (array(
    select w.job from unnest(work, looked) w
    where w.kind in ('finish', 'skip', 'drop', 'compensate') and w.problem is null
      and (w.hold = 'cancelled' or w.kind = 'compensate' or not w.final or mutirao.is_undoing(w.hold, w.instance) or (w.pending = '{}'
        and (w.failed = '{}' or w.failed <@ (select v.handled from mutirao.version v where v.id = w.version))))));

  -- Everything about a row is worked out in one pass: each lateral step names what those after it need, and its `offset 0` keeps
  -- the planner from working it out again at every place that uses it.
  with judged as materialized (
    select w.n, w.kind, w.instance, w.flow, w.version, w.job, w.task, w.attempt, w.cause, w.change, w.state, w.pending, w.failed,
      w.parked, w.reasons, w.hold, w.firings, w.priority, w.started_at, w.writer, w.note, w.problem,
      v.watched, v.gated, v.searchable, v.waits, v.alarming, f.exception_task, nextval('mutirao.trace_id') as trace, o.outcome, o.is_written, o.is_over, s.starts, l.left_with,
      case when v.once = '{}' or s.starts = '{}' then w.fired else w.fired || array(select unnest(s.starts) intersect select unnest(v.once)) end as fired,
      case when v.terms = '{}' or s.starts = '{}' then w.reached else mutirao.reached_with(w.reached, v.terms, mutirao.without(s.starts, v.gated), 'ready') end as reached,
      case when v.named = '{}' or s.starts = '{}' then w.latest else mutirao.latest_fired(w.latest, v.named, s.starts, v.gated) end as latest,
      case
        when o.outcome = 'completed' then 'closed.completed'
        when o.outcome = 'aborted' then 'closed.aborted'
        when o.outcome = 'terminated' then 'closed.terminated'
        when w.hold = 'suspended' then 'open.notrunning.suspended'
        when w.hold = 'delayed' then 'open.notrunning'
        when l.left_with is not null then 'open.exception'
        else 'open.running'
      end::mutirao.instance_status as status
    from unnest(work, looked) w join mutirao.version v on v.id = w.version join mutirao.flow f on f.id = w.flow
    cross join lateral (select case
        when w.problem is not null then case when w.kind in ('finish', 'skip', 'start', 'set', 'repair', 'compensate') then 'problem' else 'raised' end
        when w.hold = 'cancelled' then case when w.pending = '{}' then 'aborted' else 'kept' end
        when w.hold = 'undoing' then 'undoing'
        when w.hold = 'undone' then 'terminated'
        when w.final and (w.pending <> '{}' or not w.failed <@ v.handled) and not mutirao.is_undoing(w.hold, w.instance) then case when w.kind in ('finish', 'skip', 'start', 'set', 'repair') then 'blocked' else 'kept' end
        when w.hold is not null then 'kept'
        when w.final then 'completed'
        when w.fires = '{}' and w.pending = '{}' and w.failed <@ v.handled then case
          when v.alarming <> '{}' and mutirao.is_alarmed(w.instance, w.flow, w.version, w.reached, w.failed || w.fired) then 'kept'
          when v.ends = 'quiet' and w.kind <> 'rolled_back' then 'completed'
          else 'stuck' end
        when w.firings + cardinality(w.fires) > v.firing_limit then 'runaway'
        else 'running'
      end as outcome offset 0) a
    cross join lateral (select a.outcome, a.outcome not in ('problem', 'blocked') as is_written, a.outcome in ('completed', 'aborted', 'terminated') as is_over offset 0) o
    cross join lateral (select case when o.outcome = 'running' then w.fires else '{}' end as starts offset 0) s
    cross join lateral (select case
        when w.hold is not null or w.reasons is null and o.outcome not in ('stuck', 'runaway', 'raised') then w.reasons
        else mutirao.reasons_after(w.reasons, case o.outcome
          when 'stuck' then jsonb_build_object('code', 'nothing_fires')
          when 'runaway' then jsonb_build_object('code', 'runaway', 'firings', w.firings)
          when 'raised' then w.problem end)
      end as left_with offset 0) l
  ),
  -- An upsert and not an update: what the planner believes of a table that is empty now and full later decides how it joins, and a
  -- plan that is kept would go on joining so. An upsert finds each row by its key, whatever the planner believes.
  opened as (
    insert into mutirao.instance as i (id, flow, version, status, state, pending, failed, fired, reached, latest, parked, reasons, hold, firings, priority, started_at)
    select d.instance, d.flow, d.version, d.status, d.state, d.pending || d.starts, d.failed, d.fired, d.reached, d.latest,
      d.parked, d.left_with, d.hold, d.firings + cardinality(d.starts), d.priority, d.started_at
    from judged d where d.is_written and not d.is_over
    on conflict (id) do update set
      version = excluded.version, status = excluded.status, state = excluded.state, pending = excluded.pending, failed = excluded.failed,
      fired = excluded.fired, reached = excluded.reached, latest = excluded.latest, parked = excluded.parked, reasons = excluded.reasons,
      hold = excluded.hold, firings = excluded.firings
  ),
  ended as (
    delete from mutirao.instance i where i.id = any (array(select d.instance from judged d where d.is_over))
  ),
  closed as (
    insert into mutirao.closed (id, flow, version, status, state, fired, reached, latest, firings, priority, started_at, closed_at)
    select d.instance, d.flow, d.version, d.status, d.state, d.fired, d.reached, d.latest, d.firings, d.priority, d.started_at, at
    from judged d where d.is_over
  ),
  traced as (
    insert into mutirao.trace (instance, id, flow, version, kind, job, task, attempt, cause, fired, status, state, writer, note, at)
    select d.instance, d.trace, d.flow, d.version, d.kind, d.job, d.task, d.attempt, d.cause,
      case when d.outcome in ('stuck', 'runaway', 'raised') then array[d.exception_task] else d.starts end,
      d.status, d.state, d.writer, d.note, at
    from judged d where d.is_written
  ),
  offered as (
    select d.instance, d.flow, r.task, r.priority + d.priority as priority, r.timeout, r.by_clock or r.child is not null as by_clock, r.role, r.child,
      r.class_id as class, nullif(r.ordered, false) as ordered, d.trace, d.state, d.n, f.o,
      case when r.wait is not null then mutirao.due_at(d.state, r.wait, r.by_clock, at) end as due_at,
      case when r.slot_by is not null then mutirao.slot_of(d.state, r.slot_by) end as slot,
      mutirao.is_watched(r.task, r.task = any (d.gated), d.watched) as watched,
      r.wait is null and r.role is null and r.child is null and r.task <> all (d.gated) and mutirao.term(r.task, 'running') <> all (d.watched)
        and r.task = any (hungry.tasks) and r.priority + d.priority >= hungry.floor
        and row_number() over (partition by r.task = any (hungry.tasks) order by r.priority + d.priority desc, d.n) <= hungry.room as granted
    from judged d cross join unnest(d.starts) with ordinality f(task, o)
    cross join lateral (select r.* from mutirao.rule r where r.version = d.version and r.task = f.task limit 1) r
  ),
  numbered as materialized (
    select o.*, nextval('mutirao.job_id') as id, case when o.granted then nextval('mutirao.attempt_number') end as attempt
    from (select * from offered order by n, o) o
  ),
  made as (
    insert into mutirao.job (id, instance, flow, task, status, due_at, by_clock, role, class, ordered, slot, priority, watched, cause, timeout, attempt, worker, lease_until, deadline_at, created_at)
    select o.id, o.instance, o.flow, o.task, case when o.granted then 'running' when o.due_at is not null then 'waiting' else 'ready' end::mutirao.job_status,
      o.due_at, o.by_clock, o.role, o.class, o.ordered, o.slot, o.priority, o.watched, o.trace, o.timeout, o.attempt, case when o.granted then hungry.worker end,
      case when o.granted then mutirao.lease_end(at, hungry.lease, at + o.timeout) end, case when o.granted then at + o.timeout end, at
    from numbered o
  )
  select
    (select array_agg(row('job', o.id, o.attempt, o.instance, o.task, 0, extract(epoch from o.timeout), o.state, null)::mutirao.settled)
     from numbered o where o.granted),
    (select array_agg(distinct o.flow) from numbered o where o.granted is not true and o.due_at is null and o.role is null),
    (select array_agg(d.instance) from judged d where d.waits <> '{}' and d.waits && d.pending and d.is_written and not d.is_over),
    (select min(o.due_at) from numbered o),
    (select array_agg(row(d.outcome, d.kind, d.instance, d.flow, d.version, d.job, d.task, d.attempt, d.change, d.problem, d.writer, d.trace)::mutirao.verdict order by d.n)
     from judged d where d.outcome not in ('running', 'completed', 'kept') or d.reasons is not null or d.failed <> '{}'),
    (select array_agg(d.instance) from judged d where d.searchable <> '{}' and d.is_written),
    (select array_agg(o.id) from numbered o where o.role is not null and o.due_at is null),
    (select array_agg(o.id) from numbered o where o.child is not null),
    (select array_agg(d.instance) from judged d where d.is_over),
    (select array_agg(d.instance) from judged d where (d.alarming <> '{}' or d.kind = 'migrate') and d.is_written)
  into answers, flows, sleeping, soonest, special, searchable, items, children, over, alarming;

  if flows is not null then
    perform mutirao.wake(flows);
  end if;
  if soonest is not null then
    perform mutirao.tell_clock(soonest);
  end if;
  if sleeping is not null then
    perform mutirao.move_waits(sleeping);
  end if;
  if searchable is not null then
    perform mutirao.make_searchable(searchable);
  end if;
  if items is not null then
    perform mutirao.offer_items(items);
  end if;
  if children is not null then
    perform mutirao.want_children(children);
  end if;
  if alarming is not null then
    perform mutirao.set_alarms(alarming);
  end if;
  if work[1].kind <> 'start' and exists (select from mutirao.stamp) then
    perform mutirao.note_order(work);
  end if;
  if over is not null then
    perform mutirao.note_ends(over);
  end if;
  if special is not null then
    return query select * from mutirao.settle_special(special, at);
  end if;
  return query select * from unnest(answers);
end $$;
comment on function mutirao.settle(mutirao.work[], int[], mutirao.appetite, mutirao.looked[]) is
  'Looks at the work and writes what follows. The instances must be locked, the work ordered by version, one row an instance.';
