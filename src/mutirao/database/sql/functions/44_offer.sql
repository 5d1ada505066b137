-- Work items: jobs that people do. To which persons a job is offered when it becomes ready.
--
-- A worklist is not kept, it is looked up: an item carries its role, and is in the list of every member. Only where a policy picks one
-- person does the item carry that person too, and only what is peculiar to one person and one item has a row of its own (invited, barred).
-- So whoever joins a role or signs in later finds what is still open, and nobody has to be told of what was taken.

create or replace function mutirao.role_named(place text, name text) returns int
language plpgsql stable as $$
declare
  found_id int;
begin
  select r.id into found_id from mutirao.role r where r.name = role_named.name and r.removed_at is null;
  if not found then
    perform mutirao.refuse('unknown_role', format('%s names the role "%s", which there is not: make it first, by mutirao role add', place, name));
  end if;
  return found_id;
end $$;

create or replace function mutirao.offered_role(task text, offer jsonb) returns int
language plpgsql stable as $$
begin
  if offer is null then return null; end if;
  if jsonb_typeof(offer) <> 'object' or offer ->> 'role' is null then
    perform mutirao.refuse('flow_invalid', format('task "%s": an offer is an object with a role', task));
  end if;
  return mutirao.role_named(format('task "%s"', task), offer ->> 'role');
end $$;

create or replace function mutirao.check_offers(flow int, version int) returns void
language plpgsql as $$
declare
  r record;
begin
  for r in
    select t.name, x.offer, x.inputs, x.outputs, x.offer -> 'policy' ->> 'kind' as policy, x.offer -> 'policy' ->> 'task' as earlier
    from mutirao.rule x join mutirao.task t on t.id = x.task where x.version = check_offers.version order by x.position
  loop
    if coalesce(r.policy, 'everyone') not in ('everyone', 'least_loaded', 'round_robin', 'same_as', 'not_as') or (coalesce(r.policy, '') in ('same_as', 'not_as')) <> (r.earlier is not null) then
      perform mutirao.refuse('flow_invalid', format('task "%s": a policy is everyone, least_loaded or round_robin, or same_as or not_as with a task', r.name));
    elsif r.earlier is not null and not exists (select from mutirao.rule x join mutirao.task t on t.id = x.task where x.version = check_offers.version and t.name = r.earlier) then
      perform mutirao.refuse('unknown_task', format('task "%s": its policy names the task "%s", which the flow does not have', r.name, r.earlier));
    elsif coalesce(r.offer ->> 'kind', 'manual') not in ('manual', 'semi_automatic', 'cooperative') then
      perform mutirao.refuse('flow_invalid', format('task "%s": people do it manual, semi_automatic or cooperative', r.name));
    end if;
    perform mutirao.refuse('unknown_attribute', format('task "%s" takes or gives the attribute "%s", which the flow does not have', r.name, n))
    from unnest(r.inputs || r.outputs) n where not exists (select from mutirao.attribute a where a.version = check_offers.version and a.name = n);
  end loop;
end $$;
comment on function mutirao.check_offers(int, int) is 'Refuses a version whose offers name what is not there.';

----------------------------------------------------------------------------------------------------------------- policies

-- Who is here comes before who is not; whoever is away or disabled gets nothing. As if each item went to the one who has least, and then
-- counted: those with least are filled up to one level, so that a thousand items cost little more than one.
create or replace function mutirao.least_loaded(role int, items int) returns setof int
language sql stable as $$
  with able as materialized (
    select p.id, mutirao.is_here(p, c.at) as here from (select mutirao.now() as at) c cross join mutirao.member m join mutirao.person p on p.id = m.person
    where m.role = least_loaded.role and p.disabled_at is null and not mutirao.is_away(p, c.at)),
  chosen as materialized (
    select array(select a.id from able a where a.here or not exists (select from able x where x.here)) as ids),
  held as (
    select h.person, count(*) as load from (
      select j.person from chosen c join mutirao.job j on j.person = any (c.ids) and j.status = 'running'
      union all select j.offered_to from chosen c join mutirao.job j on j.offered_to = any (c.ids) and j.status = 'ready') h(person) group by h.person),
  loaded as (
    select c.id, coalesce(h.load, 0) as load from (select unnest(x.ids) from chosen x) c(id) left join held h on h.person = c.id),
  filled as (
    select l.id, l.load, row_number() over w as n, sum(l.load) over w as together from loaded l window w as (order by l.load, l.id rows unbounded preceding)),
  level as (
    select ceil((items + max(f.together)) / max(f.n)) as top from filled f where f.n * f.load - f.together < items)
  select f.id from filled f, level, generate_series(f.load, level.top::bigint - 1) g
  order by g, f.id limit items
$$;
comment on function mutirao.least_loaded(int, int) is 'To whom of a role so many items go, one after another, so that each has about as many. None: there is nobody.';

-- Nobody waits for anybody: a batch holds instances, and two that take turns in two tasks would wait for each other. Who finds the turns
-- of this task in somebody's hands begins anywhere, which is as even in the long run.
create or replace function mutirao.in_rotation(task int, role int, items int) returns setof int
language plpgsql as $$
declare
  is_ours boolean := pg_try_advisory_xact_lock(hashtext('mutirao.rotation'), task);
  last int := coalesce((select r.person from mutirao.rotation r where r.task = in_rotation.task), 0);
  turns int[];
begin
  turns := array(
    select p.id from mutirao.member m join mutirao.person p on p.id = m.person
    where m.role = in_rotation.role and p.disabled_at is null and not mutirao.is_away(p)
    order by p.id <= last, p.id);
  if turns = '{}' then return; end if;
  if is_ours then
    insert into mutirao.rotation as r (task, person) values (in_rotation.task, turns[(items - 1) % cardinality(turns) + 1])
    on conflict on constraint rotation_pkey do update set person = excluded.person;
  else
    turns := turns[1 + floor(random() * cardinality(turns))::int :] || turns;
  end if;
  return query select turns[n % cardinality(turns) + 1] from generate_series(0, items - 1) n;
end $$;
comment on function mutirao.in_rotation(int, int, int) is 'To whom of a role the next so many items of a task go, each in turn. None: there is nobody.';

create or replace function mutirao.doers(instance bigint, flow int, task text) returns int[]
language sql stable
return array(select p.person from mutirao.participation p join mutirao.task t on t.id = p.task
  where p.instance = doers.instance and t.flow = doers.flow and t.name = doers.task and p.did_at is not null order by p.did_at desc);
comment on function mutirao.doers(bigint, int, text) is 'Who did a task of an instance, the last one first. It may have fired more than once.';

create or replace function mutirao.able(person int) returns int
language sql stable
return (select case when mutirao.is_away(p) then (select s.id from mutirao.person s where s.id = p.substitute and s.disabled_at is null and not mutirao.is_away(s)) else p.id end
  from mutirao.person p where p.id = able.person and p.disabled_at is null);
comment on function mutirao.able(int) is 'The person, or the substitute of one who is away; null: nobody can.';

create or replace function mutirao.pick(items bigint[], task int, role int, policy jsonb) returns int[]
language sql as $$
  select case policy ->> 'kind'
    when 'least_loaded' then array(select mutirao.least_loaded(role, cardinality(items)))
    when 'round_robin' then array(select mutirao.in_rotation(task, role, cardinality(items)))
    when 'same_as' then array(
      select mutirao.able((mutirao.doers(j.instance, j.flow, policy ->> 'task'))[1]) from unnest(items) with ordinality u(id, n) join mutirao.job j on j.id = u.id order by u.n)
    else '{}' end
$$;
comment on function mutirao.pick(bigint[], int, int, jsonb) is 'The one person whom a policy offers each of these items of a task to. Null or none: the whole role, also where there is nobody to pick.';

-- Four eyes are for good: what is chosen for one instance does not undo them, nor does a version that it comes to later.
create or replace function mutirao.policy_in(offer jsonb, policies jsonb, task text) returns jsonb
language sql immutable
return case when offer -> 'policy' ->> 'kind' = 'not_as' then offer -> 'policy' else coalesce(policies -> task, offer -> 'policy') end;
comment on function mutirao.policy_in(jsonb, jsonb, text) is 'Whom the items of a task are offered to, by its flow and by what was chosen for one instance.';

create or replace function mutirao.policy_of(j mutirao.job) returns jsonb
language sql stable
return (select mutirao.policy_in(r.offer, c.policies, t.name)
  from mutirao.instance i join mutirao.rule r on r.version = i.version and r.task = j.task join mutirao.task t on t.id = j.task
  left join mutirao.charge c on c.instance = i.id where i.id = j.instance);

create or replace function mutirao.bar_whoever_did(items bigint[], task text) returns void
language sql as $$
  insert into mutirao.barred (person, job)
  select w.person, w.id from (select j.id, unnest(mutirao.doers(j.instance, j.flow, bar_whoever_did.task)) as person from mutirao.job j where j.id = any (items)) w
  where not exists (select from mutirao.invited v where v.person = w.person and v.job = w.id and v.regardless) on conflict do nothing
$$;

create or replace function mutirao.bar_on_principle(instances bigint[]) returns void
language sql as $$
  select mutirao.bar_whoever_did(array_agg(x.id), x.policy ->> 'task')
  from (select j.id, mutirao.policy_of(j) as policy from mutirao.job j where j.instance = any (instances) and j.role is not null) x
  where x.policy ->> 'kind' = 'not_as' group by x.policy ->> 'task'
$$;
comment on function mutirao.bar_on_principle(bigint[]) is 'Takes open items out of the lists of those who did, by now, the task that excludes them.';

-- Jobs for people have just become ready. Their instances are locked.
--
-- Items of one task go together, so what is the same for all of them is worked out once, and no join can be planned badly.
create or replace function mutirao.offer_items(jobs bigint[]) returns void
language plpgsql as $$
declare
  at timestamptz := mutirao.now();
  alike record;
  given text[];
  files text[];
  chosen int[];
  told int[] := '{}';
  roles int[] := '{}';
begin
  if jobs = '{}' then return; end if;
  for alike in
    select r.version, r.task, r.role, r.deadline, at + r.deadline as finish_by, r.inputs,
      mutirao.policy_in(r.offer, c.policies, t.name) as policy,
      array_agg(j.id order by j.id) as items, mutirao.next_alert(at, at + r.deadline) as alert_at
    from mutirao.job j join mutirao.instance i on i.id = j.instance join mutirao.rule r on r.version = i.version and r.task = j.task
    join mutirao.task t on t.id = j.task left join mutirao.charge c on c.instance = i.id
    where j.id = any (jobs) group by r.version, r.task, policy order by r.task, r.version, policy
  loop
    select array_agg(a.name) filter (where a.type <> 'file'), array_agg(a.name) filter (where a.type = 'file') into given, files
    from mutirao.attribute a where a.version = alike.version and (alike.inputs is null or a.name = any (alike.inputs));
    chosen := mutirao.pick(alike.items, alike.task, alike.role, alike.policy);
    update mutirao.job j set person = null, offered_to = u.person, reserved = null, transferred = null, role = alike.role, finish_by = alike.finish_by, allowed = alike.deadline,
      alert_at = alike.alert_at, size = mutirao.data_size(i.state, given, files)
    from unnest(alike.items, chosen) u(id, person), mutirao.instance i where j.id = u.id and i.id = j.instance;
    if alike.policy ->> 'kind' = 'not_as' then
      perform mutirao.bar_whoever_did(alike.items, alike.policy ->> 'task');
    end if;
    told := told || chosen;
    if chosen = '{}' or array_position(chosen, null) is not null then
      roles := roles || alike.role;
    end if;
  end loop;
  if told <> '{}' then
    perform mutirao.tell_offered(jobs);
  end if;
  perform mutirao.hint(told, roles);
end $$;
comment on function mutirao.offer_items(bigint[]) is 'Offers work items that have just become ready: to whom, until when, and how large they are.';

-- A hint to whoever watches a worklist: read it again. One a batch, and nothing hangs on its being heard.
create or replace function mutirao.hint(persons int[], roles int[]) returns void
language sql as $$
  select pg_notify('mutirao_people', case when count(*) > 500 then '*' else string_agg(h.who, ',') end)
  from (select 'p' || p as who from unnest(persons) p where p is not null union select 'r' || r from unnest(roles) r) h
  having count(*) > 0
$$;
comment on function mutirao.hint(int[], int[]) is 'Tells the servers whose worklists and messages have changed: p<person> and r<role>, or * for all.';

-- Files count with their content, everything else with its text.
create or replace function mutirao.data_size(state jsonb, given text[], files text[]) returns bigint
language sql immutable
return coalesce((select sum(octet_length(state ->> n)) from unnest(given) n), 0)
  + case when files is null then 0 else coalesce((select sum((state -> n ->> 'size')::bigint) from unnest(files) n), 0) end;
comment on function mutirao.data_size(jsonb, text[], text[]) is 'The bytes of what whoever does a job is given, in these attributes and files.';
