-- What is wanted of a worklist: a JSON object such as {"flow": "travel", "sort": "deadline", "overdue": true}, read once into numbers.

create or replace function mutirao.item_filter_keys() returns jsonb
language sql immutable
return '{"sort": "string", "descending": "boolean", "status": "string", "flow": "string", "task": "string", "role": "string", "instance": "number",
  "priority": "number", "due_before": "string", "overdue": "boolean", "text": "string", "attributes": "object"}'::jsonb;
comment on function mutirao.item_filter_keys() is 'What may be said of the items that are wanted, and what it is in JSON.';

create or replace function mutirao.check_item_filter(filter jsonb) returns void
language plpgsql stable as $$
declare
  keys jsonb := mutirao.item_filter_keys();
  bad record;
begin
  if jsonb_typeof(filter) is distinct from 'object' then
    perform mutirao.refuse('wrong_call', 'a filter is an object such as {"flow": "travel", "overdue": true}');
  end if;
  select e.key, e.value into bad from jsonb_each(filter) e where jsonb_typeof(e.value) not in ('null', coalesce(keys ->> e.key, '')) limit 1;
  if found then
    perform mutirao.refuse('wrong_call', case
      when keys ? bad.key then format('%s in a filter is a %s: it cannot be %s', bad.key, keys ->> bad.key, left(bad.value::text, 100))
      else format('a filter has no "%s": it has %s', left(bad.key, 100), (select string_agg(k, ', ') from jsonb_object_keys(keys) k)) end);
  elsif coalesce(filter ->> 'sort', 'arrival') not in ('arrival', 'priority', 'deadline', 'size', 'hand') then
    perform mutirao.refuse('wrong_call', format('a worklist is sorted by arrival, priority, deadline, size or hand: it cannot be by "%s"', left(filter ->> 'sort', 100)));
  elsif coalesce(filter ->> 'status', 'all') not in ('ready', 'running', 'all') then
    perform mutirao.refuse('wrong_call', format('items are ready, running (somebody holds them) or all: not "%s"', left(filter ->> 'status', 100)));
  elsif length(filter ->> 'text') > 200 then
    perform mutirao.refuse('wrong_call', 'a text to search for has at most 200 characters');
  end if;
  perform mutirao.refuse('wrong_call', format('attribute "%s" in a filter is compared with one value: it cannot be %s', left(a.key, 100), left(a.value::text, 100)))
  from jsonb_each(coalesce(nullif(filter -> 'attributes', 'null'), '{}')) a where jsonb_typeof(a.value) in ('object', 'array', 'null');
end $$;
comment on function mutirao.check_item_filter(jsonb) is 'Refuses a filter that cannot be read.';

create or replace function mutirao.whole_number(filter jsonb, key text) returns bigint
language plpgsql immutable as $$
declare
  given numeric := (filter ->> key)::numeric;
begin
  if given <> trunc(given) or given not between -9223372036854775808 and 9223372036854775807 then
    perform mutirao.refuse('wrong_call', format('%s in a filter is a whole number: it cannot be %s', key, left(given::text, 100)));
  end if;
  return given;
end $$;

create or replace function mutirao.moment(filter jsonb, key text) returns timestamptz
language plpgsql stable as $$
begin
  return (filter ->> key)::timestamptz;
exception when others then
  perform mutirao.refuse('wrong_call', format('%s in a filter is a time such as 2027-01-31T12:00:00Z: it cannot be "%s"', key, left(filter ->> key, 100)));
end $$;

-- A value that few instances have names them; one that many have is looked up item by item, which then finds a page soon. Open and closed
-- instances are searched alike, and values are kept up to a length: both are right when the items are looked at.
create or replace function mutirao.search_items(flow int, name text, value jsonb, out instances bigint[], out keys jsonb)
language plpgsql stable as $$
declare
  few constant int := 1000;
begin
  keys := (select jsonb_object_agg(f.id, mutirao.searched(value, a.type)) from mutirao.flow f join mutirao.attribute a on a.version = f.version
    where a.name = search_items.name and a.searchable and (search_items.flow is null or f.id = search_items.flow));
  if keys is null then
    perform mutirao.refuse('not_searchable', format('attribute "%s" cannot be searched: %s', left(name, 100), coalesce(
      (select format('flow "%s" has %s', f.name, coalesce((select string_agg(a.name, ', ' order by a.position) from mutirao.attribute a where a.version = f.version and a.searchable), 'nothing to search by'))
       from mutirao.flow f where f.id = search_items.flow), 'no flow declares it searchable')));
  end if;
  instances := array(select s.instance from jsonb_each_text(keys) k join mutirao.search s on s.flow = k.key::int and s.value = left(k.value, 200) where s.name = search_items.name limit few + 1);
  if cardinality(instances) > few then
    instances := null;
  elsif exists (select from jsonb_each_text(keys) k where length(k.value) > 200) then
    instances := array(select i.id from mutirao.instance i where i.id = any (instances) and mutirao.searched(i.state -> name) = keys ->> i.flow::text);
  end if;
end $$;
comment on function mutirao.search_items(int, text, jsonb) is
  'The instances with this value of a searchable attribute; null: they are too many to be named. And how each flow that has the attribute keeps the value.';

-- The keys are asked from a text, so that the beginning is known when that is planned, and an index finds it.
create or replace function mutirao.read_words(f mutirao.item_filter, words text) returns mutirao.item_filter
language plpgsql stable as $$
declare
  few constant int := 1000;
  pattern text := regexp_replace(words, '([\\%_])', '\\\1', 'g') || '%';
begin
  f.word_tasks := array(
    select t.id from mutirao.flow l join mutirao.version v on v.id = l.version join mutirao.task t on t.flow = l.id left join mutirao.rule r on r.version = v.id and r.task = t.id
    where concat_ws(E'\n', t.name, r.description, l.name, v.description) ilike '%' || pattern);
  execute 'select array(select k.instance from mutirao.key k where lower(k.key) like lower($1) limit $2)' into f.word_instances using pattern, few + 1;
  if cardinality(f.word_instances) > few then
    f.word_instances := '{}';
    f.key_words := pattern;
  end if;
  if words ~ '^[0-9]{1,18}$' then
    f.word_instances := f.word_instances || words::bigint;
  end if;
  return f;
end $$;

create or replace function mutirao.read_item_filter(filter jsonb) returns mutirao.item_filter
language plpgsql stable as $$
declare
  f mutirao.item_filter;
  a record;
  hit record;
begin
  perform mutirao.check_item_filter(filter);
  f.sort := coalesce(filter ->> 'sort', 'arrival');
  f.descending := coalesce((filter ->> 'descending')::boolean, false);
  f.status := coalesce(filter ->> 'status', 'all');
  if filter ->> 'flow' is not null then
    f.flow := mutirao.flow_number(filter ->> 'flow');
  end if;
  if filter ->> 'role' is not null then
    f.role := mutirao.role_named('a filter', filter ->> 'role');
  end if;
  if filter ->> 'task' is not null then
    f.tasks := array(select t.id from mutirao.task t where t.name = filter ->> 'task' and (f.flow is null or t.flow = f.flow));
    if f.tasks = '{}' then
      perform mutirao.refuse('unknown_task', format('no flow has a task "%s"', left(filter ->> 'task', 100)));
    end if;
  end if;
  if filter ->> 'priority' is not null then
    f.priority := least(greatest(mutirao.whole_number(filter, 'priority'), -2147483647), 2147483647);
  end if;
  f.due_before := least(mutirao.moment(filter, 'due_before'), case when (filter ->> 'overdue')::boolean then mutirao.now() end);
  if filter ->> 'instance' is not null then
    f.instances := array[mutirao.whole_number(filter, 'instance')];
  end if;
  for a in select x.key, x.value from jsonb_each(coalesce(nullif(filter -> 'attributes', 'null'), '{}')) x loop
    hit := mutirao.search_items(f.flow, a.key, a.value);
    if hit.instances is null then
      f.lookups := coalesce(f.lookups, '[]') || jsonb_build_array(jsonb_build_object('name', a.key, 'keys', hit.keys));
    else
      f.instances := case when f.instances is null then hit.instances else array(select unnest(f.instances) intersect select unnest(hit.instances)) end;
    end if;
  end loop;
  if trim(filter ->> 'text') <> '' then
    f := mutirao.read_words(f, trim(filter ->> 'text'));
  end if;
  return f;
end $$;
comment on function mutirao.read_item_filter(jsonb) is 'A filter with the numbers of what it names; refuses one that names what is not there.';

--------------------------------------------------------------------------------------------------------------------- saved

create or replace function mutirao.check_filter_name(name text) returns void
language plpgsql as $$
begin
  if name is null or not mutirao.is_line(name, 100) then
    perform mutirao.refuse('wrong_call', 'a filter''s name is one line of 1 to 100 printable characters, with no spaces around it');
  end if;
end $$;

create or replace function mutirao.save_filter(actor int, name text, filter jsonb) returns void
language plpgsql security definer as $$
declare
  p mutirao.person := mutirao.actor(actor);
  most constant int := 100;
begin
  perform mutirao.check_filter_name(name);
  perform mutirao.read_item_filter(filter);  -- what would be refused when it is used
  perform from mutirao.person x where x.id = p.id for no key update;  -- or two at once would pass the limit
  insert into mutirao.saved_filter as s (person, name, filter, saved_at) values (p.id, name, filter, mutirao.now())
  on conflict on constraint saved_filter_pkey do update set filter = excluded.filter, saved_at = excluded.saved_at;
  if (select count(*) from mutirao.saved_filter s where s.person = p.id) > most then
    perform mutirao.refuse('too_many', format('you have %s saved filters, as many as one may have: drop one first', most));
  end if;
end $$;
comment on function mutirao.save_filter(int, text, jsonb) is 'Keeps what a person wants to see of the worklist under a name; the same name again replaces it.';

create or replace function mutirao.rename_filter(actor int, name text, new_name text) returns void
language plpgsql security definer as $$
declare
  p mutirao.person := mutirao.actor(actor);
begin
  perform mutirao.check_filter_name(new_name);
  if new_name <> name and exists (select from mutirao.saved_filter s where s.person = p.id and s.name = new_name) then
    perform mutirao.refuse('filter_exists', format('you have a filter "%s" already', new_name));
  end if;
  update mutirao.saved_filter s set name = new_name where s.person = p.id and s.name = rename_filter.name;
  if not found then
    perform mutirao.refuse('unknown_filter', format('you have no filter "%s"', left(name, 100)));
  end if;
end $$;
comment on function mutirao.rename_filter(int, text, text) is 'Gives a saved filter another name.';

create or replace function mutirao.drop_filter(actor int, name text) returns void
language plpgsql security definer as $$
declare
  p mutirao.person := mutirao.actor(actor);
begin
  delete from mutirao.saved_filter s where s.person = p.id and s.name = drop_filter.name;
  if not found then
    perform mutirao.refuse('unknown_filter', format('you have no filter "%s"', left(name, 100)));
  end if;
end $$;
comment on function mutirao.drop_filter(int, text) is 'Forgets a saved filter.';

create or replace function mutirao.filters(actor int) returns table (name text, filter jsonb, saved_at timestamptz)
language plpgsql stable security definer as $$
declare
  p mutirao.person := mutirao.actor(actor);
begin
  return query select s.name, s.filter, s.saved_at from mutirao.saved_filter s where s.person = p.id order by s.name;
end $$;
comment on function mutirao.filters(int) is 'The filters that a person has saved.';
