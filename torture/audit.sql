-- What is asked of the database when everything has ended. Each query answers what is wrong: no rows, nothing wrong.
-- The ledgers are in temporary tables: started (batch, ticket, outcome, instance), finished (job, attempt, outcome),
-- event_sent (event, outcome), cancelled (instance), may_write (flow, task, attributes), transactional (flow, task).

-- prepare: what the queries below look at, worked out once
create temporary table found as
  select x.id as instance, f.name as flow, x.state ->> 'ticket' as ticket, x.status::text as status, x.state, is_open
  from (select id, flow, status, state, true as is_open from mutirao.instance
        union all select id, flow, status, state, false from mutirao.closed) x
  join mutirao.flow f on f.id = x.flow;
create index on found (ticket);
create index on found (instance);
create temporary table story as
  select r.instance, r.id, f.name as flow, r.kind, r.job, t.name as task, r.attempt, r.cause, r.fired, r.status::text as status, r.state, r.note, r.at,
    row_number() over of_instance as place, lead(r.id) over of_instance is null as is_last
  from mutirao.trace r join mutirao.flow f on f.id = r.flow left join mutirao.task t on t.id = r.task
  window of_instance as (partition by r.instance order by r.id);
create index on story (instance, place);
create index on story (attempt);
analyze found;
analyze story;

-- lost: a start was acknowledged, and there is no such instance
select s.ticket, s.instance from started s
where s.outcome = 'done' and not exists (select from found f where f.ticket = s.ticket and f.instance = s.instance);

-- doubled: a start happened more than once
select f.ticket, array_agg(f.instance) as instances from found f group by f.ticket having count(*) > 1;

-- refused_but_there: a start was refused, and happened all the same
select s.ticket, f.instance from started s join found f using (ticket) where s.outcome = 'refused';

-- half: of a call that is all or none, some started
select s.batch, count(*) as asked, count(f.instance) as there from started s left join found f using (ticket)
group by s.batch having count(f.instance) not in (0, count(*));

-- unasked: an instance that nobody asked for
select f.instance, f.ticket from found f where not exists (select from started s where s.ticket = f.ticket);

-- not_ended: an instance that was to end and has not
select f.instance, f.flow, f.status, (select array_agg(format('%s %s', t.name, j.status)) from mutirao.job j join mutirao.task t on t.id = j.task where j.instance = f.instance) as jobs
from found f where f.is_open;

-- effect_missing: a transactional task has ended, and its effect is not there
select s.instance, s.task, s.job, s.attempt from story s join transactional t on t.flow = s.flow and t.task = s.task
where s.kind in ('finish', 'compensate') and not exists (select from torture.effect e where e.job = s.job and e.attempt = s.attempt);

-- effect_extra: there is an effect, or a second one, of an attempt that did not end its job
select e.instance, e.task, e.job, e.attempt, count(*) as times from torture.effect e
left join story s on s.attempt = e.attempt and s.job = e.job and s.kind in ('finish', 'compensate')
group by 1, 2, 3, 4, s.id having s.id is null or count(*) > 1;

-- wrong_sum: the effects of an instance are not what its end says
select f.instance, f.flow, f.status, sum(e.amount) as effects from found f left join torture.effect e on e.instance = f.instance
where f.flow in ('booking', 'trip') and not f.is_open
group by 1, 2, 3 having coalesce(sum(e.amount), 0) <> case when f.flow = 'booking' then 2 when f.status = 'closed.completed' then 1 else 0 end;

-- start_first: a trace does not begin with its one start
select s.instance, array_agg(s.kind order by s.place) as kinds from story s
group by 1 having (array_agg(s.kind order by s.place))[1] <> 'start' or count(*) filter (where s.kind = 'start') <> 1;

-- without_trace: an instance without a trace, or a trace without an instance
select coalesce(f.instance, s.instance) as instance from found f full join (select distinct instance from story) s using (instance)
where f.instance is null or s.instance is null;

-- ended_twice: a job has ended more than once
select s.instance, s.job, s.task, array_agg(s.attempt) as attempts from story s
where s.kind in ('finish', 'compensate', 'skip', 'drop') and s.job is not null group by 1, 2, 3 having count(*) > 1;

-- after_the_end: something was written after the end, or the end is not what the instance says
select s.instance, s.id, s.kind, s.status from story s join found f using (instance)
where not f.is_open and (s.status like 'closed.%' and not s.is_last or s.is_last and s.status <> f.status);

-- not_fired_or_not_ended: of a completed instance, not every job that fired has ended, or one ended that never fired
select s.instance, sum(cardinality(s.fired)) as fired, count(*) filter (where s.kind in ('finish', 'fail')) as ended
from story s join found f using (instance) where f.status = 'closed.completed' and f.flow <> 'stubborn'
group by 1 having sum(cardinality(s.fired)) <> count(*) filter (where s.kind in ('finish', 'fail'));

-- wrong_cause: a job was fired by a write that is not before its end in the trace
select s.instance, s.id, s.cause from story s
where s.kind in ('finish', 'compensate') and not exists (select from story c where c.instance = s.instance and c.id = s.cause and c.id < s.id);

-- broken_chain: a state is not the former one with what its task may write
select c.instance, c.id, c.kind, c.task, c.changed from (
  select s.instance, s.id, s.flow, s.kind, s.task, array(
      select coalesce(n.key, o.key) from jsonb_each(s.state) n full join jsonb_each(s.before) o using (key) where n.value is distinct from o.value) as changed
  from (select *, lag(state) over (partition by instance order by id) as before from story where state is not null) s
  where s.before is not null and s.state <> s.before) c
left join may_write w on w.flow = c.flow and w.task = c.task
where c.kind in ('finish', 'compensate') and not c.changed <@ coalesce(w.attributes, '{}')
  or c.kind in ('start', 'fail', 'cancel', 'retry')
  or c.kind not in ('finish', 'compensate') and not c.changed <@ '{paid_at, mended}';

-- wrong_state: the state at the end is not what its trace or its tasks say
select f.instance, f.flow, f.state from found f
where not f.is_open and (
  f.state is distinct from (select s.state from story s where s.instance = f.instance and s.state is not null order by s.place desc limit 1)
  or f.status = 'closed.completed' and (
    f.flow = 'steps' and f.state ->> 'k' <> '4'
    or f.flow = 'branches' and (f.state ->> 'total')::bigint is distinct from 6 * (f.state ->> 'n')::bigint));

-- finish_lost: a worker or a person was told that a job has ended, and the trace does not know
select n.job, n.attempt from finished n
where n.outcome = 'done' and not exists (select from story s where s.attempt = n.attempt and s.job = n.job and s.kind in ('finish', 'compensate', 'parked'));

-- dead_wrote: a job was ended by an attempt from which it had been taken away
select s.instance, s.job, s.task, s.attempt, r.at as taken_away, s.at as ended from story s join torture.revoked r on r.attempt = s.attempt
where s.kind in ('finish', 'compensate');

-- event_lost: an event was acknowledged, and is not in the trace; or it was written twice
select e.event, e.outcome, count(s.id) as times from event_sent e left join story s on s.note ->> 'event' = e.event
group by 1, 2 having count(s.id) > 1 or e.outcome = 'done' and count(s.id) <> 1 or e.outcome = 'refused' and count(s.id) > 0;

-- not_cancelled: a cancellation was acknowledged, and the instance did not end so
select c.instance, f.status from cancelled c left join found f using (instance) where f.status is distinct from 'closed.aborted';

-- too_early: a timer ended before its time
select s.instance, s.at, f.state ->> 'until' as until from story s join found f using (instance)
where s.flow = 'nap' and s.task = 'sleep' and s.kind = 'finish' and s.at < (f.state ->> 'until')::timestamptz - interval '1 millisecond';

-- overlap: two unexpired attempts of conflicting classes were at work at the same time
with held as (
  select p.*, coalesce(r.at, p.end_at) as until from torture.span p left join torture.revoked r on r.attempt = p.attempt
  where r.at is not null or exists (select from story s where s.attempt = p.attempt and s.kind = 'finish')),
conflicting as (
  select a.name as one, b.name as other from mutirao.class a join mutirao.class b on b.id = any (a.conflicts) or a.id = any (b.conflicts))
select a.attempt, a.class, b.attempt as other, b.class as other_class, a.begun_at, a.until, b.begun_at as other_begun, b.until as other_until
from held a join held b on a.attempt < b.attempt and a.begun_at < b.until and b.begun_at < a.until
join conflicting c on c.one = a.class and c.other = b.class;

-- leased: a job is still leased
select j.id, j.worker, j.attempt, j.status from mutirao.job j where j.status = 'running' or j.lease_until is not null;

-- hot_rows: rows of what is going on, though nothing is
select * from (values
  ('instance', (select count(*) from mutirao.instance)), ('job', (select count(*) from mutirao.job)),
  ('alarm', (select count(*) from mutirao.alarm)), ('delayed', (select count(*) from mutirao.delayed)),
  ('undoing', (select count(*) from mutirao.undoing)), ('stray', (select count(*) from mutirao.stray)),
  ('order_wait', (select count(*) from mutirao.order_wait)), ('owed', (select count(*) from mutirao.owed)),
  ('stamp', (select count(*) from mutirao.stamp)), ('order_left', (select count(*) from mutirao.order_left)),
  ('wait_circle', (select count(*) from mutirao.wait_circle)), ('barred', (select count(*) from mutirao.barred)),
  ('invited', (select count(*) from mutirao.invited)), ('recheck', (select count(*) from mutirao.recheck)),
  ('stale_view', (select count(*) from mutirao.stale_view)), ('upload', (select count(*) from mutirao.upload))) x(name, rows)
where rows > 0;

-- open_transactions: a session keeps a transaction open, or a prepared one was left
select a.pid::text, a.application_name, a.state from pg_stat_activity a
where a.datname = current_database() and a.pid <> pg_backend_pid() and a.state like 'idle in transaction%' and a.state_change < clock_timestamp() - interval '3 seconds'
union all select gid, owner, 'prepared' from pg_prepared_xacts where database = current_database();

-- unheard: how many jobs were ended of which nobody was told: commits that were hit
select count(*) from finished n where n.outcome = 'unknown' and exists (select from story s where s.attempt = n.attempt and s.job = n.job and s.kind in ('finish', 'compensate'));

-- unknown_there: how many instances are there of starts of which nobody was told
select count(*) from started s join found f using (ticket) where s.outcome = 'unknown';
