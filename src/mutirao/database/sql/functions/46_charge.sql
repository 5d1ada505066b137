-- The person in charge of an instance: creates it, steers it, hands it over. Each act is in the trace, with who and why.

-- The flow is named if it has begun: one that is put off is told of when its time has come.
create or replace function mutirao.put_in_charge(instances bigint[], person int, policies jsonb, begun text) returns void
language sql as $$
  insert into mutirao.charge (instance, person, policies) select i, put_in_charge.person, put_in_charge.policies from unnest(instances) i;
  insert into mutirao.participation (instance, person) select i, put_in_charge.person from unnest(instances) i;
  select mutirao.tell_started(instances, begun) where begun is not null;
$$;

create or replace function mutirao.check_policies(flow text, policies jsonb) returns void
language plpgsql as $$
declare
  bad record;
begin
  if policies is null then return; end if;
  if jsonb_typeof(policies) <> 'object' then
    perform mutirao.refuse('wrong_call', 'policies are an object of tasks and their policies, such as {"approve": {"kind": "least_loaded"}}');
  end if;
  select e.key, e.value, r.role, r.offer -> 'policy' ->> 'task' as earlier, r.offer -> 'policy' ->> 'kind' = 'not_as' as is_fixed into bad from jsonb_each(policies) e
  left join mutirao.flow f on f.name = check_policies.flow left join mutirao.task t on t.flow = f.id and t.name = e.key
  left join mutirao.rule r on r.version = f.version and r.task = t.id
  where r.role is null or r.offer -> 'policy' ->> 'kind' = 'not_as' and r.offer -> 'policy' <> e.value or coalesce(e.value ->> 'kind', '') not in ('everyone', 'least_loaded', 'round_robin', 'same_as', 'not_as')
    or (e.value ->> 'kind' in ('same_as', 'not_as')) <> exists (
      select from mutirao.rule x join mutirao.task o on o.id = x.task where x.version = f.version and o.name = e.value ->> 'task')
  limit 1;
  if found and bad.role is null then
    perform mutirao.refuse('unknown_task', format('flow "%s" has no task "%s" that people do, so there is no policy for it', flow, bad.key));
  elsif found and bad.is_fixed then
    perform mutirao.refuse('forbidden', format('task "%s" is not for whoever did "%s", and no policy chosen for one instance undoes that', bad.key, bad.earlier));
  elsif found then
    perform mutirao.refuse('wrong_call', format('task "%s": a policy is {"kind": …} with everyone, least_loaded or round_robin, or with same_as or not_as and a "task" of the flow: got %s', bad.key, left(bad.value::text, 100)));
  end if;
end $$;

create or replace function mutirao.create_instance(
  actor int, flow text, state jsonb default '{}', key text default null, policies jsonb default null, in_charge int default null,
  priority int default 0, at timestamptz default null, reason text default null) returns bigint
language plpgsql security definer as $$
declare
  p mutirao.person := mutirao.actor(actor);
  f mutirao.flow;
  charged mutirao.person := mutirao.actor(coalesce(in_charge, actor));
  made bigint;
begin
  select * into f from mutirao.flow x where x.name = create_instance.flow;
  if not found then
    perform mutirao.refuse_flow(flow);
  elsif not mutirao.may_create(p.id, f) then
    perform mutirao.refuse('forbidden', format('only %s may start flow "%s"',
      coalesce((select format('members of the role "%s"', r.name) from mutirao.role r where r.id = f.creator_role), 'administrators'), flow));
  end if;
  perform mutirao.check_policies(flow, policies);
  perform mutirao.check_files_of(p.id, f.version, null, state);
  made := (select * from mutirao.start_instances(flow, array[state], priority, mutirao.signed(p.name), case when key is not null then array[key] end,
    array[mutirao.note(reason)], at, charged.id, policies));
  -- Who starts it for somebody else has had to do with it. A key that had an instance before, or got one from somebody a moment ago, makes
  -- nobody see that: only what is new has the number that was drawn for it.
  if p.id <> charged.id and made = currval('mutirao.instance_id') then
    insert into mutirao.participation (instance, person) values (made, p.id) on conflict do nothing;
  end if;
  return made;
end $$;
comment on function mutirao.create_instance(int, text, jsonb, text, jsonb, int, int, timestamptz, text) is
  'A person starts an instance, and is in charge of it unless somebody else is named. policies: for single tasks, whom their items are offered to.';

create or replace function mutirao.hint_items(instance bigint, person int default null) returns void
language sql as $$
  select mutirao.hint(array_agg(j.person) || array_agg(j.offered_to) || hint_items.person, array_agg(j.role)) from mutirao.job j where j.instance = hint_items.instance and j.role is not null
$$;
comment on function mutirao.hint_items(bigint, int) is 'Whoever has to do with the work items of an instance is to read their list again, and so is this person.';

create or replace function mutirao.steer_instance(actor int, instance bigint, act text, change jsonb default null, reason text default null, task text default null) returns void
language plpgsql security definer as $$
declare
  p mutirao.person := mutirao.check_steer(actor, instance);
  writer text := mutirao.signed(p.name);
begin
  perform mutirao.check_given_files(p.id, instance, change);
  -- Before the act: those who lose an item are to read their lists again, too. A hint is heard when all this is committed.
  perform mutirao.hint_items(instance, p.id);
  case act
    when 'suspend' then perform mutirao.suspend_instance(instance, writer, reason);
    when 'resume' then perform mutirao.resume_instance(instance, writer, reason);
    when 'cancel' then perform mutirao.cancel_instance(instance, writer, reason);
    when 'set' then perform mutirao.set_instance(instance, change, writer, reason);
    when 'repair' then perform mutirao.repair_instance(instance, coalesce(change, '{}'), writer, reason);
    when 'roll_back' then perform mutirao.undo_instance(instance, task, writer, reason);
    when 'start_task' then perform mutirao.start_task_of(instance, task, writer, reason);
    when 'go_back' then perform mutirao.go_back_to(instance, task, writer, reason);
    else perform mutirao.refuse('wrong_call', format('an instance cannot be steered by "%s": suspend, resume, cancel, set, repair, roll_back, start_task and go_back do', act));
  end case;
end $$;
comment on function mutirao.steer_instance(int, bigint, text, jsonb, text, text) is
  'The person in charge or an administrator suspends, resumes, cancels, sets, repairs or rolls back an instance, starts a task or goes back to one. task: that one, or the safe-point.';

create or replace function mutirao.take_back(by mutirao.person, job bigint, reason text) returns void
language plpgsql as $$
declare
  j mutirao.job := mutirao.lock_job(job);
begin
  if j.role is not null and j.status = 'running' then
    perform mutirao.let_go(j, null);
    perform mutirao.tell_moved(j, by, null, reason);
  end if;
end $$;
comment on function mutirao.take_back(mutirao.person, bigint, text) is 'Takes a work item out of the hands of whoever holds it, to be ended by somebody else.';

create or replace function mutirao.steer_job(actor int, job bigint, act text, change jsonb default null, reason text default null) returns void
language plpgsql security definer as $$
declare
  p mutirao.person := mutirao.actor(actor);
  of_instance bigint := (select j.instance from mutirao.job j where j.id = steer_job.job);
begin
  perform mutirao.check_see_job(p.id, job);
  perform mutirao.check_steer(p.id, of_instance);
  perform mutirao.check_given_files(p.id, of_instance, change);
  case act
    when 'retry' then perform mutirao.retry_job(job, mutirao.signed(p.name), reason);
    when 'skip' then
      perform mutirao.take_back(p, job, reason);
      perform mutirao.skip_job(job, coalesce(change, '{}'), mutirao.signed(p.name), reason);
    else perform mutirao.refuse('wrong_call', format('a job cannot be steered by "%s": retry and skip do', act));
  end case;
end $$;
comment on function mutirao.steer_job(int, bigint, text, jsonb, text) is 'The person in charge or an administrator retries a failed job, or ends it as if it had succeeded.';

-- The instance is locked. What had become the business of the one is that of the other, unless it is not for them. Children that the one
-- was in charge of follow; a clock sees to them, since they are not locked together with their parent.
create or replace function mutirao.pass_charge(i mutirao.instance, recipient int, writer text, note jsonb) returns void
language plpgsql as $$
declare
  at timestamptz := mutirao.now();
  former int := (select c.person from mutirao.charge c where c.instance = i.id);
  administrators int := (select x.id from mutirao.role x where x.name = 'administrator');
  moved mutirao.alert[];
begin
  insert into mutirao.charge as c (instance, person) values (i.id, recipient) on conflict on constraint charge_pkey do update set person = excluded.person;
  insert into mutirao.participation (instance, person) values (i.id, recipient) on conflict do nothing;
  insert into mutirao.trace (instance, id, flow, version, kind, status, writer, note, at)
  values (i.id, nextval('mutirao.trace_id'), i.flow, i.version, 'hand_over', i.status, writer,
    jsonb_build_object('to', (select p.name from mutirao.person p where p.id = recipient)) || coalesce(note, '{}'), at);
  with late as (
    update mutirao.job j set offered_to = mutirao.heir(j), role = case when mutirao.heir(j) is null then administrators else j.role end
    where j.instance = i.id and j.transferred and j.offered_to = former returning j.id, j.offered_to, j.finish_by - at as remaining)
  select array_agg(row(l.id, null, null, null, true, l.remaining)::mutirao.alert) into moved from late l where l.offered_to is null;
  perform mutirao.tell_alerts(moved) where moved is not null;
  perform mutirao.hand_over_children(i.id, former, recipient);
  perform mutirao.hint(array[former, recipient], case when moved is not null then array[administrators] end);
end $$;
comment on function mutirao.pass_charge(mutirao.instance, int, text, jsonb) is 'Puts somebody else in charge of an instance, and of what has become the business of whoever was.';

create or replace function mutirao.hand_over(actor int, instance bigint, recipient int, reason text default null) returns void
language plpgsql security definer as $$
declare
  p mutirao.person := mutirao.check_steer(actor, instance);
  r mutirao.person := mutirao.actor(recipient);
  i mutirao.instance := mutirao.lock_instance(instance);
begin
  perform mutirao.pass_charge(i, r.id, mutirao.signed(p.name), mutirao.note(reason));
  if r.id <> p.id then
    perform mutirao.tell(array[mutirao.message_to(r.id, 'in_charge', i.id, format('You are in charge of instance %s of %s now, by "%s"%s.', i.id,
      (select f.name from mutirao.flow f where f.id = i.flow), p.name, coalesce(': ' || left(reason, 1000), '')), jsonb_build_object('by', p.name))]);
  end if;
  perform mutirao.hint(array[p.id], null);
end $$;
comment on function mutirao.hand_over(int, bigint, int, text) is 'Puts somebody else in charge of an open instance, and of its children.';

-- What others wait for when instances end: parents, and whoever is in charge. Engines without either pay two looks at empty tables.
create or replace function mutirao.note_ends(instances bigint[]) returns void
language plpgsql as $$
begin
  if exists (select from mutirao.child) then
    perform mutirao.children_ended(instances);
  end if;
  if exists (select from mutirao.stamp) then
    update mutirao.stamp s set changes = s.changes + 1 where s.instance = any (instances);
  end if;
  if exists (select from mutirao.charge) then
    update mutirao.charge c set ended = true where c.instance = any (instances);
    perform mutirao.tell_ended(instances);
  end if;
end $$;
comment on function mutirao.note_ends(bigint[]) is 'Instances have just closed: tells those who wait for it.';

create or replace function mutirao.charged_instances(actor int, is_open boolean default null, before bigint default null, room int default 50)
returns table (id bigint, flow int, version int, status mutirao.instance_status, state jsonb, reasons jsonb, started_at timestamptz, closed_at timestamptz, priority int)
language plpgsql stable security definer as $$
declare
  p mutirao.person := mutirao.actor(actor);
begin
  return query
    select i.* from unnest(mutirao.stands_for(p.id)) s(person) cross join unnest(case when is_open is null then '{false,true}' else array[not is_open] end) e(ended)
    cross join lateral (
      select x.instance from mutirao.charge x
      where x.person = s.person and x.ended = e.ended and (before is null or x.instance < before) order by x.instance desc limit least(room, 1000)) c
    cross join lateral mutirao.open_or_closed(c.instance, is_open) i
    order by c.instance desc limit least(room, 1000);
end $$;
comment on function mutirao.charged_instances(int, boolean, bigint, int) is 'The instances that a person is in charge of, or stands in for whoever is, newest first: open, closed or both, those before a number.';

create or replace function mutirao.open_or_closed(instance bigint, is_open boolean)
returns table (id bigint, flow int, version int, status mutirao.instance_status, state jsonb, reasons jsonb, started_at timestamptz, closed_at timestamptz, priority int)
language sql stable as $$
  select i.id, i.flow, i.version, i.status, i.state, i.reasons, i.started_at, null::timestamptz, i.priority from mutirao.instance i
  where i.id = open_or_closed.instance and open_or_closed.is_open is not false
  union all
  select c.id, c.flow, c.version, c.status, c.state, null, c.started_at, c.closed_at, c.priority from mutirao.closed c
  where c.id = open_or_closed.instance and open_or_closed.is_open is not true
$$;
