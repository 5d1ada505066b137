-- A task that another flow does: its job starts an instance of that flow with its inputs, and ends when that instance has ended.
--
-- Parent and child are never locked together: whoever settles the one leaves a row for a clock, which then sees to the other. So
-- neither waits for the other, whatever happens to both at once.

create or replace function mutirao.check_children(flow int, version int) returns void
language plpgsql as $$
declare
  unknown text;
  circle text;
begin
  select r.child into unknown from mutirao.rule r where r.version = check_children.version and r.child is not null
    and not exists (select from mutirao.flow f where f.name = r.child) limit 1;
  if found then
    perform mutirao.refuse('unknown_flow', format('a task runs the flow "%s", which there is not: put it in place first', unknown));
  end if;
  with recursive below(id, name, path) as (
    select f.id, f.name, array[f.name] from mutirao.flow f where f.id = check_children.flow
    union all
    select f.id, f.name, b.path || f.name from below b
    join mutirao.flow p on p.id = b.id join mutirao.rule r on r.version = p.version and r.child is not null join mutirao.flow f on f.name = r.child
    where b.name <> b.path[1] or cardinality(b.path) = 1)
  select array_to_string(b.path, ' → ') into circle from below b where b.name = b.path[1] and cardinality(b.path) > 1 limit 1;
  if found then
    perform mutirao.refuse('child_circle', format('flows would start each other without end: %s', circle));
  end if;
end $$;
comment on function mutirao.check_children(int, int) is 'Refuses a version that runs a flow which is not there, or which would run it in turn.';

create or replace function mutirao.want_children(jobs bigint[]) returns void
language plpgsql as $$
begin
  insert into mutirao.child as c (job, parent, task, due_at) select j.id, j.instance, j.task, mutirao.now() from mutirao.job j where j.id = any (jobs)
  on conflict (job) do update set instance = null, status = null, cancels = false, due_at = excluded.due_at;
  if found then
    perform pg_notify('mutirao', 'clock');
  end if;
end $$;
comment on function mutirao.want_children(bigint[]) is 'Lets a clock start the instances that these jobs wait for.';

create or replace function mutirao.children_ended(instances bigint[]) returns void
language plpgsql as $$
begin
  update mutirao.child c set status = x.status, due_at = mutirao.now() from mutirao.closed x where c.instance = any (instances) and x.id = c.instance;
  if found then
    perform pg_notify('mutirao', 'clock');
  end if;
end $$;

create or replace function mutirao.cancel_children(parents bigint[]) returns void
language plpgsql as $$
begin
  delete from mutirao.child c where c.parent = any (parents) and c.instance is null;
  update mutirao.child c set cancels = true, due_at = mutirao.now() where c.parent = any (parents) and c.status is null;
  if found then
    perform pg_notify('mutirao', 'clock');
  end if;
end $$;
comment on function mutirao.cancel_children(bigint[]) is 'Lets a clock cancel the children of instances that are being cancelled.';

create or replace function mutirao.chosen(state jsonb, names text[]) returns jsonb
language sql immutable
return case when names is null then state else coalesce((select jsonb_object_agg(n, state -> n) from unnest(names) n where state ? n), '{}') end;
comment on function mutirao.chosen(jsonb, text[]) is 'Of a state, the attributes of these names; null: all.';

-- The parent is locked. What goes wrong is the failure of the job, for good: starting it once more would not help.
create or replace function mutirao.start_child(c mutirao.child) returns void
language plpgsql as $$
declare
  j mutirao.job;
  r mutirao.rule;
  i mutirao.instance;
  f mutirao.flow;
  started bigint;
  given_back bigint[];
  k mutirao.charge;
begin
  select * into i from mutirao.instance x where x.id = c.parent;
  select * into r from mutirao.rule x where x.version = i.version and x.task = c.task;
  update mutirao.job x set status = 'running', attempt = nextval('mutirao.attempt_number'), worker = 'child', lease_until = 'infinity'
  where x.id = c.job and x.status = 'ready' returning * into j;
  if j.watched then
    perform mutirao.reach(array[j.id], 'running');
  end if;
  select * into f from mutirao.flow x where x.name = r.child;
  select * into k from mutirao.charge x where x.instance = c.parent;
  begin
    started := (select * from mutirao.start_instances(r.child, array[(
        select coalesce(jsonb_object_agg(a.name, i.state -> a.name), '{}') from mutirao.attribute a
        where a.version = f.version and i.state ? a.name and (r.inputs is null or a.name = any (r.inputs)))],
      i.priority, 'mutirao', null, array[jsonb_build_object('parent', c.parent, 'job', c.job)], null, k.person));
    update mutirao.child x set instance = started, status = (select e.status from mutirao.closed e where e.id = started),
      due_at = (select mutirao.now() from mutirao.closed e where e.id = started)  -- it may have been final at once
    where x.job = c.job;
  exception when others then
    perform mutirao.finish_jobs('mutirao', array[j.id], array[j.attempt], array[null::jsonb],
      array[jsonb_build_object('code', 'child_not_started', 'error', format('its child could not be started: %s', sqlerrm), 'final', true)], null);
    update mutirao.child x set due_at = null where x.job = c.job;
  end;
end $$;

create or replace function mutirao.end_child(c mutirao.child) returns void
language plpgsql as $$
declare
  j mutirao.job;
  r mutirao.rule;
  gives jsonb;
  refused mutirao.settled;
begin
  select * into j from mutirao.job x where x.id = c.job and x.status = 'running';
  if found then
    select x.* into r from mutirao.instance i join mutirao.rule x on x.version = i.version and x.task = c.task where i.id = c.parent;
    if c.status = 'closed.completed' then
      gives := mutirao.chosen((select e.state from mutirao.closed e where e.id = c.instance), coalesce(r.outputs, array(
        select a.name from mutirao.instance i join mutirao.attribute a on a.version = i.version where i.id = c.parent)));
    end if;
    select * into refused from mutirao.finish_jobs('mutirao', array[j.id], array[j.attempt], array[gives], array[case when gives is null then
      jsonb_build_object('code', 'child_ended', 'error', format('its child, instance %s, ended %s', c.instance, c.status), 'final', true) end], null);
    if refused.kind = 'refused' then
      perform mutirao.finish_jobs('mutirao', array[j.id], array[j.attempt], array[null::jsonb], array[refused.note || '{"final": true}'], null);
    end if;
  end if;
  update mutirao.child x set due_at = null where x.job = c.job;
end $$;

create or replace function mutirao.clock_children(room int, out done int, out next_at timestamptz)
language plpgsql as $$
declare
  c mutirao.child;
  i mutirao.instance;
begin
  done := 0;
  for c in select x.* from mutirao.child x where x.due_at <= mutirao.now() order by x.due_at limit least(room, 50) for update skip locked loop
    if c.cancels and c.status is null then
      select * into i from mutirao.instance x where x.id = c.instance for no key update skip locked;
      continue when not found and exists (select from mutirao.instance x where x.id = c.instance);
      update mutirao.child x set due_at = null where x.job = c.job;
      if i.hold is distinct from 'cancelled' and i.id is not null then
        perform mutirao.cancel_instances(array[i.id], 'mutirao', format('its parent, instance %s, is cancelled', c.parent));
      end if;
    else
      select * into i from mutirao.instance x where x.id = c.parent for no key update skip locked;
      continue when not found and exists (select from mutirao.instance x where x.id = c.parent);
      if c.instance is not null then
        perform mutirao.end_child(c);
      elsif exists (select from mutirao.job j where j.id = c.job and j.status = 'ready') then
        perform mutirao.start_child(c);
      elsif exists (select from mutirao.job j where j.id = c.job) then
        update mutirao.child x set due_at = mutirao.now() + interval '5 seconds' where x.job = c.job;  -- interrupted: not now
      else
        delete from mutirao.child x where x.job = c.job;
      end if;
    end if;
    done := done + 1;
  end loop;
  next_at := (select min(x.due_at) from mutirao.child x where x.due_at is not null);
end $$;
