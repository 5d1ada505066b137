-- One person's data: found wherever an instance keeps it, and erased on demand.
--
-- To blank an instance is to set attributes to null in its state and in every row of its trace, and to put [erased] in place of
-- their values wherever words stand: notes, errors, reasons, writers. That it happened stays, as a row of kind `erase`. To drop it is
-- to drop it whole. A closed instance can be either; an open one is blanked by a write like any other, and may refuse it.

create or replace function mutirao.scrub(words text, values_ text[]) returns text
language plpgsql immutable as $$
declare
  each text;
begin
  foreach each in array values_ loop
    words := replace(words, each, '[erased]');
  end loop;
  return words;
end $$;

create or replace function mutirao.scrub_json(document jsonb, values_ text[]) returns jsonb
language plpgsql immutable as $$
begin
  return case jsonb_typeof(document)
    when 'object' then (select coalesce(jsonb_object_agg(mutirao.scrub(e.key, values_), mutirao.scrub_json(e.value, values_)), '{}') from jsonb_each(document) e)
    when 'array' then (select coalesce(jsonb_agg(mutirao.scrub_json(e.value, values_) order by e.o), '[]') from jsonb_array_elements(document) with ordinality e(value, o))
    when 'string' then to_jsonb(mutirao.scrub(document #>> '{}', values_))
    when 'number' then case when document #>> '{}' = any (values_) then 'null' else document end
    else document end;
end $$;
comment on function mutirao.scrub_json(jsonb, text[]) is 'The document with [erased] in place of these values, wherever in it they stand.';

-- What the engine itself has written, or reads again: its keys are its own, and so are numbers and the names of what a flow defines. Only
-- what was said, and the values of attributes, can be somebody's data.
create or replace function mutirao.scrub_told(document jsonb, values_ text[], kept text[] default '{code,task,job,attribute,attributes}') returns jsonb
language plpgsql immutable as $$
begin
  return case jsonb_typeof(document)
    when 'array' then (select coalesce(jsonb_agg(mutirao.scrub_told(e.value, values_, kept) order by e.o), '[]') from jsonb_array_elements(document) with ordinality e(value, o))
    when 'object' then (
      select coalesce(jsonb_object_agg(e.key, case
        when e.key = any (kept) or kept <> '{}' and e.key <> 'value' and jsonb_typeof(e.value) = 'number' then e.value
        when kept <> '{}' and e.key = 'removed' then mutirao.scrub_told(e.value, values_, kept)
        when kept <> '{}' and e.key = 'change' then mutirao.scrub_told(e.value, values_, '{}')
        else mutirao.scrub_json(e.value, values_) end), '{}')
      from jsonb_each(document) e)
    else mutirao.scrub_json(document, values_) end;
end $$;
comment on function mutirao.scrub_told(jsonb, text[], text[]) is
  'The same for reasons, notes and errors, of which these keep their values; and for a change, of which none does.';

create or replace function mutirao.blanked(state jsonb, attributes text[]) returns jsonb
language sql immutable
return state || coalesce((select jsonb_object_agg(a, null) from unnest(attributes) a where state ? a), '{}');

create or replace function mutirao.check_value(value text) returns text
language plpgsql immutable as $$
begin
  if length(value) < 3 then
    perform mutirao.refuse('wrong_call', format('"%s" would be found in every other text: give at least three characters', value));
  end if;
  return substr(to_jsonb(value)::text, 2, length(to_jsonb(value)::text) - 2);
end $$;
comment on function mutirao.check_value(text) is 'Refuses a value too short to mean anything; answers how it stands inside a JSON text.';

-- All that is looked at is read, so it goes a page at a time; whoever asks goes on after `last`, until `looked` is less than the room.
create or replace function mutirao.find_value(
  value text, flow text default null, attribute text default null, after bigint default 0, room int default 1000, out last bigint, out looked int, out holding bigint[])
language plpgsql stable security definer as $$
declare
  f int := case when flow is not null then mutirao.flow_number(flow) end;
  needle text := case when attribute is null then mutirao.check_value(value) end;
  ids bigint[];
begin
  ids := array(
    select x.id from (
      (select i.id from mutirao.instance i where i.id > after and (f is null or i.flow = f) order by i.id limit room)
      union all (select c.id from mutirao.closed c where c.id > after and (f is null or c.flow = f) order by c.id limit room)) x
    order by x.id limit room);
  looked := cardinality(ids);
  last := ids[looked];
  if attribute is not null then
  holding := array(
      select i.id from mutirao.instance i where i.id = any (ids) and i.state ->> attribute = value
      union select c.id from mutirao.closed c where c.id = any (ids) and c.state ->> attribute = value
      union select t.instance from mutirao.trace t where t.instance = any (ids) and t.state ->> attribute = value order by 1);
    return;
  end if;
  holding := array(
    select i.id from mutirao.instance i where i.id = any (ids) and strpos(concat(i.state, i.reasons), needle) > 0
    union select c.id from mutirao.closed c where c.id = any (ids) and strpos(c.state::text, needle) > 0
    union select t.instance from mutirao.trace t where t.instance = any (ids) and (strpos(concat(t.state, t.note), needle) > 0 or strpos(t.writer, value) > 0)
    union select k.instance from mutirao.key k where k.instance = any (ids) and strpos(k.key, value) > 0
    union select v.instance from mutirao.event v where v.instance = any (ids) and strpos(v.event, value) > 0
    union select x.instance from mutirao.attachment x where x.instance = any (ids) and strpos(x.content::text, needle) > 0
    union select x.instance from mutirao.comment x where x.instance = any (ids) and strpos(x.text, value) > 0
    union select j.instance from mutirao.job j where j.instance = any (ids)
      and (strpos(concat(j.change, j.error), needle) > 0 or strpos(concat(j.worker, ' ', j.slot), value) > 0) order by 1);
end $$;
comment on function mutirao.find_value(text, text, text, bigint, int) is
  'Which of the next instances keep a value, in their state, trace or jobs; with an attribute, those of which it is or was the value.';

-- Blanking these would change what is started or done next, so whoever erases is told of them and decides.
create or replace function mutirao.find_elsewhere(value text) returns table (what text, name text)
language plpgsql stable security definer as $$
declare
  needle text;
begin
  if length(value) < 3 then return; end if;
  needle := mutirao.check_value(value);
  return query
    select 'schedule', s.name from mutirao.schedule s where strpos(s.state::text, needle) > 0
    union all
    select 'batch', b.id::text from mutirao.batch b where b.status = 'running' and strpos(concat(b.filter, b.arguments), needle) > 0
    order by 1 desc, 2;
end $$;
comment on function mutirao.find_elsewhere(text) is 'Which schedules start with a value, and which running batches write it. Erasing leaves them alone.';

-- The attributes of an instance to be blanked, and the values they had: those are then looked for in all words.
create or replace function mutirao.erasable(instance bigint, value text, attributes text[], out names text[], out words text[])
language sql stable as $$
  with states as (
    select c.state from mutirao.closed c where c.id = erasable.instance
    union all select i.state from mutirao.instance i where i.id = erasable.instance
    union all select t.state from mutirao.trace t where t.instance = erasable.instance and t.state is not null
    union all select j.change from mutirao.job j where j.instance = erasable.instance and jsonb_typeof(j.change) = 'object'
    union all select x.content -> 'change' from mutirao.attachment x where x.instance = erasable.instance and jsonb_typeof(x.content -> 'change') = 'object'),
  told as (
    select distinct e.key, e.value #>> '{}' as said, jsonb_typeof(e.value) as type from states s cross join jsonb_each(s.state) e),
  chosen as (
    select distinct t.key from told t
    where t.key = any (attributes) or erasable.value is not null
      and (strpos(t.said, erasable.value) > 0 or t.type in ('object', 'array') and strpos(t.said, mutirao.check_value(erasable.value)) > 0))
  select coalesce((select array_agg(c.key order by c.key) from chosen c), '{}'),
    coalesce((select array_agg(distinct w.said) from (
      select erasable.value as said where erasable.value is not null
      union select t.said from told t join chosen c using (key) where t.type in ('string', 'number') and length(t.said) >= 3) w), '{}')
$$;

-- Not every attribute may be null, and not every write is possible at any time: then the instance stays as it is, and the answer says why.
create or replace function mutirao.erase_open(i mutirao.instance, names text[], words text[], writer text, reason text) returns text
language plpgsql as $$
begin
  if exists (select from mutirao.job j where j.instance = i.id and j.status = 'running') then
    return 'a worker has a job of it and could write the value again: wait for it, or cancel the instance';
  end if;
  begin
    if i.state ?| names then
      perform mutirao.set_instance(i.id, (select jsonb_object_agg(n, null) from unnest(names) n where i.state ? n), writer, reason);
    end if;
    update mutirao.instance x set reasons = mutirao.scrub_told(x.reasons, words) where x.id = i.id;
    update mutirao.job j set change = mutirao.scrub_told(mutirao.blanked(j.change, names), words, '{}'), error = mutirao.scrub_told(j.error, words),
      slot = mutirao.scrub(j.slot, words) where j.instance = i.id;
  exception when others then
    if sqlstate not like 'MU%' then raise; end if;
    return sqlerrm;
  end;
  return null;
end $$;

create or replace function mutirao.erase_one(instance bigint, value text, attributes text[], how text, reason text, may_be_open boolean, writer text) returns text
language plpgsql as $$
declare
  i mutirao.instance;
  c mutirao.closed;
  e record;
  refused text;
begin
  select * into c from mutirao.closed x where x.id = erase_one.instance for update skip locked;
  if c.id is null then
    select * into i from mutirao.instance x where x.id = erase_one.instance for no key update skip locked;
    if i.id is null then
      return case when exists (select from mutirao.trace t where t.instance = erase_one.instance) then 'somebody is writing it: try again' else 'there is no such instance' end;
    elsif how = 'drop' or not may_be_open then
      return format('it is %s: cancel it first%s', i.status, case how when 'blank' then ', or say that open ones may be blanked too' else '' end);
    end if;
  end if;
  e := mutirao.erasable(instance, value, attributes);
  reason := mutirao.scrub(reason, e.words);
  if how = 'drop' then
    perform mutirao.erase_files(instance, true);
    perform mutirao.drop_closed(array[instance]);
  else
    if i.id is not null then
      refused := mutirao.erase_open(i, e.names, e.words, writer, reason);
      if refused is not null then return mutirao.scrub(refused, e.words); end if;
    end if;
    update mutirao.closed x set state = mutirao.blanked(x.state, e.names) where x.id = erase_one.instance;
    update mutirao.trace t set state = mutirao.blanked(t.state, e.names), note = mutirao.scrub_told(t.note, e.words), writer = mutirao.scrub(t.writer, e.words)
    where t.instance = erase_one.instance;
    update mutirao.comment x set text = left(mutirao.scrub(x.text, e.words), 10000) where x.instance = erase_one.instance;
    update mutirao.attachment x set content = mutirao.scrub_told(case when jsonb_typeof(x.content -> 'change') = 'object'
      then x.content || jsonb_build_object('change', mutirao.blanked(x.content -> 'change', e.names)) else x.content end, e.words) where x.instance = erase_one.instance;
    perform mutirao.erase_files(instance, false);
    update mutirao.message m set sender = mutirao.scrub(m.sender, e.words), text = mutirao.scrub(m.text, e.words), note = mutirao.scrub_told(m.note, e.words) where m.instance = erase_one.instance;
    delete from mutirao.key k where k.instance = erase_one.instance and mutirao.scrub(k.key, e.words) <> k.key;
    delete from mutirao.event v where v.instance = erase_one.instance and mutirao.scrub(v.event, e.words) <> v.event;
    delete from mutirao.search s where s.instance = erase_one.instance and (s.name = any (e.names) or mutirao.scrub(s.value, e.words) <> s.value);
    insert into mutirao.trace (instance, id, flow, version, kind, status, writer, note, at)
    values (instance, nextval('mutirao.trace_id'), coalesce(c.flow, i.flow), coalesce(c.version, i.version), 'erase',
      coalesce(c.status, (select x.status from mutirao.instance x where x.id = erase_one.instance), (select x.status from mutirao.closed x where x.id = erase_one.instance)),
      writer, jsonb_strip_nulls(jsonb_build_object('reason', reason, 'attributes', to_jsonb(e.names))), mutirao.now());
  end if;
  perform mutirao.erase_elsewhere(e.words);
  -- What its creator was answered; that there was a request stays, so that it is not done twice.
  update mutirao_secret.answer a set content = null where a.headers ->> 'location' = format('/api/instances/%s', instance);
  insert into mutirao.erasure (instance, flow, how, attributes, reason, writer, at)
  values (instance, coalesce(c.flow, i.flow), how, e.names, reason, writer, mutirao.now());
  return null;
end $$;

-- What is said about many instances at once, and may have named the one.
create or replace function mutirao.erase_elsewhere(words text[]) returns void
language plpgsql as $$
begin
  update mutirao.batch b set filter = mutirao.scrub_told(b.filter, words, '{flow,status,task,ids}'),
    arguments = mutirao.scrub_told(b.arguments, words, '{tasks,attributes,closed_before}'),
    reason = mutirao.scrub(b.reason, words), note = mutirao.scrub(b.note, words)
  where b.status <> 'running' and mutirao.scrub(concat(b.filter, b.arguments, b.reason, b.note), words) <> concat(b.filter, b.arguments, b.reason, b.note);
  update mutirao.batch_refusal r set message = mutirao.scrub(r.message, words) where mutirao.scrub(r.message, words) <> r.message;
  update mutirao.throttle t set served = '' where mutirao.scrub(t.served, words) <> t.served;
end $$;

create or replace function mutirao.erase(instances bigint[], value text default null, attributes text[] default '{}', how text default 'blank', reason text default null,
  may_be_open boolean default false, writer text default session_user) returns table (instance bigint, refused text)
language plpgsql security definer as $$
#variable_conflict use_column
declare
  one bigint;
  wrong text;
begin
  if coalesce(how, '') not in ('blank', 'drop') then
    perform mutirao.refuse('wrong_call', format('"%s" is not how something is erased: blank, or drop', how));
  elsif how = 'blank' and value is null and coalesce(attributes, '{}') = '{}' then
    perform mutirao.refuse('wrong_call', 'to blank is to blank something: give a value, or attributes');
  end if;
  perform mutirao.check_value(value), mutirao.note(reason);
  select a into wrong from unnest(attributes) a where not exists (select from mutirao.attribute x where x.name = a) limit 1;
  if wrong is not null then
    perform mutirao.refuse('unknown_attribute', format('no flow has an attribute "%s"', wrong));
  end if;
  for one in select distinct n from unnest(instances) n order by n loop
    instance := one;
    refused := mutirao.erase_one(one, value, coalesce(attributes, '{}'), how, reason, may_be_open, mutirao.signed(writer));
    return next;
  end loop;
end $$;
comment on function mutirao.erase(bigint[], text, text[], text, text, boolean, text) is
  'Blanks attributes and whatever holds the value in these instances and their traces, or drops them whole. Answers each, and why it was not possible where it was not.';
