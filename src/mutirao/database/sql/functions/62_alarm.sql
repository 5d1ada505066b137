-- Emergency triggers: a task that waits no longer than so long for those it depends on. The time runs from when the first of them starts; the
-- instance is not quiet before it has passed. When it has, the task starts, once, whatever the others do.

-- Once all of them have succeeded nothing is waited for: one that waits for a failure is for when they do not.
create or replace function mutirao.is_waiting(flow int, depends jsonb, reached int[]) returns boolean
language sql stable
return exists (select from mutirao.depends_terms(flow, depends) p where mutirao.term(mutirao.term_task(p), 'succeeded') <> all (reached));

create or replace function mutirao.waiting_tasks(flow int, version int, reached int[], held int[]) returns table (task int, time_to_wait interval, is_begun boolean)
language sql stable as $$
  select r.task, r.time_to_wait, exists (
    select from unnest(waiting_tasks.reached) t join mutirao.depends_terms(waiting_tasks.flow, r.depends) p on mutirao.term_task(p) = mutirao.term_task(t)
    where mutirao.term_state(t) not in ('synchronizing', 'ready'))
  from mutirao.rule r
  where r.version = waiting_tasks.version and r.time_to_wait is not null and r.enabled and r.task <> all (waiting_tasks.held)
    and mutirao.is_waiting(waiting_tasks.flow, r.depends, waiting_tasks.reached)
$$;
comment on function mutirao.waiting_tasks(int, int, int[], int[]) is
  'Tasks that wait no longer than so long and still do; is_begun: one of those they wait for has started.';

create or replace function mutirao.is_alarmed(instance bigint, flow int, version int, reached int[], held int[]) returns boolean
language sql stable
return exists (
  select from mutirao.waiting_tasks(flow, version, reached, held) t
  where t.is_begun or exists (select from mutirao.alarm a where a.instance = is_alarmed.instance and a.task = t.task));
comment on function mutirao.is_alarmed(bigint, int, int, int[], int[]) is
  'Whether time is running for a task of an instance as it is about to be written, so that it is not quiet yet.';

-- Their instances are locked. The time that runs goes on when a predecessor is tried again. One that was due and could not start has another
-- chance with every write.
create or replace function mutirao.set_alarms(instances bigint[]) returns void
language plpgsql as $$
declare
  soonest timestamptz;
begin
  delete from mutirao.alarm a where a.instance = any (instances) and not exists (
    select from mutirao.instance i cross join mutirao.waiting_tasks(i.flow, i.version, i.reached, i.pending || i.failed || i.fired) t
    where i.id = a.instance and t.task = a.task and i.hold is distinct from 'cancelled');
  with set as (
    insert into mutirao.alarm as a (instance, task, due_at)
    select i.id, t.task, mutirao.now() + t.time_to_wait
    from mutirao.instance i cross join mutirao.waiting_tasks(i.flow, i.version, i.reached, i.pending || i.failed || i.fired) t
    where i.id = any (instances) and i.hold is null and t.is_begun
    on conflict on constraint alarm_pkey do update set due_at = mutirao.now() where a.due_at = 'infinity'
    returning due_at)
  select min(s.due_at) into soonest from set s;
  if soonest is not null then
    perform mutirao.tell_clock(soonest);
  end if;
end $$;
comment on function mutirao.set_alarms(bigint[]) is 'Brings the alarms of these instances up to date.';

create or replace function mutirao.forget_alarms(w mutirao.work) returns void
language sql as $$
  delete from mutirao.alarm a where a.instance = w.instance
    and not exists (select from mutirao.waiting_tasks(w.flow, w.version, w.reached, w.pending || w.failed || w.fired) t where t.task = a.task and t.is_begun)
$$;
comment on function mutirao.forget_alarms(mutirao.work) is 'What an instance went back over, or rolled back, has not started: no time runs from that.';

-- One that could not start is as if never due, until its instance is written again. Each is read anew: one that fires may fire another.
create or replace function mutirao.clock_alarms(room int, out done int, out next_at timestamptz)
language plpgsql as $$
declare
  at timestamptz := mutirao.now();
  locked bigint[];
  a mutirao.alarm;
  i mutirao.instance;
begin
  done := 0;
  locked := array(select x.instance from mutirao.alarm x join mutirao.instance n on n.id = x.instance where x.due_at <= at and n.hold is null order by x.due_at limit room);
  locked := array(select n.id from mutirao.instance n where n.id = any (locked) order by n.id for no key update skip locked);
  for a in select x.* from mutirao.alarm x where x.instance = any (locked) and x.due_at <= at loop
    select n.* into i from mutirao.instance n join mutirao.alarm x on x.instance = n.id where n.id = a.instance and n.hold is null and x.task = a.task and x.due_at <= at;
    continue when not found;
    if not mutirao.fire_also(mutirao.work_of(i, 'alarm', 'clock', jsonb_build_object('task', (select t.name from mutirao.task t where t.id = a.task))), a.task) then
      update mutirao.alarm x set due_at = 'infinity' where x.instance = a.instance and x.task = a.task;
    end if;
    done := done + 1;
  end loop;
  next_at := (select x.due_at from mutirao.alarm x join mutirao.instance n on n.id = x.instance where n.hold is null and x.due_at < 'infinity' order by x.due_at limit 1);
end $$;
comment on function mutirao.clock_alarms(int) is 'Starts tasks that have waited long enough.';
