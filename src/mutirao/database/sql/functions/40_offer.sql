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

-- Who is here comes before who is not; whoever is away or disabled gets nothing.
create or replace function mutirao.least_loaded(role int) returns int
language sql stable
return (select p.id from mutirao.member m join mutirao.person p on p.id = m.person
  where m.role = least_loaded.role and p.disabled_at is null and not mutirao.is_away(p)
  order by not mutirao.is_here(p), mutirao.load_of(p.id), p.id limit 1);

-- Whoever offers an item of this task at the same time waits here for the other, and then goes one further.
create or replace function mutirao.next_in_rotation(task int, role int) returns int
language plpgsql as $$
declare
  last int;
  chosen int;
begin
  insert into mutirao.rotation (task, person) values (task, 0) on conflict do nothing;
  select r.person into last from mutirao.rotation r where r.task = next_in_rotation.task for update;
  select p.id into chosen from mutirao.member m join mutirao.person p on p.id = m.person
  where m.role = next_in_rotation.role and p.disabled_at is null and not mutirao.is_away(p)
  order by p.id <= last, p.id limit 1;
  update mutirao.rotation r set person = coalesce(chosen, last) where r.task = next_in_rotation.task;
  return chosen;
end $$;

create or replace function mutirao.who_did(instance bigint, flow int, task text) returns int
language sql stable
return (select p.person from mutirao.participation p join mutirao.task t on t.id = p.task
  where p.instance = who_did.instance and t.flow = who_did.flow and t.name = who_did.task and p.did_at is not null order by p.did_at desc limit 1);

create or replace function mutirao.able(person int) returns int
language sql stable
return (select case when mutirao.is_away(p) then (select s.id from mutirao.person s where s.id = p.substitute and s.disabled_at is null and not mutirao.is_away(s)) else p.id end
  from mutirao.person p where p.id = able.person and p.disabled_at is null);
comment on function mutirao.able(int) is 'The person, or the substitute of one who is away; null: nobody can.';

-- One item after another: the second of a batch goes to somebody else than the first, once that has it.
create or replace function mutirao.apply_policy(item bigint, policy jsonb) returns int
language plpgsql as $$
declare
  j mutirao.job;
  earlier int;
  chosen int;
begin
  select * into strict j from mutirao.job x where x.id = item;
  case policy ->> 'kind'
    when 'least_loaded' then chosen := mutirao.least_loaded(j.role);
    when 'round_robin' then chosen := mutirao.next_in_rotation(j.task, j.role);
    when 'same_as' then chosen := mutirao.able(mutirao.who_did(j.instance, j.flow, policy ->> 'task'));
    when 'not_as' then
      earlier := mutirao.who_did(j.instance, j.flow, policy ->> 'task');
      insert into mutirao.barred (person, job) select earlier, item where earlier is not null on conflict do nothing;
    else null;
  end case;
  update mutirao.job x set offered_to = chosen where x.id = item and chosen is not null;
  return chosen;
end $$;
comment on function mutirao.apply_policy(bigint, jsonb) is 'Picks the one person whom a policy offers an item to. Null: the whole role is, also where there is nobody to pick.';

-- Jobs for people have just become ready. Their instances are locked.
create or replace function mutirao.offer_items(jobs bigint[]) returns void
language plpgsql as $$
declare
  at timestamptz := mutirao.now();
  picky record;
  told int[] := '{}';
  roles int[];
begin
  if jobs = '{}' then return; end if;
  update mutirao.job j set person = null, offered_to = null, reserved = null, transferred = null, role = r.role,
    finish_by = at + r.deadline, allowed = r.deadline, alert_at = mutirao.next_alert(at, at + r.deadline), size = mutirao.data_size(i.state, r)
  from mutirao.instance i join mutirao.rule r on r.version = i.version
  where j.id = any (jobs) and i.id = j.instance and r.task = j.task;
  for picky in
    select j.id, coalesce(c.policies -> t.name, r.offer -> 'policy') as policy
    from mutirao.job j join mutirao.instance i on i.id = j.instance join mutirao.rule r on r.version = i.version and r.task = j.task
    join mutirao.task t on t.id = j.task left join mutirao.charge c on c.instance = i.id
    where j.id = any (jobs) and coalesce(c.policies -> t.name, r.offer -> 'policy') ->> 'kind' <> 'everyone' order by j.id
  loop
    told := told || mutirao.apply_policy(picky.id, picky.policy);
  end loop;
  if told <> '{}' then
    perform mutirao.tell_offered(jobs);
  end if;
  select array_agg(distinct j.role) into roles from mutirao.job j where j.id = any (jobs) and j.offered_to is null;
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
create or replace function mutirao.data_size(state jsonb, r mutirao.rule) returns bigint
language sql stable
return (select coalesce(sum(case a.type when 'file' then coalesce((state -> a.name ->> 'size')::bigint, 0) else octet_length(state ->> a.name) end), 0)
  from mutirao.attribute a where a.version = r.version and (r.inputs is null or a.name = any (r.inputs)) and jsonb_typeof(state -> a.name) <> 'null');
comment on function mutirao.data_size(jsonb, mutirao.rule) is 'The bytes of what whoever does a job is given.';
