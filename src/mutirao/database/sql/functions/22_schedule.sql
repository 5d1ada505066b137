-- Schedules: put in place, paused, dropped; and fired by a clock, each time exactly once.

------------------------------------------------------------------------------------------------------------- people

create or replace function mutirao.schedule_state(s mutirao.schedule, due_at timestamptz) returns jsonb
language sql stable
return s.state || case when s.time_to is null then '{}' else jsonb_build_object(s.time_to, case
  when (select a.type from mutirao.flow f join mutirao.attribute a on a.version = f.version where f.id = s.flow and a.name = s.time_to) = 'date'
  then to_char(due_at at time zone s.zone, 'YYYY-MM-DD') else to_char(due_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') end) end;
comment on function mutirao.schedule_state(mutirao.schedule, timestamptz) is 'What an instance starts with that stands for this time. A date is the one in the schedule''s zone.';

create or replace function mutirao.check_schedule(s mutirao.schedule) returns void
language plpgsql as $$
declare
  f mutirao.flow;
  v mutirao.version;
  state jsonb;
  work mutirao.work[];
begin
  select * into strict f from mutirao.flow x where x.id = s.flow;
  select * into strict v from mutirao.version x where x.id = f.version;
  if s.name is null or s.name !~ '^[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}$' then
    perform mutirao.refuse('wrong_call', format('a schedule cannot be called "%s": up to 100 letters, digits and any of _ . : - after the first', s.name));
  elsif coalesce(s.missed, '') not in ('skip', 'once', 'all') then
    perform mutirao.refuse('wrong_call', format('schedule "%s": missed is skip, once or all: it cannot be "%s"', s.name, s.missed));
  elsif coalesce(s.overlap, '') not in ('allow', 'skip') then
    perform mutirao.refuse('wrong_call', format('schedule "%s": overlap is allow or skip: it cannot be "%s"', s.name, s.overlap));
  elsif s.priority is null or s.priority not between -1000000 and 1000000 then
    perform mutirao.refuse('wrong_call', format('a priority is at most a million either way: got %s', s.priority));
  elsif s.time_to is not null and not exists (
    select from mutirao.attribute a where a.version = v.id and a.name = s.time_to and a.type in ('timestamp', 'date', 'text'))
  then
    perform mutirao.refuse('wrong_call', format('schedule "%s": time_to names an attribute of type timestamp, date or text; "%s" is none', s.name, s.time_to));
  end if;
  state := mutirao.schedule_state(s, s.next_at);
  work := array[row(1, 'start', 0, f.id, v.id, null, null, null, null, state, v.defaults || state,
    '{}', '{}', '{}', '{}', null, '{}', 0, null, null, 0, s.priority, mutirao.now(), s.made_by, null)::mutirao.work];
  perform mutirao.check_start(f.name, work, mutirao.look(work, array[v.id]), 1);
end $$;
comment on function mutirao.check_schedule(mutirao.schedule) is 'Refuses a schedule that could not start anything as things are.';

create or replace function mutirao.put_schedule(
  name text, flow text, cron text, state jsonb default '{}', zone text default 'UTC', priority int default 0, missed text default 'once',
  overlap text default 'allow', time_to text default null, writer text default session_user) returns mutirao.schedule
language plpgsql security definer as $$
#variable_conflict use_column
declare
  s mutirao.schedule;
begin
  select f.id into s.flow from mutirao.flow f where f.name = put_schedule.flow;
  if not found then
    perform mutirao.refuse_flow(flow);
  end if;
  s.name := name;
  s.cron := cron;
  s.zone := mutirao.known_zone(zone);
  s.pattern := mutirao.known_cron(cron, s.zone);
  s.state := coalesce(state, '{}');
  s.priority := priority;
  s.missed := missed;
  s.overlap := overlap;
  s.time_to := time_to;
  s.paused := false;
  s.next_at := mutirao.cron_after(s.pattern, s.zone, mutirao.now());
  s.runs := 0;
  s.made_by := mutirao.signed(writer);
  s.made_at := mutirao.now();
  perform mutirao.check_schedule(s);
  insert into mutirao.schedule as o select s.*
  on conflict (name) do update set flow = excluded.flow, cron = excluded.cron, zone = excluded.zone, state = excluded.state, priority = excluded.priority,
    missed = excluded.missed, overlap = excluded.overlap, time_to = excluded.time_to, pattern = excluded.pattern, problem = null,
    made_by = excluded.made_by, made_at = excluded.made_at,
    next_at = case when o.paused then null when (o.cron, o.zone) = (excluded.cron, excluded.zone) then o.next_at else excluded.next_at end
  where (o.flow, o.cron, o.zone, o.state, o.priority, o.missed, o.overlap, o.time_to)
    is distinct from (excluded.flow, excluded.cron, excluded.zone, excluded.state, excluded.priority, excluded.missed, excluded.overlap, excluded.time_to);
  perform pg_notify('mutirao', 'clock');
  select * into s from mutirao.schedule x where x.name = put_schedule.name;
  return s;
end $$;
comment on function mutirao.put_schedule(text, text, text, jsonb, text, int, text, text, text, text) is
  'Lets a clock start a flow each time a cron pattern says so. The same again changes nothing; one that is paused stays so.';

create or replace function mutirao.lock_schedule(name text) returns mutirao.schedule
language plpgsql as $$
declare
  s mutirao.schedule;
begin
  select * into s from mutirao.schedule x where x.name = lock_schedule.name for update;
  if not found then
    perform mutirao.refuse('unknown_schedule', format('there is no schedule "%s"%s', name, coalesce('; did you mean "' || mutirao.nearest_name(name, array(select x.name from mutirao.schedule x)) || '"?', '')));
  end if;
  return s;
end $$;

create or replace function mutirao.pause_schedule(name text) returns mutirao.schedule
language plpgsql security definer as $$
declare
  s mutirao.schedule := mutirao.lock_schedule(name);
begin
  update mutirao.schedule x set paused = true, next_at = null where x.name = s.name and not x.paused;
  return mutirao.lock_schedule(name);
end $$;
comment on function mutirao.pause_schedule(text) is 'Lets it start nothing until it is resumed. Times that pass meanwhile are not missed.';

create or replace function mutirao.resume_schedule(name text) returns mutirao.schedule
language plpgsql security definer as $$
declare
  s mutirao.schedule := mutirao.lock_schedule(name);
begin
  update mutirao.schedule x set paused = false, next_at = mutirao.cron_after(x.pattern, x.zone, mutirao.now()) where x.name = s.name and x.paused;
  perform pg_notify('mutirao', 'clock');
  return mutirao.lock_schedule(name);
end $$;

create or replace function mutirao.drop_schedule(name text) returns void
language plpgsql security definer as $$
declare
  s mutirao.schedule := mutirao.lock_schedule(name);
begin
  delete from mutirao.schedule x where x.name = s.name;
end $$;
comment on function mutirao.drop_schedule(text) is 'Takes a schedule away. What it has started goes on.';

------------------------------------------------------------------------------------------------------------- clocks

-- The times that a schedule has come to, and when it fires next. A time is missed when no clock came to it within a minute.
create or replace function mutirao.schedule_times(s mutirao.schedule, at timestamptz, room int, out times timestamptz[], out next_at timestamptz)
language plpgsql stable as $$
begin
  times := array[s.next_at];
  next_at := mutirao.cron_after(s.pattern, s.zone, s.next_at);
  if next_at <= at then
    if s.missed = 'all' then
      while next_at <= at and cardinality(times) < room loop
        times := times || next_at;
        next_at := mutirao.cron_after(s.pattern, s.zone, next_at);
      end loop;
    else
      times := array[mutirao.cron_last(s.pattern, s.zone, s.next_at, at)];
      next_at := mutirao.cron_after(s.pattern, s.zone, at);
    end if;
  end if;
  if s.missed = 'skip' and times[1] < at - interval '1 minute' then
    times := '{}';
  end if;
  if s.overlap = 'skip' then
    times := case when exists (select from mutirao.instance i where i.id = s.last_instance) then '{}' else times[1:1] end;
  end if;
end $$;

-- All together; where that is refused, each alone, so that one that cannot start keeps no other from it. What is nobody's fault (a full
-- disk, a deadlock) undoes the turn, and no time is lost.
create or replace function mutirao.start_firings(firings mutirao.firing[]) returns setof mutirao.firing
language plpgsql as $$
declare
  f mutirao.firing;
  ids bigint[];
begin
  begin
    ids := array(select * from mutirao.start_instances(
      (select x.name from mutirao.flow x where x.id = firings[1].flow), array(select u.state from unnest(firings) u), firings[1].priority, 'clock',
      array(select format('schedule/%s/%s', u.schedule, to_char(u.due_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')) from unnest(firings) u),
      array(select jsonb_build_object('schedule', u.schedule, 'due_at', to_char(u.due_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')) from unnest(firings) u)));
    return query select u.schedule, u.flow, u.priority, u.state, u.due_at, u.id, null::jsonb from unnest(firings, ids) u(schedule, flow, priority, state, due_at, instance, problem, id);
    return;
  exception when others then
    if left(sqlstate, 2) in ('40', '53', '55', '57', '58') then raise; end if;
    if cardinality(firings) = 1 then
      f := firings[1];
      f.problem := jsonb_build_object('code', case when sqlstate like 'MU%' then split_part(sqlerrm, ': ', 1) else 'database_error' end,
        'message', case when sqlstate like 'MU%' then substr(sqlerrm, strpos(sqlerrm, ': ') + 2) else sqlerrm end, 'due_at', f.due_at);
      return next f;
      return;
    end if;
  end;
  foreach f in array firings loop
    return query select * from mutirao.start_firings(array[f]);
  end loop;
end $$;

create or replace function mutirao.fire_schedules(room int) returns int
language plpgsql as $$
#variable_conflict use_column
declare
  at timestamptz := mutirao.now();
  due mutirao.schedule[];
  s mutirao.schedule;
  plan record;
  together record;
  nexts timestamptz[] := '{}';
  firings mutirao.firing[] := '{}';
  done mutirao.firing[] := '{}';
begin
  select array_agg(x) into due from (
    select o.* from mutirao.schedule o where o.next_at <= at order by o.next_at limit room for update skip locked) x;
  if due is null then return 0; end if;
  foreach s in array due loop
    plan := mutirao.schedule_times(s, at, greatest(1, least(20, room - cardinality(firings))));
    nexts := nexts || plan.next_at;
    firings := firings || array(select row(s.name, s.flow, s.priority, mutirao.schedule_state(s, t), t, null, null)::mutirao.firing from unnest(plan.times) t);
  end loop;
  for together in
    select array_agg(row(u.schedule, u.flow, u.priority, u.state, u.due_at, u.instance, u.problem)::mutirao.firing order by u.due_at) as firings
    from unnest(firings) u group by u.flow, u.priority
  loop
    done := done || array(select d from mutirao.start_firings(together.firings) d);
  end loop;
  update mutirao.schedule o set next_at = d.next_at, runs = o.runs + coalesce(r.runs, 0), last_at = coalesce(r.last_at, o.last_at),
    last_instance = coalesce(r.last_instance, o.last_instance), problem = case when r.schedule is null then o.problem else r.problem end
  from unnest(due, nexts) d(name, flow, cron, zone, state, priority, missed, overlap, time_to, pattern, paused, was_at, last_at, last_instance, runs, problem, made_by, made_at, next_at)
  left join (
    select u.schedule, count(u.instance) as runs, max(u.due_at) filter (where u.instance is not null) as last_at,
      (array_agg(u.instance order by u.due_at desc) filter (where u.instance is not null))[1] as last_instance,
      (array_agg(u.problem order by u.due_at desc))[1] as problem
    from unnest(done) u group by 1) r on r.schedule = d.name
  where o.name = d.name;
  return cardinality(done);
end $$;
comment on function mutirao.fire_schedules(int) is
  'Starts what schedules have come to, and moves them on, in one transaction: each time is started once, whoever else is at it.';

create or replace function mutirao.clock_schedules(room int, out done int, out next_at timestamptz)
language plpgsql as $$
begin
  done := mutirao.fire_schedules(room);
  next_at := (select min(s.next_at) from mutirao.schedule s);
end $$;
