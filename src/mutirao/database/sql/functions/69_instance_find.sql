-- The instances that somebody looks for, newest first, however many there are.
--
-- Most of what may be said of them is in some index: each is asked for a few thousand numbers, the one that has the fewest leads, and the rest
-- is looked at in the rows that it names. Where nothing leads, the tables are walked down by number, in strides that grow. Either way a call
-- looks at some thousand, and says where to go on: it takes the same time with a million instances as with a hundred thousand.

create or replace function mutirao.created_before(at timestamptz) returns bigint
language plpgsql stable strict as $$
declare
  low bigint := 0;
  high bigint := 1 + greatest((select max(i.id) from mutirao.instance i), (select max(c.id) from mutirao.closed c), 0);
  -- Numbers are drawn in the order of creation, but for transactions that overlap.
  until constant timestamptz := at + interval '1 hour';
  middle bigint;
  created timestamptz;
begin
  while high - low > 100 loop
    middle := (low + high) / 2;
    -- One that was put off has started later than it was created.
    select least(x.started_at, (select t.at from mutirao.trace t where t.instance = x.id order by t.id limit 1)) into created from (
      (select i.id, i.started_at from mutirao.instance i where i.id <= middle order by i.id desc limit 1)
      union all
      (select c.id, c.started_at from mutirao.closed c where c.id <= middle order by c.id desc limit 1)) x order by x.id desc limit 1;
    if created > until then
      high := middle;
    else
      low := middle;
    end if;
  end loop;
  return high;
end $$;
comment on function mutirao.created_before(timestamptz) is 'A number that no instance reaches which was created until then: found by halving, since times have no index.';

create or replace function mutirao.keys_beginning(words text, room int) returns bigint[]
language sql stable as $$
  select array(select k.instance from mutirao.key k where lower(k.key) ~>=~ lower(words) and lower(k.key) ~<~ (lower(words) || chr(1114111)) limit room)
    || case when words ~ '^[0-9]{1,18}$' then array[words::bigint] else '{}' end
$$;
comment on function mutirao.keys_beginning(text, int) is 'Instances by a number, or by how their keys begin: no more than so many.';

create or replace function mutirao.exception_instances(flow int, room int) returns bigint[]
language sql stable as $$
  select array(
    select i.id from mutirao.flow f cross join lateral (
      select i.id from mutirao.instance i where i.flow = f.id and i.status = 'open.exception' order by i.id desc limit room) i
    where exception_instances.flow is null or f.id = exception_instances.flow limit room)
$$;
comment on function mutirao.exception_instances(int, int) is 'Instances that are exceptions, of a flow or of all: no more than so many.';

create or replace function mutirao.person_called(called text) returns int
language plpgsql stable as $$
declare
  found_id int := (select p.id from mutirao.person p where lower(p.name) = lower(called));
begin
  if called is not null and found_id is null then
    perform mutirao.refuse('unknown_person', format('there is no person "%s"', left(called, 100)));
  end if;
  return found_id;
end $$;
comment on function mutirao.person_called(text) is 'The person of that name; refused if there is none.';

-- Whoever may see only theirs is not told which flows there are besides: of one that they cannot start nothing is found, whatever it has.
create or replace function mutirao.read_instance_filter(actor int, filter jsonb) returns mutirao.instance_filter
language plpgsql stable as $$
declare
  f mutirao.instance_filter;
  is_told boolean := actor is null or exists (select from mutirao.flow x where x.name = filter ->> 'flow' and mutirao.may_create(actor, x));
begin
  f.statuses := array(select s from unnest(enum_range(null::mutirao.instance_status)) s where starts_with(s::text, coalesce(filter ->> 'status', '')));
  if f.statuses = '{}' then
    perform mutirao.refuse('wrong_call', format('there is no status "%s"; an instance is %s', left(filter ->> 'status', 100), array_to_string(enum_range(null::mutirao.instance_status), ', ')));
  end if;
  if filter ->> 'flow' is not null then
    select x.id into f.flow from mutirao.flow x where x.name = filter ->> 'flow';
    if not found and is_told then perform mutirao.refuse_flow(filter ->> 'flow'); end if;
    f.flow := coalesce(f.flow, 0);
  end if;
  f.in_charge := mutirao.person_called(filter ->> 'in_charge');
  f.person := mutirao.person_called(filter ->> 'person');
  f.words := filter ->> 'text';
  f.started_after := mutirao.moment(filter, 'started_after');
  f.started_before := mutirao.moment(filter, 'started_before');
  f.name := filter ->> 'attribute';
  if f.name is null then return f; end if;
  if f.flow is null then
    perform mutirao.refuse('wrong_call', 'a filter by attribute needs the flow that has it');
  end if;
  select coalesce(mutirao.searched(filter -> 'value', a.type), '') into f.value from mutirao.flow x join mutirao.attribute a on a.version = x.version and a.searchable
  where x.id = f.flow and a.name = f.name;
  if not found and not is_told then
    f.flow := 0;
  elsif not found then
    perform mutirao.refuse('not_searchable', format('attribute "%s" of flow "%s" is not declared searchable; those that are: %s', left(f.name, 100), filter ->> 'flow', coalesce(
      (select string_agg(a.name, ', ' order by a.position) from mutirao.flow x join mutirao.attribute a on a.version = x.version and a.searchable where x.id = f.flow), 'none')));
  end if;
  return f;
end $$;

create or replace function mutirao.instances_with(person int, top bigint, room int) returns bigint[]
language sql stable
return array(select distinct p.instance from mutirao.participation p where p.person = instances_with.person and p.instance < top order by p.instance desc limit room);
comment on function mutirao.instances_with(int, bigint, int) is 'Instances that somebody has had to do with, newest first, those before a number: no more than so many.';

-- The actor's come first: of two parts that name as many the first leads, so that nobody is told to go on before one that they may not see.
-- What an index has is in the order of numbers, so that whoever goes on finds what follows; keys and exceptions are not, and lead only where they are few.
create or replace function mutirao.leading_instances(actor int, f mutirao.instance_filter, top bigint, reach int, out ids bigint[], out until bigint)
language plpgsql stable as $$
declare
  named bigint[];
begin
  if actor is not null then
    ids := mutirao.instances_with(actor, top, reach);
  end if;
  if f.person is not null then
    named := mutirao.instances_with(f.person, top, reach);
    ids := case when cardinality(ids) <= cardinality(named) then ids else named end;
  end if;
  if f.in_charge is not null then
    named := array(select x.instance from unnest('{false,true}'::boolean[]) e(ended) cross join lateral (
        select c.instance from mutirao.charge c where c.person = f.in_charge and c.ended = e.ended and c.instance < top order by c.instance desc limit reach) x
      where case when e.ended then f.statuses[cardinality(f.statuses)] >= 'closed.completed' else f.statuses[1] < 'closed.completed' end
      order by 1 desc limit reach);
    ids := case when cardinality(ids) <= cardinality(named) then ids else named end;
  end if;
  if f.name is not null then
    named := array(select s.instance from mutirao.search s where s.flow = f.flow and s.name = f.name and s.value = left(f.value, 200) and s.instance < top order by s.instance desc limit reach);
    ids := case when cardinality(ids) <= cardinality(named) then ids else named end;
  end if;
  until := case when cardinality(ids) = reach then ids[reach] end;
  named := case when f.words is not null then mutirao.keys_beginning(f.words, reach) when f.statuses = '{open.exception}' then mutirao.exception_instances(f.flow, reach) end;
  if cardinality(named) < reach and (ids is null or cardinality(named) < cardinality(ids)) then
    ids := array(select distinct n from unnest(named) n where n < top order by n desc);
    until := null;
  end if;
end $$;
comment on function mutirao.leading_instances(int, mutirao.instance_filter, bigint, int) is
  'Numbers by that part of a filter which names the fewest; and down to which they were looked for, if there are more. null: nothing names them.';

create or replace function mutirao.is_of_time(f mutirao.instance_filter, at timestamptz) returns boolean
language sql immutable
return ((f).started_after is null or at >= (f).started_after) and ((f).started_before is null or at < (f).started_before);

create or replace function mutirao.walked_open(f mutirao.instance_filter, top bigint, reach int, out ids bigint[], out until bigint)
language plpgsql stable as $$
begin
  if f.statuses[1] >= 'closed.completed' then return; end if;
  select array_agg(x.id) filter (where (f.flow is null or x.flow = f.flow) and x.status = any (f.statuses) and mutirao.is_of_time(f, x.started_at)),
    case when count(*) = reach then min(x.id) end into ids, until
  from (select i.id, i.flow, i.status, i.started_at from mutirao.instance i where i.id < top order by i.id desc limit reach) x;
end $$;
comment on function mutirao.walked_open(mutirao.instance_filter, bigint, int) is 'Open instances of a flow and some statuses, and down to which they were looked for.';

-- By flow and status there is an index of closed ones, in another order: where it has few, those are all. Of a flow that nobody uses any more
-- the last one that closed says where it is worth while to begin.
create or replace function mutirao.walked_closed(f mutirao.instance_filter, top bigint, reach int, out ids bigint[], out until bigint)
language plpgsql stable as $$
declare
  ends mutirao.instance_status[] := array(select s from unnest(f.statuses) s where s >= 'closed.completed');
  latest timestamptz;
  few constant int := 5000;
begin
  if ends = '{}' then return; end if;
  if f.flow is not null or cardinality(ends) < 3 then
    ids := array(select c.id from mutirao.flow x cross join unnest(ends) s cross join lateral (
      select c.id from mutirao.closed c where c.flow = x.id and c.status = s limit few) c where f.flow is null or x.id = f.flow limit few);
    if cardinality(ids) < few then return; end if;
    latest := (select max(m.at) from mutirao.flow x cross join unnest(ends) s cross join lateral (
      select c.closed_at as at from mutirao.closed c where c.flow = x.id and c.status = s order by c.closed_at desc limit 1) m where f.flow is null or x.id = f.flow);
    top := least(top, mutirao.created_before(latest));
  end if;
  select array_agg(x.id) filter (where (f.flow is null or x.flow = f.flow) and x.status = any (ends) and mutirao.is_of_time(f, x.started_at)),
    case when count(*) = reach then min(x.id) end into ids, until
  from (select c.id, c.flow, c.status, c.started_at from mutirao.closed c where c.id < top order by c.id desc limit reach) x;
end $$;
comment on function mutirao.walked_closed(mutirao.instance_filter, bigint, int) is 'The same of closed ones.';

-- Not by `exists`: all that a busy person has ever had to do with would be read, to be compared with a few.
create or replace function mutirao.fitting_instances(actor int, f mutirao.instance_filter, numbers bigint[], room int) returns bigint[]
language sql stable as $$
  select array(
    select n.id from (select distinct u as id from unnest(numbers) u) n, lateral (
      select i.flow, i.status, i.started_at, i.state from mutirao.instance i where i.id = n.id
      union all
      select c.flow, c.status, c.started_at, c.state from mutirao.closed c where c.id = n.id) i
    where (f.flow is null or i.flow = f.flow) and i.status = any (f.statuses) and mutirao.is_of_time(f, i.started_at)
      and (f.name is null or coalesce(mutirao.searched(i.state -> f.name), '') = f.value)
      and (f.in_charge is null or (select true from mutirao.charge x where x.instance = n.id and x.person = f.in_charge limit 1))
      and (f.person is null or (select true from mutirao.participation p where p.instance = n.id and p.person = f.person limit 1))
      and (actor is null or (select true from mutirao.participation p where p.instance = n.id and p.person = actor limit 1))
      and (f.words is null or n.id::text = f.words or exists (select from mutirao.key k where k.instance = n.id and starts_with(lower(k.key), lower(f.words))))
    order by n.id desc limit room)
$$;

create or replace function mutirao.find_instances(actor int, filter jsonb, before bigint, room int, reach int default 5000, out ids bigint[], out further bigint)
language plpgsql stable security definer as $$
declare
  begun constant timestamptz := mutirao.stopwatch();
  f mutirao.instance_filter := mutirao.read_instance_filter(actor, filter);
  top bigint := least(coalesce(before, 9223372036854775807), mutirao.created_before(f.started_before));
  l record := mutirao.leading_instances(actor, f, top, reach);
  o record;
  c record;
  stride int := least(4 * room, reach);
  seen int := 0;
begin
  ids := '{}';
  while l.ids is not null and seen < cardinality(l.ids) and cardinality(ids) < room loop
    ids := ids || mutirao.fitting_instances(actor, f, l.ids[seen + 1 : seen + stride], room - cardinality(ids));
    seen := seen + stride;
    stride := least(4 * stride, reach);
  end loop;
  further := l.until;
  while l.ids is null loop
    o := mutirao.walked_open(f, top, stride);
    c := mutirao.walked_closed(f, top, stride);
    further := greatest(o.until, c.until);
    ids := ids || mutirao.fitting_instances(actor, f, array(select n from unnest(o.ids || c.ids) n where n < top and (further is null or n >= further)), room - cardinality(ids));
    exit when cardinality(ids) = room or further is null or mutirao.stopwatch() > begun + interval '15 milliseconds';
    top := further;
    stride := least(4 * stride, reach);
  end loop;
  further := case when cardinality(ids) = room then ids[room] else further end;
end $$;
comment on function mutirao.find_instances(int, jsonb, bigint, int, int) is
  'A page of the instances that fit a filter such as {"flow": "travel", "status": "open", "in_charge": "manager"}, newest first, those before a number: of all, or of those that an actor has had to do with. further: before which to go on, if there may be more; a call looks at some thousand only.';
