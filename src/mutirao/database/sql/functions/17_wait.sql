-- Waiting: a task whose jobs are not done before a time that stands in the state. The job sleeps, and follows the state when that
-- time is changed. One that nobody does (by_clock) is ended by a clock, with an empty change: what depends on it goes on.

create or replace function mutirao.due_at(state jsonb, attribute text, by_clock boolean, at timestamptz) returns timestamptz
language plpgsql stable as $$
declare
  due timestamptz := 'infinity';
begin
  begin
    due := coalesce((state ->> attribute)::timestamptz, 'infinity');
  exception when data_exception then
    null;  -- no time that PostgreSQL could count to; a look tells of one that is none
  end;
  return case when due > at then due when by_clock then at end;
end $$;
comment on function mutirao.due_at(jsonb, text, boolean, timestamptz) is
  'Until when a job that fires now must wait: never mind a time that has passed, but what a clock ends waits for the clock. Without a time in the state: for ever.';

create or replace function mutirao.tell_clock(soonest timestamptz) returns void
language sql as $$
  select pg_notify('mutirao', 'clock') where soonest < mutirao.now() + interval '1 second'
$$;
comment on function mutirao.tell_clock(timestamptz) is 'Lets clocks look earlier than they would by themselves, if need be.';

-- Their instances are locked. A job that failed waits for another try, whatever the state says.
create or replace function mutirao.move_waits(instances bigint[]) returns void
language plpgsql as $$
declare
  soonest timestamptz;
  flows int[];
  items bigint[];
begin
  with wanted as materialized (
    select j.id, r.by_clock or r.child is not null as by_clock, case when r.wait is not null then mutirao.due_at(i.state, r.wait, r.by_clock, mutirao.now()) end as due_at
    from mutirao.instance i
    join mutirao.job j on j.instance = i.id
    join mutirao.rule r on r.version = i.version and r.task = j.task
    where i.id = any (instances) and i.hold is null and (j.failures = 0 or j.by_clock or r.by_clock) and j.status in ('ready', 'waiting')),
  moved as (
    update mutirao.job j set due_at = w.due_at, by_clock = w.by_clock, status = case when w.due_at is null then 'ready' else 'waiting' end::mutirao.job_status,
      gate = case when w.due_at is null then j.gate end,
      ready_at = case when w.due_at is null and j.status = 'waiting' then mutirao.now() else j.ready_at end
    from wanted w where j.id = w.id and j.status in ('ready', 'waiting') and (j.by_clock <> w.by_clock or w.due_at is not null and j.gate is not null
      or j.due_at is distinct from w.due_at and not (w.due_at is null and mutirao.job_state(j.status, j.gate) = 'synchronizing')
      and not coalesce(j.by_clock and greatest(j.due_at, w.due_at) <= mutirao.now() and j.due_at is not null, false))
    returning j.id, j.due_at, j.flow, j.role)
  select min(m.due_at), array_agg(distinct m.flow) filter (where m.due_at is null and m.role is null), array_agg(m.id) filter (where m.due_at is null and m.role is not null)
    into soonest, flows, items from moved m;
  if flows is not null then
    perform mutirao.wake(flows);
  end if;
  if items is not null then
    perform mutirao.offer_items(items);
  end if;
  if soonest is not null then
    perform mutirao.tell_clock(soonest);
  end if;
end $$;
comment on function mutirao.move_waits(bigint[]) is 'Lets the jobs of these instances follow the times in their states, and what their version says about waiting.';

create or replace function mutirao.end_waits(room int) returns int
language plpgsql as $$
declare
  at timestamptz := mutirao.now();
  due bigint[];
  locked bigint[];
  jobs bigint[];
  attempts bigint[];
  refused mutirao.settled[];
begin
  select array_agg(x.id), array_agg(x.instance) into due, locked
  from (select j.id, j.instance from mutirao.job j where j.status = 'waiting' and j.by_clock and j.due_at <= at order by j.due_at limit room) x;
  if due is null then return 0; end if;
  select array_agg(q.id) into locked from (
    select i.id from mutirao.instance i where i.id = any (locked) order by i.id for no key update skip locked) q;
  -- Between this and the end of the transaction nobody else sees it run.
  with begun as (
    update mutirao.job j set status = 'running', due_at = null, attempt = nextval('mutirao.attempt_number'), worker = 'clock', lease_until = at
    where j.id = any (due) and j.instance = any (locked) and j.status = 'waiting' and j.due_at <= at and not mutirao.is_childs(j)  -- which is to be tried again
    returning j.id, j.attempt)
  select array_agg(b.id order by b.id), array_agg(b.attempt order by b.id) into jobs, attempts from begun b;
  if jobs is null then return 0; end if;
  select array_agg(s) into refused from mutirao.finish_jobs('clock', jobs, attempts, array_fill('{}'::jsonb, array[cardinality(jobs)]),
    array_fill(null::jsonb, array[cardinality(jobs)]), null) s where s.kind = 'refused';
  if refused is not null then
    perform mutirao.finish_jobs('clock', array(select r.job from unnest(refused) r), array(select r.attempt from unnest(refused) r),
      array_fill(null::jsonb, array[cardinality(refused)]), array(select r.note from unnest(refused) r), null);
  end if;
  return cardinality(jobs);
end $$;
comment on function mutirao.end_waits(int) is 'Ends jobs that nobody does and whose time has come.';

create or replace function mutirao.clock_waits(room int, out done int, out next_at timestamptz)
language plpgsql as $$
begin
  done := mutirao.end_waits(room);
  next_at := (select min(j.due_at) from mutirao.job j where j.status = 'waiting' and j.by_clock and j.due_at < 'infinity');
end $$;

create or replace function mutirao.check_waits(version int) returns void
language plpgsql as $$
declare
  r record;
begin
  for r in
    select t.name as task, x.wait, a.type from mutirao.rule x join mutirao.task t on t.id = x.task
    left join mutirao.attribute a on a.version = x.version and a.name = x.wait
    where x.version = check_waits.version and x.wait is not null and coalesce(a.type, '') not in ('timestamp', 'date') order by x.position
  loop
    perform mutirao.refuse(case when r.type is null then 'unknown_attribute' else 'flow_invalid' end, format('task "%s" waits for "%s", which is %s: it must be an attribute of type timestamp or date',
      r.task, r.wait, case when r.type is null then 'no attribute of the flow' else format('of type %s', r.type) end));
  end loop;
  perform mutirao.check_limit_attribute(x.version, t.name, x.per) from mutirao.rule x join mutirao.task t on t.id = x.task where x.version = check_waits.version and x.per is not null;
end $$;
comment on function mutirao.check_waits(int) is 'Refuses a version whose tasks wait for, or are limited by, what is not there.';
