-- The pace: what workers hand in of what they did, and how fast the work goes.

-- Minutes are those of the engine's clock, whatever time it is at the worker's: it says how many seconds ago something was. In the order of
-- the key, since two workers that add to the same minutes would otherwise wait for each other.
create or replace function mutirao.note_pace(ages int[], tasks int[], times int[], counts int[]) returns void
language plpgsql security definer as $$
begin
  if not coalesce(cardinality(ages) = all (array[cardinality(tasks), cardinality(times), cardinality(counts)]), false) then
    perform mutirao.refuse('wrong_call', 'ages, tasks, times and counts must be of one length');
  end if;
  insert into mutirao.minute_pace as p (minute, task, done, failed, took)
  with said as (
    select x.minute, coalesce(x.task, 0) as task, x.time, sum(x.count) as count
    from (
      select date_trunc('minute', mutirao.now() - make_interval(secs => s.age)) as minute, s.task, s.time, s.count
      from unnest(ages, tasks, times, counts) s(age, task, time, count)
      where s.age between 0 and 3600 and s.time between -1 and 63 and s.count > 0 and exists (select from mutirao.task t where t.id = s.task)) x
    group by grouping sets ((x.minute, x.task, x.time), (x.minute, x.time))),
  whole as (
    select s.minute, s.task, coalesce(sum(s.count) filter (where s.time >= 0), 0) as done, coalesce(sum(s.count) filter (where s.time < 0), 0) as failed, max(s.time) as longest
    from said s group by 1, 2)
  select w.minute, w.task, w.done, w.failed, array(
      select coalesce(s.count, 0) from generate_series(0, w.longest) n left join said s on s.minute = w.minute and s.task = w.task and s.time = n order by n)
  from whole w order by w.minute, w.task
  on conflict (minute, task) do update set done = p.done + excluded.done, failed = p.failed + excluded.failed, took = array(
      select coalesce(u.had, 0) + coalesce(u.more, 0) from unnest(p.took, excluded.took) with ordinality u(had, more, n) order by u.n);
end $$;
comment on function mutirao.note_pace(int[], int[], int[], int[]) is
  'A worker tells what it has done since it last did: how many seconds ago, of which task, how long it took (0: a millisecond at most, each next one the root of two longer; '
  '-1: it failed), and how many of them. Nobody needs to; it is shown to people.';

-- Within one of the times they are taken to be spread evenly. A loop: it is called for every minute of a chart, and a query would take ten times as long.
create or replace function mutirao.took_at_most(took bigint[], share float8) returns float8
language plpgsql immutable as $$
declare
  wanted float8 := 0;
  before float8 := 0;
  low float8 := 0;
  high float8;
  each bigint;
  n int := 0;
begin
  foreach each in array coalesce(took, '{}') loop
    wanted := wanted + each;
  end loop;
  if wanted = 0 then
    return null;
  end if;
  wanted := wanted * share;
  foreach each in array took loop
    high := 2 ^ (n / 2.0::float8);
    if each > 0 and before + each >= wanted then
      return (low + (high - low) * (wanted - before) / each) / 1000;
    end if;
    before := before + each;
    low := high;
    n := n + 1;
  end loop;
  return high / 1000;
end $$;
comment on function mutirao.took_at_most(bigint[], float8) is 'Of what took so long (as in mutirao.minute_pace), the seconds that such a share of it took at most; null where there is nothing.';

create or replace function mutirao.check_period(period interval) returns interval
language plpgsql immutable as $$
begin
  if period is null or period not between interval '1 minute' and interval '1 day' then
    perform mutirao.refuse('wrong_call', format('the pace is known for a minute to a day, not for %s', coalesce(period::text, 'null')));
  end if;
  return period;
end $$;

create or replace function mutirao.pace_by_minute(period interval default interval '1 hour')
returns table (minute timestamptz, done bigint, failed bigint, p50 float8, p95 float8)
language sql stable security definer begin atomic
  select x.minute, coalesce((x.p).done, 0), coalesce((x.p).failed, 0), mutirao.took_at_most((x.p).took, 0.5), mutirao.took_at_most((x.p).took, 0.95)
  from (  -- each by its key: a join would read a day of all tasks
    select m.minute, (select p from mutirao.minute_pace p where p.minute = m.minute and p.task = 0) as p
    from generate_series(date_trunc('minute', mutirao.now()) - mutirao.check_period(period) + interval '1 minute', mutirao.now(), interval '1 minute') m(minute) offset 0) x
  order by x.minute;
end;
comment on function mutirao.pace_by_minute(interval) is
  'Minute by minute, the present one last: attempts of workers that went well, that failed, and the seconds that half of the former, and all but five in a hundred, took at most.';

-- Of a day, five hundred tasks have thirty million counts of how long something took.
create or replace function mutirao.pace_by_task(period interval default interval '1 hour')
returns table (flow text, task text, done bigint, failed bigint, p50 float8, p95 float8)
language plpgsql stable security definer as $$
begin
  if mutirao.check_period(period) > interval '1 hour' then
    perform mutirao.refuse('wrong_call', format('task by task the pace is told of an hour at most, not of %s: of a day it is told minute by minute alone', period));
  end if;
  return query with known as (
    select p.* from mutirao.minute_pace p where p.minute > date_trunc('minute', mutirao.now()) - pace_by_task.period and p.task <> 0),
  spread as (
    select k.task, u.n, sum(u.count) as count from known k cross join lateral unnest(k.took) with ordinality u(count, n) group by 1, 2),
  took as (
    select s.task, array_agg(s.count::bigint order by s.n) as took from spread s group by 1),
  counted as (
    select k.task, sum(k.done)::bigint as done, sum(k.failed)::bigint as failed from known k group by 1)
  select f.name, n.name, c.done, c.failed, mutirao.took_at_most(t.took, 0.5), mutirao.took_at_most(t.took, 0.95)
  from counted c join mutirao.task n on n.id = c.task join mutirao.flow f on f.id = n.flow left join took t on t.task = c.task order by f.name, n.name;
end $$;
comment on function mutirao.pace_by_task(interval) is 'As mutirao.pace_by_minute, of the whole period, which is an hour at most, task by task.';

create or replace function mutirao.forget_pace(room int) returns int
language plpgsql as $$
declare
  forgotten int;
begin
  delete from mutirao.minute_pace p using (
    select o.minute, o.task from mutirao.minute_pace o where o.minute < mutirao.now() - interval '1 day' order by o.minute, o.task limit room for update skip locked) old
  where p.minute = old.minute and p.task = old.task;
  get diagnostics forgotten = row_count;
  return forgotten;
end $$;
