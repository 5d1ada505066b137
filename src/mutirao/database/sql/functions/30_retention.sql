-- How long finished instances are kept, and dropping them beside running work.

create or replace function mutirao.flow_number(flow text) returns int
language plpgsql stable security definer as $$
declare
  f int := (select x.id from mutirao.flow x where x.name = flow_number.flow);
begin
  if f is null then
    perform mutirao.refuse_flow(flow);
  end if;
  return f;
end $$;

create or replace function mutirao.closed_status(status text) returns mutirao.instance_status
language plpgsql immutable as $$
begin
  if regexp_replace(status, '^closed\.', '') not in ('completed', 'terminated', 'aborted') then
    perform mutirao.refuse('wrong_call', format('"%s" is no status of a finished instance: those are completed, terminated and aborted', status));
  end if;
  return 'closed.' || regexp_replace(status, '^closed\.', '');
end $$;

-- Kept as whole days and seconds: a month has no fixed length, and what is due must not depend on from which end it is counted.
create or replace function mutirao.keep(flow text, period interval, status text default null, action text default 'drop', writer text default session_user) returns void
language plpgsql security definer as $$
#variable_conflict use_column
declare
  f int := mutirao.flow_number(flow);
  statuses mutirao.instance_status[] := case when status is null then '{closed.completed,closed.terminated,closed.aborted}' else array[mutirao.closed_status(status)] end;
  seconds numeric := extract(epoch from period);
begin
  if seconds < 0 or seconds > 1e11 then
    perform mutirao.refuse('wrong_call', format('finished instances cannot be kept for %s: give a time from 0 on, such as 90 days, or null for ever', period));
  elsif coalesce(action, '') not in ('drop', 'export') then
    perform mutirao.refuse('wrong_call', format('"%s" is not what can be done with finished instances: drop, or export (and then drop)', action));
  end if;
  delete from mutirao.retention r where r.flow = f and r.status = any (statuses);
  if period is not null then
    insert into mutirao.retention (flow, status, period, action, due_at, set_by, set_at)
    select f, s, make_interval(days => floor(seconds / 86400)::int, secs => seconds % 86400), action, mutirao.now(), mutirao.signed(writer), mutirao.now()
    from unnest(statuses) s;
    perform pg_notify('mutirao', 'clock');
  end if;
end $$;
comment on function mutirao.keep(text, interval, text, text, text) is
  'Says how long finished instances of a flow are kept, those of one status or all; null: for ever. Then they are dropped, or with `export` as soon as they are exported.';

-- The instances must be closed and locked. Nothing else of an instance is left once it is closed.
create or replace function mutirao.drop_closed(instances bigint[]) returns void
language plpgsql as $$
begin
  delete from mutirao.exported e using mutirao.closed c
  where c.id = any (instances) and e.flow = c.flow and e.status = c.status and e.closed_at = c.closed_at and e.instance = c.id;
  delete from mutirao.search s where s.instance = any (instances);
  delete from mutirao.key k where k.instance = any (instances);
  delete from mutirao.event e where e.instance = any (instances);
  delete from mutirao.charge c where c.instance = any (instances);
  delete from mutirao.participation p where p.instance = any (instances);
  delete from mutirao.attachment a where a.instance = any (instances);
  perform mutirao.forget_uses(instances);
  delete from mutirao.comment c where c.instance = any (instances);
  delete from mutirao.child c where c.parent = any (instances);
  delete from mutirao.message m where m.instance = any (instances);
  delete from mutirao.trace t where t.instance = any (instances);
  delete from mutirao.closed c where c.id = any (instances);
end $$;

create or replace function mutirao.is_awaited(instance bigint) returns boolean
language sql stable as $$
  with recursive above as (
    select c.parent, c.due_at from mutirao.child c where c.instance = is_awaited.instance
    union all
    select c.parent, c.due_at from above a join mutirao.child c on c.instance = a.parent)
  select exists (select from above a where a.due_at is not null or exists (select from mutirao.instance i where i.id = a.parent))
$$;
comment on function mutirao.is_awaited(bigint) is
  'Whether a parent has still to take over what this child gives; or may be rolled back, or the one above it, and the child with it.';

-- Those first that closed first. Who is awaited, or being looked at again or erased at the moment, is left for later.
create or replace function mutirao.lock_due(r mutirao.retention, room int) returns bigint[]
language plpgsql as $$
declare
  newest timestamptz := mutirao.now() - r.period;
begin
  if r.action = 'export' then
    return array(
      select c.id from mutirao.exported e join mutirao.closed c on c.id = e.instance and c.closed_at = e.closed_at and c.status = e.status
      where e.flow = r.flow and e.status = r.status and e.closed_at <= newest and not mutirao.is_awaited(c.id) order by e.closed_at limit room for update of c skip locked);
  end if;
  return array(
    select c.id from mutirao.closed c where c.flow = r.flow and c.status = r.status and c.closed_at <= newest and not mutirao.is_awaited(c.id)
    order by c.closed_at limit room for update skip locked);
end $$;

-- At most `room` instances, and fewer where they have a long story: a chunk is about ten rows of trace for each.
create or replace function mutirao.drop_due(r mutirao.retention, room int) returns int
language plpgsql as $$
declare
  due bigint[] := mutirao.lock_due(r, room);
begin
  select coalesce(array_agg(x.id), '{}') into due from (
    select c.id, sum(c.firings + 1) over (order by c.id) - c.firings as before from mutirao.closed c where c.id = any (due)) x
  where x.before <= room * 10;
  perform mutirao.drop_closed(due);
  return cardinality(due);
end $$;

create or replace function mutirao.next_due(r mutirao.retention) returns timestamptz
language sql stable
return (select case when x.due_at > mutirao.now() then x.due_at else mutirao.now() + interval '1 minute' end from (select case r.action
  when 'drop' then coalesce((select min(c.closed_at) from mutirao.closed c where c.flow = r.flow and c.status = r.status) + r.period,
    mutirao.now() + greatest(r.period, interval '1 second'))
  else coalesce((select min(e.closed_at) from mutirao.exported e where e.flow = r.flow and e.status = r.status) + r.period, mutirao.now() + interval '1 hour') end) x(due_at));
comment on function mutirao.next_due(mutirao.retention) is
  'When something falls due at the earliest; what is due by now and was left waits a minute. What is exported later makes its rule due at once.';

-- One clock at a time, one rule at a time, one chunk a turn; then all rest nine times as long as it took, so that dropping a million
-- old instances takes a tenth of one connection's time and not the work's.
create or replace function mutirao.clock_retention(room int, out done int, out next_at timestamptz)
language plpgsql as $$
declare
  began timestamptz := mutirao.stopwatch();
  at timestamptz := mutirao.now();
  r mutirao.retention;
  rest timestamptz;
begin
  done := 0;
  next_at := (select min(x.due_at) from mutirao.retention x);
  if next_at is null or next_at > at then return; end if;
  select p.rest_until into rest from mutirao.pace p for update skip locked;
  if rest is null or rest > at then
    next_at := coalesce(rest, at + interval '1 second');
    return;
  end if;
  -- One that goes on queues up behind the others that are due.
  for r in select x.* from mutirao.retention x where x.due_at <= at order by x.due_at for update skip locked loop
    done := mutirao.drop_due(r, room);
    update mutirao.retention x set due_at = case when done > 0 then at else mutirao.next_due(r) end where x.flow = r.flow and x.status = r.status;
    exit when done > 0;
  end loop;
  if done > 0 then
    next_at := at + 10 * (mutirao.stopwatch() - began);
    update mutirao.pace set rest_until = next_at;
  else
    next_at := (select min(x.due_at) from mutirao.retention x);
  end if;
end $$;
