-- When a cron pattern fires next: five fields, in a time zone, through changes of its clocks.
--
-- A pattern is about the clock on the wall. Where that is set forward, a time that does not exist fires at the first instant after the gap;
-- where it is set back, a time that occurs twice fires the first time. So a daily job runs once on every day. But a pattern for every hour
-- (its second field is *) is about time that passes: it goes on through both hours, and a gap makes none of its times up.

create or replace function mutirao.cron_word(field int, word text) returns int
language sql immutable
return case
  when word ~ '^[0-9]+$' then word::int
  when field = 4 then array_position('{jan,feb,mar,apr,may,jun,jul,aug,sep,oct,nov,dec}'::text[], word)
  when field = 5 then array_position('{sun,mon,tue,wed,thu,fri,sat}'::text[], word) - 1 end;

create or replace function mutirao.cron_values(cron text, field int, text text) returns int[]
language plpgsql immutable as $$
declare
  low int := (array[0, 0, 1, 1, 0])[field];
  high int := (array[59, 23, 31, 12, 7])[field];
  item text;
  part text[];
  first int;
  last int;
  step int;
  wrong text;
  found int[] := '{}';
begin
  foreach item in array string_to_array(lower(text), ',') loop
    if field = 3 and item = 'l' then
      found := found || 32;
      continue;
    end if;
    part := regexp_match(item, '^(?:(\*)|([0-9]{1,2}|[a-z]{3})(?:-([0-9]{1,2}|[a-z]{3}))?)(?:/([0-9]{1,2}))?$');
    first := case when part[1] is not null then low else mutirao.cron_word(field, part[2]) end;
    last := case when part[1] is not null then high - (field = 5)::int when part[3] is null then first else mutirao.cron_word(field, part[3]) end;
    if field = 5 and last = 0 and first > 0 then
      last := 7;  -- sat-sun
    end if;
    step := coalesce(part[4]::int, 1);
    wrong := case
      when part is null or first is null or last is null or first < low or last > high then format('it takes %s to %s%s, such as %s', low, high,
        case field when 3 then ', L for the last' when 4 then ', jan to dec' when 5 then ' (0 and 7 are Sunday), mon to sun' else '' end,
        (array['0, 5-10, */15 or 0,30', '8, 9-17, */2 or 8,12', '1, 1-7, */2 or 1,15', '1, 6-8, */3 or jan,jul', '1, 1-5, mon-fri or sat,sun'])[field])
      when first > last then format('%s comes after %s', part[2], part[3])
      when part[4] is not null and part[1] is null and part[3] is null then format('a step needs a range: write %s-%s/%s', part[2], high, part[4])
      when step not between 1 and high then format('a step goes from 1 to %s', high)
    end;
    if wrong is not null then
      perform mutirao.refuse('wrong_cron', format('cron "%s", field %s (%s): "%s" cannot be; %s', cron, field,
        (array['minute', 'hour', 'day of the month', 'month', 'day of the week'])[field], item, wrong));
    end if;
    found := found || array(select generate_series(first, last, step));
  end loop;
  return array(select distinct case when field = 5 then v % 7 else v end from unnest(found) v order by 1);
end $$;
comment on function mutirao.cron_values(text, int, text) is 'The values that one field of a pattern stands for, or a refusal that names it.';

create or replace function mutirao.cron_parse(cron text) returns mutirao.cron
language plpgsql immutable as $$
declare
  fields text[] := regexp_split_to_array(btrim(case lower(btrim(cron, e' \t\n\r'))
    when '@yearly' then '0 0 1 1 *' when '@annually' then '0 0 1 1 *' when '@monthly' then '0 0 1 * *' when '@weekly' then '0 0 * * 0'
    when '@daily' then '0 0 * * *' when '@midnight' then '0 0 * * *' when '@hourly' then '0 * * * *' else cron end, e' \t\n\r'), '[ \t\n\r]+');
begin
  if cron is null or length(cron) > 1000 then
    perform mutirao.refuse('wrong_cron', 'a cron pattern is a text of up to 1000 characters, such as 0 6 * * mon-fri');
  elsif cardinality(fields) <> 5 then
    perform mutirao.refuse('wrong_cron', format('cron "%s" has %s fields; it needs five: minute, hour, day of the month, month, day of the week, such as 0 6 * * mon-fri; or one of @hourly, @daily, @weekly, @monthly, @yearly',
      cron, case when fields = '{""}' then 0 else cardinality(fields) end));
  end if;
  return row(mutirao.cron_values(cron, 1, fields[1]), mutirao.cron_values(cron, 2, fields[2]), mutirao.cron_values(cron, 3, fields[3]),
    mutirao.cron_values(cron, 4, fields[4]), mutirao.cron_values(cron, 5, fields[5]), fields[3] not like '*%' and fields[5] not like '*%')::mutirao.cron;
end $$;

create or replace function mutirao.cron_takes(c mutirao.cron, day date) returns boolean
language sql immutable
return extract(month from day)::int = any (c.months) and case
  when c.either then extract(day from day)::int = any (c.days) or 32 = any (c.days) and extract(day from day + 1) = 1 or extract(dow from day)::int = any (c.weekdays)
  else (extract(day from day)::int = any (c.days) or 32 = any (c.days) and extract(day from day + 1) = 1) and extract(dow from day)::int = any (c.weekdays) end;

-- The same weekday on the same day of February comes back after forty years at the latest.
create or replace function mutirao.cron_next_wall(c mutirao.cron, after timestamp) returns timestamp
language plpgsql immutable as $$
declare
  days int;
  found timestamp;
begin
  foreach days in array array[40, 400, 15000] loop
    select min(t.at) into found
    from (select after::date + n as day from generate_series(0, days) n where mutirao.cron_takes(c, after::date + n) limit 2) d
    cross join unnest(c.hours) h cross join unnest(c.minutes) m cross join lateral (select d.day + make_interval(hours => h, mins => m) as at) t
    where t.at > after;
    exit when found is not null;
  end loop;
  return found;
end $$;
comment on function mutirao.cron_next_wall(mutirao.cron, timestamp) is 'The next time that a clock on the wall shows and the pattern takes, whether it exists or not.';

create or replace function mutirao.zone_offset(at timestamptz, zone text) returns interval
language sql stable
return (at at time zone zone) - (at at time zone 'UTC');

create or replace function mutirao.cron_instant(wall timestamp, zone text) returns timestamptz
language plpgsql stable as $$
declare
  about timestamptz := wall at time zone zone;
  before interval := mutirao.zone_offset(about - interval '26 hours', zone);
  later interval := mutirao.zone_offset(about + interval '26 hours', zone);
  low timestamptz := (wall at time zone 'UTC') - later;
  high timestamptz := (wall at time zone 'UTC') - before;
  middle timestamptz;
  found timestamptz;
begin
  select min(c.at) into found from (values (about), (low), (high)) c(at) where c.at at time zone zone = wall;
  if found is not null then return found; end if;
  -- It does not exist. The clocks are set forward somewhere between the two instants that it could have been.
  while high - low > interval '1 second' loop
    middle := date_trunc('second', low + (high - low) / 2);
    if mutirao.zone_offset(middle, zone) = before then
      low := middle;
    else
      high := middle;
    end if;
  end loop;
  return high;
end $$;
comment on function mutirao.cron_instant(timestamp, text) is 'The first instant at which clocks show a time, or the first after the gap in which none does.';

create or replace function mutirao.cron_minute(c mutirao.cron, zone text, after timestamptz, until timestamptz) returns timestamptz
language sql stable as $$
  select m.at from generate_series(date_trunc('minute', after) + interval '1 minute', until, interval '1 minute') m(at)
  cross join lateral (select m.at at time zone zone as wall) w
  where extract(minute from w.wall)::int = any (c.minutes) and mutirao.cron_takes(c, w.wall::date)
  limit 1  -- they come in order
$$;
comment on function mutirao.cron_minute(mutirao.cron, text, timestamptz, timestamptz) is 'The first minute in a short while that a pattern for every hour takes.';

create or replace function mutirao.cron_after(c mutirao.cron, zone text, after timestamptz) returns timestamptz
language plpgsql stable as $$
declare
  wall timestamp := after at time zone zone;
  about timestamptz;
  found timestamptz;
  is_hourly boolean := cardinality(c.hours) = 24;
begin
  if is_hourly then
    found := mutirao.cron_minute(c, zone, after, after + interval '61 minutes');
    if found is not null then return found; end if;
  end if;
  loop
    wall := mutirao.cron_next_wall(c, wall);
    if wall is null then
      return null;
    elsif is_hourly then
      about := wall at time zone zone;
      found := mutirao.cron_minute(c, zone, greatest(after, about - interval '26 hours'), about + interval '26 hours');
      wall := wall + interval '1 day';
    else
      found := mutirao.cron_instant(wall, zone);
    end if;
    if found > after then return found; end if;
  end loop;
end $$;
comment on function mutirao.cron_after(mutirao.cron, text, timestamptz) is 'When a pattern fires next, or null if never.';

create or replace function mutirao.cron_last(c mutirao.cron, zone text, known timestamptz, until timestamptz) returns timestamptz
language plpgsql stable as $$
declare
  low timestamptz := known;
  high timestamptz := until;
  middle timestamptz;
  found timestamptz;
begin
  -- Most patterns fire often: it is probably not far behind.
  foreach middle in array array[until - interval '2 minutes', until - interval '61 minutes', until - interval '1 day', until - interval '32 days'] loop
    if middle > low then
      found := mutirao.cron_after(c, zone, middle);
      if found <= until then
        low := found;
        exit;
      end if;
      high := middle;
    end if;
  end loop;
  while high - low > interval '1 minute' loop
    middle := low + (high - low) / 2;
    found := mutirao.cron_after(c, zone, middle);
    if found <= until then
      low := found;
    else
      high := middle;
    end if;
  end loop;
  found := mutirao.cron_after(c, zone, low);
  return case when found <= until then found else low end;
end $$;
comment on function mutirao.cron_last(mutirao.cron, text, timestamptz, timestamptz) is
  'The last time that a pattern fires up to a moment, when it is known to fire at one before. Found by halving: there may be a month of minutes between.';

-- The list of all zones is read from as many files. Whoever makes many schedules asks again and again for the same few.
create or replace function mutirao.known_zone(zone text) returns text
language plpgsql stable as $$
declare
  found text;
  nearest text;
  names text[];
begin
  if zone = 'UTC' or exists (select from mutirao.schedule s where s.zone = known_zone.zone) then
    return zone;
  end if;
  select z.name into found from pg_timezone_names z where z.name = zone;
  if found is null then
    select z.name into found from pg_timezone_names z where lower(z.name) = lower(replace(zone, ' ', '_')) limit 1;
  end if;
  if found is null then
    names := array(select z.name from pg_timezone_names z where z.name !~ '^(posix|right)/' order by z.name);
    -- The city alone, or a slip of the pen.
    nearest := coalesce((select lower(n) from unnest(names) n where lower(split_part(n, '/', -1)) = lower(replace(zone, ' ', '_')) limit 1),
      mutirao.nearest_name(lower(zone), array(select lower(n) from unnest(names) n where lower(left(n, 2)) = lower(left(zone, 2)))));
    perform mutirao.refuse('unknown_zone', format('there is no time zone "%s"; %s', zone, coalesce(
      'did you mean ' || (select n from unnest(names) n where lower(n) = nearest limit 1) || '?', 'zones are written as Europe/Berlin, America/Sao_Paulo or UTC')));
  end if;
  return found;
end $$;

create or replace function mutirao.known_cron(cron text, zone text) returns mutirao.cron
language plpgsql stable as $$
declare
  c mutirao.cron := mutirao.cron_parse(cron);
begin
  if mutirao.cron_after(c, zone, mutirao.now()) is null then
    perform mutirao.refuse('wrong_cron', format('cron "%s" never fires: no month that it names has such a day', cron));
  end if;
  return c;
end $$;

create or replace function mutirao.cron_next(cron text, zone text default 'UTC', after timestamptz default mutirao.now()) returns timestamptz
language plpgsql stable security definer as $$
declare
  known text := mutirao.known_zone(zone);
begin
  return mutirao.cron_after(mutirao.known_cron(cron, known), known, after);
end $$;
comment on function mutirao.cron_next(text, text, timestamptz) is 'When a cron pattern fires next in a time zone.';

create or replace function mutirao.cron_times(cron text, zone text default 'UTC', after timestamptz default mutirao.now(), count int default 5) returns setof timestamptz
language plpgsql stable security definer as $$
declare
  known text := mutirao.known_zone(zone);
  c mutirao.cron := mutirao.known_cron(cron, known);
begin
  for n in 1 .. least(count, 1000) loop
    after := mutirao.cron_after(c, known, after);
    return next after;
  end loop;
end $$;
comment on function mutirao.cron_times(text, text, timestamptz, int) is 'The next times, up to a thousand, that a cron pattern fires.';
