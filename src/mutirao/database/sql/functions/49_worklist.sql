-- Worklists as persons read them: a page of items in some order, how many there are, one item in full, and the next one to do.
--
-- An item is in somebody's list for one of four reasons, and each has its own way to be found in order: offered to a role of theirs (one walk
-- along an index for each role, of no more rows than a page has), offered to them alone, inserted into their list, or held by them. The walks
-- are put together and the first page of all is kept, so a page costs as much with a hundred thousand open items as with a thousand.
-- Whoever stands in for somebody who is away has all that is theirs as well.

-- Each order as an expression that an index has. Rows of equal value go by number, so an order is total, and a page goes on where the last
-- one ended whatever came and went meanwhile. Arrival is no plain id: in that order the planner would also walk the primary key, past all
-- the items of others, for a role that has none.
create or replace function mutirao.sort_key(sort text) returns text
language sql immutable
return case sort when 'priority' then '-j.priority' when 'deadline' then 'coalesce(j.finish_by, ''infinity''::timestamptz)' when 'size' then 'coalesce(j.size, 0)'
  else '(j.id + 0)' end;

create or replace function mutirao.sort_type(sort text) returns text
language sql immutable
return case sort when 'priority' then 'int' when 'deadline' then 'timestamptz' when 'hand' then 'numeric' else 'bigint' end;

create or replace function mutirao.cursor_of(f mutirao.item_filter, key text, job bigint) returns text
language sql immutable
return translate(encode(convert_to(jsonb_build_array(f.sort, f.descending, key, job)::text, 'UTF8'), 'base64'), E'+/=\n', '-_');
comment on function mutirao.cursor_of(mutirao.item_filter, text, bigint) is 'Where a page ends, in a form that is nobody''s business.';

create or replace function mutirao.read_cursor(f mutirao.item_filter, cursor_ text, out key text, out job bigint)
language plpgsql immutable as $$
declare
  parts jsonb;
begin
  if cursor_ is null then return; end if;
  begin
    parts := convert_from(decode(rpad(translate(cursor_, '-_', '+/'), (length(cursor_) + 3) / 4 * 4, '='), 'base64'), 'UTF8')::jsonb;
    key := parts ->> 2;
    job := parts ->> 3;
    execute format('select $1::%s', mutirao.sort_type(f.sort)) using key;
    if f.sort = 'hand' then
      perform trunc(key::numeric)::bigint;
    end if;
  exception when data_exception or feature_not_supported then
    job := null;
  end;
  if job is null or key is null or parts ->> 0 is distinct from f.sort or parts -> 1 is distinct from to_jsonb(f.descending) then
    perform mutirao.refuse('wrong_call', 'a page goes on after the cursor that the page before it gave, in the same order');
  end if;
end $$;

-- What a filter asks, as SQL over the job j: only what is asked, so that it costs nothing otherwise. Values are never part of it: $1 has them.
-- Priorities and deadlines are written as the indices have them, so that few are found without a walk past the others.
-- Keys are looked up item by item, if at all: without its offset, all keys there are would be read into a hash.
create or replace function mutirao.item_filter_sql(f mutirao.item_filter) returns text
language sql immutable
return concat(
  case when f.flow is not null then ' and j.flow = ($1).flow' end,
  case when f.tasks is not null then ' and j.task = any (($1).tasks)' end,
  case when f.role is not null then ' and j.role = ($1).role' end,
  case when f.instances is not null then ' and j.instance = any (($1).instances)' end,
  case when f.priority is not null then ' and -j.priority <= -($1).priority' end,
  case when f.due_before is not null then ' and coalesce(j.finish_by, ''infinity''::timestamptz) < ($1).due_before' end,
  case when f.word_tasks is not null then ' and (j.task = any (($1).word_tasks) or j.instance = any (($1).word_instances)'
    || case when f.key_words is null then ')' else ' or exists (select from mutirao.key k where k.instance = j.instance and lower(k.key) like lower(($1).key_words) offset 0))' end end,
  case when f.lookups is not null then ' and not exists (select from jsonb_to_recordset(($1).lookups) l(name text, keys jsonb), lateral (select l.keys ->> j.flow::text) k(key)
    where not exists (select from mutirao.search s where s.flow = j.flow and s.name = l.name and s.value = left(k.key, 200) and s.instance = j.instance)
      or length(k.key) > 200 and not exists (select from mutirao.instance i where i.id = j.instance and mutirao.searched(i.state -> l.name) = k.key))' end);

create or replace function mutirao.barred_sql(persons int[], whose text) returns text
language sql immutable
return ' and not exists (select from mutirao.barred b where b.person = $2 and b.job = j.id)'
  || case when cardinality(persons) > 1 then format(' and exists (select from unnest(%s) s where not exists (select from mutirao.barred b where b.person = s and b.job = j.id))', whose) else '' end;
comment on function mutirao.barred_sql(int[], text) is 'Leaves out what the person may not do, and what none of those may through whom it is in the list.';

-- As is_listed, for one who stands in for nobody: that is most of the time, and much quicker.
create or replace function mutirao.listed_sql(persons int[]) returns text
language sql immutable
return case when cardinality(persons) > 1 then 'mutirao.is_listed($2, $3, j, ($1).status)' else
  'j.role is not null and (($1).status <> ''ready'' and j.status = ''running'' and j.person = $2 or ($1).status <> ''running'' and j.status = ''ready''
    and (j.offered_to = $2 or j.offered_to is null and exists (select from mutirao.member m where m.role = j.role and m.person = $2) or exists (select from mutirao.invited v where v.person = $2 and v.job = j.id))
    and not exists (select from mutirao.barred b where b.person = $2 and b.job = j.id))' end;

-- The numbers of a page of items, in order. $1 filter, $2 actor, $3 those they stand for and they themselves, $4 and $5 where the last page
-- ended, $6 how many.
create or replace function mutirao.worklist_page(actor int, persons int[], f mutirao.item_filter, after_key text, after_job bigint, room int) returns table (job bigint, key text)
language plpgsql stable as $$
declare
  key text := mutirao.sort_key(f.sort);
  shown text := key || case when f.sort = 'hand' then '::numeric' else '' end;
  comes text := case when f.descending then '<' else '>' end;
  direction text := case when f.descending then 'desc' else 'asc' end;
  wanted text := mutirao.item_filter_sql(f);
  follows text := '';
  walk text;
  parts text[] := '{}';
begin
  if after_job is not null then
    follows := format(' and (%s, j.id) %s ($4::%s, $5)', shown, comes, mutirao.sort_type(f.sort));
  end if;
  if f.sort = 'hand' then
    wanted := wanted || ' and not exists (select from mutirao.place l where l.person = $2 and l.job = j.id)'
      || case when after_job is not null then format(' and %s %s= trunc($4::numeric)::bigint', key, comes) else '' end;  -- so that the walk begins there
  end if;
  walk := format('%s%s order by %s %s, j.id %s limit $6', wanted, follows, key, direction, direction);
  if f.status in ('ready', 'all') then
    parts := array[
      format('select c.* from (select m.role, array_agg(m.person) as persons from mutirao.member m where m.person = any ($3) group by m.role) m, lateral (
        select j.id, %s as key from mutirao.job j where j.role = m.role and j.role is not null and j.offered_to is null and j.status = ''ready''%s%s) c', shown, mutirao.barred_sql(persons, 'm.persons'), walk),
      format('select c.* from unnest($3) p(id), lateral (
        select j.id, %s as key from mutirao.job j where j.offered_to = p.id and j.offered_to is not null and j.role is not null and j.status = ''ready''%s%s) c', shown, mutirao.barred_sql(persons, 'array[p.id]'), walk),
      format('(select distinct on (%s, j.id) j.id, %s as key from mutirao.invited v join mutirao.job j on j.id = v.job where v.person = any ($3) and j.role is not null and j.status = ''ready''%s%s)',
        key, shown, mutirao.barred_sql(persons, 'array[v.person]'), walk)];
  end if;
  if f.status in ('running', 'all') then
    parts := parts || format('(select j.id, %s as key from mutirao.job j where j.person = any ($3) and j.person is not null and j.role is not null and j.status = ''running''%s)', shown, walk);
  end if;
  if f.sort = 'hand' then
    parts := parts || format('(select j.id, l.rank as key from mutirao.place l join mutirao.job j on j.id = l.job where l.person = $2 and %s%s%s order by 2 %s, 1 %s limit $6)',
      mutirao.listed_sql(persons), mutirao.item_filter_sql(f), replace(follows, shown, 'l.rank'), direction, direction);
  end if;
  return query execute format('select q.id, q.key::text from (%s) q order by q.key %s, q.id %s limit $6', array_to_string(parts, ' union '), direction, direction)
    using f, actor, persons, after_key, after_job, room;
end $$;

create or replace function mutirao.is_listed(actor int, persons int[], j mutirao.job, status text default 'all') returns boolean
language sql stable
return j.role is not null and (status <> 'running' and j.status = 'ready' and mutirao.may_do(actor, j) or status <> 'ready' and j.status = 'running' and j.person = any (persons));
comment on function mutirao.is_listed(int, int[], mutirao.job, text) is 'Whether an item is in somebody''s worklist.';

create or replace function mutirao.is_own(person int, j mutirao.job) returns boolean
language sql stable
return coalesce(j.offered_to = person, false) or j.offered_to is null and exists (select from mutirao.member m where m.role = j.role and m.person = is_own.person)
  or exists (select from mutirao.invited i where i.person = is_own.person and i.job = j.id);

-- Whose item it is that somebody sees or holds only because they stand in for them.
create or replace function mutirao.instead_of(actor int, persons int[], j mutirao.job) returns text
language sql stable
return case
  when cardinality(persons) = 1 then null
  when j.status = 'running' and j.person is distinct from actor then (select p.name from mutirao.person p where p.id = j.person and p.id = any (persons))
  when not mutirao.is_own(actor, j) then (select p.name from mutirao.person p where p.id = any (persons) and mutirao.is_own(p.id, j) order by p.id limit 1) end;

create or replace function mutirao.item_rows(actor int, persons int[], jobs bigint[]) returns setof mutirao.item_row
language sql stable as $$
  select j.id, j.instance, (select min(k.key) from mutirao.key k where k.instance = j.instance), f.name, t.name, r.description, coalesce(r.offer ->> 'kind', 'manual'), o.name, j.status::text,
    case when j.status = 'running' then p.name end, case when j.status = 'running' and j.person = actor then j.attempt end, j.priority, coalesce(j.ready_at, j.created_at),
    j.finish_by, coalesce(j.size, 0), r.application, coalesce((r.offer -> 'disconnected')::boolean, false), coalesce(j.reserved, false), j.offered_to is not null,
    mutirao.instead_of(actor, persons, j), (select count(*) from mutirao.comment c where c.job = j.id)
  from unnest(jobs) with ordinality u(id, n) join mutirao.job j on j.id = u.id join mutirao.instance i on i.id = j.instance
  join mutirao.flow f on f.id = j.flow join mutirao.task t on t.id = j.task join mutirao.role o on o.id = j.role
  left join mutirao.rule r on r.version = i.version and r.task = j.task left join mutirao.person p on p.id = j.person
  order by u.n
$$;

-- Neither compiled nor planned anew where a plan can be kept: either would take longer than the page. What is executed from a text is always planned for its values.
create or replace function mutirao.worklist(actor int, filter jsonb default '{}', after text default null, room int default 50) returns table (item mutirao.item_row, cursor text)
language plpgsql stable security definer set jit = off set plan_cache_mode = force_generic_plan as $$
declare
  p mutirao.person := mutirao.actor(actor);
  persons int[] := mutirao.stands_for(p.id);
  f mutirao.item_filter := mutirao.read_item_filter(filter);
  from_ record := mutirao.read_cursor(f, after);
  jobs bigint[];
  keys text[];
begin
  if room not between 1 and 1000 then
    perform mutirao.refuse('wrong_call', format('a page has 1 to 1000 items: it cannot have %s', room));
  end if;
  select array_agg(w.job order by w.n), array_agg(w.key order by w.n) into jobs, keys
  from mutirao.worklist_page(p.id, persons, f, from_.key, from_.job, room) with ordinality w(job, key, n);
  return query
    select r::mutirao.item_row, mutirao.cursor_of(f, keys[array_position(jobs, r.job)], r.job) from mutirao.item_rows(p.id, persons, jobs) r;
end $$;
comment on function mutirao.worklist(int, jsonb, text, int) is
  'A page of the items that a person may do or holds. filter: {sort, descending, status, flow, task, role, instance, priority, due_before, overdue, text, attributes}; after: the cursor of the last item of the page before.';

-- $1 is the time, $3 the persons for whom one stands, $4 how many of each kind are enough.
create or replace function mutirao.own_items_sql(persons int[], enough text default '') returns text
language sql stable
return format('
  (select j.id, j.role, j.flow, j.status, j.finish_by from (select m.role, array_agg(m.person) as persons from mutirao.member m where m.person = any ($3) group by m.role) m
    join mutirao.job j on j.role = m.role where j.role is not null and j.offered_to is null and j.status = ''ready''%1$s %4$s)
  union (select j.id, j.role, j.flow, j.status, j.finish_by from unnest($3) p(id) join mutirao.job j on j.offered_to = p.id where j.offered_to is not null and j.status = ''ready''%2$s %4$s)
  union (select j.id, j.role, j.flow, j.status, j.finish_by from mutirao.invited v join mutirao.job j on j.id = v.job where v.person = any ($3) and j.role is not null and j.status = ''ready''%3$s %4$s)
  union (select j.id, j.role, j.flow, j.status, j.finish_by from mutirao.job j where j.person = any ($3) and j.person is not null and j.role is not null and j.status = ''running'' %4$s)',
  mutirao.barred_sql(persons, 'm.persons'), mutirao.barred_sql(persons, 'array[p.id]'), mutirao.barred_sql(persons, 'array[v.person]'), enough);
comment on function mutirao.own_items_sql(int[], text) is 'The query for the items that these persons may do or hold, in no order.';

create or replace function mutirao.worklist_counts(actor int) returns table (role text, flow text, ready bigint, running bigint, overdue bigint)
language plpgsql stable security definer set jit = off set plan_cache_mode = force_generic_plan as $$
declare
  p mutirao.person := mutirao.actor(actor);
  persons int[] := mutirao.stands_for(p.id);
begin
  return query execute format('
    select o.name, f.name, count(*) filter (where q.status = ''ready''), count(*) filter (where q.status = ''running''), count(*) filter (where q.finish_by < $1)
    from (%s) q join mutirao.role o on o.id = q.role join mutirao.flow f on f.id = q.flow
    group by o.name, f.name order by o.name, f.name', mutirao.own_items_sql(persons))
    using mutirao.now(), p.id, persons;
end $$;
comment on function mutirao.worklist_counts(int) is 'How many items a person may do, holds, and has let pass their deadline, by role and flow.';

create or replace function mutirao.worklist_size(actor int, enough int, out size bigint, out overdue bigint)
language plpgsql stable security definer set jit = off set plan_cache_mode = force_generic_plan as $$
declare
  p mutirao.person := mutirao.actor(actor);
  persons int[] := mutirao.stands_for(p.id);
begin
  execute format('select least(count(*), $4), case when count(*) < $4 then count(*) filter (where q.finish_by < $1) end from (%s) q', mutirao.own_items_sql(persons, 'limit $4'))
  into size, overdue using mutirao.now(), p.id, persons, enough;
end $$;
comment on function mutirao.worklist_size(int, int) is 'How many items a person may do or holds, and how many of these are overdue; where there are enough, no more are counted, and overdue is null.';

------------------------------------------------------------------------------------------------------------- the next one

-- Nobody waits for anybody: what is being taken at this moment is passed over, so of two hundred who ask at once each gets another item.
create or replace function mutirao.claim_next(actor int, filter jsonb default '{}', lock boolean default false) returns table (job bigint, attempt bigint)
language plpgsql security definer set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
  p mutirao.person := mutirao.actor(actor);
  persons int[] := mutirao.stands_for(p.id);
  f mutirao.item_filter := mutirao.read_item_filter(filter);
  c record;
  j mutirao.job;
  last_key text;
  last_job bigint;
  room int := 20;
  held int[] := mutirao.held_classes();
begin
  f.status := 'ready';
  if lock then  -- or whoever asks for what is not there would lock all that is there, one after another
    f.tasks := array(select distinct r.task from mutirao.rule r where (r.offer -> 'disconnected')::boolean and (f.tasks is null or r.task = any (f.tasks)));
  end if;
  loop
    for c in select w.job as id, w.key, x as seen from mutirao.worklist_page(p.id, persons, f, last_key, last_job, room) with ordinality w(job, key, n)
      join mutirao.job x on x.id = w.job order by w.n
    loop
      last_key := c.key;
      last_job := c.id;
      room := least(room + 1, 1000);
      -- What is seen to be kept back is not even locked: there may be thousands, and others want them.
      continue when (c.seen).class = any (held) or (c.seen).ordered and mutirao.goes_before(c.seen) is not null;
      if (c.seen).watched then  -- the instance comes before the job
        perform from mutirao.instance i where i.id = (c.seen).instance and i.hold is null for no key update skip locked;
        continue when not found;
      end if;
      select * into j from mutirao.job x where x.id = c.id and x.status = 'ready' for update skip locked;
      if found and mutirao.may_take(p.id, j) and (not lock or mutirao.is_disconnected(j)) then
        attempt := mutirao.try_item(p, j, lock);
        if attempt is not null then
          return query select j.id, attempt;
          return;
        end if;
        held := mutirao.held_classes();  -- somebody was quicker
      end if;
    end loop;
    exit when not found;
  end loop;
end $$;
comment on function mutirao.claim_next(int, jsonb, boolean) is
  'A person takes the first item of a worklist that nobody else is taking at this moment. Answers it and its attempt, or nothing where there is none.';

--------------------------------------------------------------------------------------------------------------- one in full

create or replace function mutirao.outputs_of(r mutirao.rule) returns jsonb
language sql stable
return (select coalesce(jsonb_agg(jsonb_build_object('name', a.name, 'type', a.type, 'required', a.required) order by a.position), '[]')
  from mutirao.attribute a where a.version = r.version and (r.outputs is null or a.name = any (r.outputs)));

create or replace function mutirao.item_view(
  actor int, job bigint, out item mutirao.item_row, out inputs jsonb, out outputs jsonb, out in_charge text, out reminders timestamptz[],
  out comments jsonb, out attachments jsonb, out story jsonb)
language plpgsql stable security definer as $$
#variable_conflict use_column
declare
  p mutirao.person := mutirao.actor(actor);
  j mutirao.job := mutirao.item(p.id, item_view.job);
  i mutirao.instance;
  r mutirao.rule;
begin
  select * into i from mutirao.instance x where x.id = j.instance;
  select * into r from mutirao.rule x where x.version = i.version and x.task = j.task;
  item := mutirao.item_rows(p.id, mutirao.stands_for(p.id), array[j.id]);
  inputs := mutirao.chosen(i.state, r.inputs);
  outputs := mutirao.outputs_of(r);
  in_charge := (select q.name from mutirao.charge c join mutirao.person q on q.id = c.person where c.instance = i.id);
  reminders := array(select j.finish_by - x from unnest(mutirao.reminders(j.allowed)) x where j.finish_by - x > mutirao.now() order by 1);
  comments := (select coalesce(jsonb_agg(to_jsonb(c) order by c.id), '[]') from mutirao.comments(p.id, i.id, j.id, 0, 1000) c);
  attachments := (select coalesce(jsonb_agg(to_jsonb(a) order by a.id), '[]') from mutirao.attachments(p.id, i.id, j.id, 0, 1000) a);
  story := (select coalesce(jsonb_agg(jsonb_build_object('kind', t.kind, 'writer', t.writer, 'note', t.note, 'at', t.at) order by t.id), '[]')
    from mutirao.trace t where t.instance = i.id and t.job = j.id);
end $$;
comment on function mutirao.item_view(int, bigint) is
  'One work item in full, for somebody who may see it: what it is given, what it is to write, what was said and done about it, and when reminders are to come.';
