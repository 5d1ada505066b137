-- A task that another flow does: its job starts an instance of that flow with its inputs, and ends when that instance has ended.
--
-- Parent and child are never locked together: whoever settles the one leaves a row for a clock, which then sees to the other. So
-- neither waits for the other, whatever happens to both at once. A row is locked after one of its instances, never before; rows that are
-- written together are locked in the order of their jobs.
--
-- Whatever a clock does about a child it does in one transaction: the job runs, the instance starts and the row tells of it, or none of that.

create or replace function mutirao.check_children(flow int, version int) returns void
language plpgsql as $$
declare
  bad record;
  circle text;
begin
  select t.name, r.child, r.wait, f.id as known into bad from mutirao.rule r join mutirao.task t on t.id = r.task left join mutirao.flow f on f.name = r.child
  where r.version = check_children.version and r.child is not null and (f.id is null or r.wait is not null) limit 1;
  if found and bad.known is null then
    perform mutirao.refuse('unknown_flow', format('task "%s" runs the flow "%s", which there is not: put it in place first', bad.name, bad.child));
  elsif found then
    perform mutirao.refuse('flow_invalid', format('task "%s" runs the flow "%s" and waits for "%s": let a task before it wait', bad.name, bad.child, bad.wait));
  end if;
  if not exists (select from mutirao.rule r where r.version = check_children.version and r.child is not null) then return; end if;
  -- Two flows that each become the other's child at the same time are looked at one after the other.
  perform pg_advisory_xact_lock(hashtextextended('mutirao.child', 0));
  with recursive below(id, first) as (
    select f.id, f.name from mutirao.rule r join mutirao.flow f on f.name = r.child where r.version = check_children.version
    union
    select f.id, b.first from below b join mutirao.flow p on p.id = b.id
    join mutirao.rule r on r.version = p.version and r.child is not null join mutirao.flow f on f.name = r.child)
  select b.first into circle from below b where b.id = check_children.flow limit 1;
  if found then
    perform mutirao.refuse('child_circle', format('flow "%s" would start itself without end, by way of its child "%s"', (select f.name from mutirao.flow f where f.id = check_children.flow), circle));
  end if;
end $$;
comment on function mutirao.check_children(int, int) is 'Refuses a version that runs a flow which is not there, or which would run it in turn.';

create or replace function mutirao.want_children(jobs bigint[]) returns void
language plpgsql as $$
begin
  insert into mutirao.child as c (job, parent, task, due_at) select j.id, j.instance, j.task, mutirao.now() from mutirao.job j
  where j.id = any (jobs) and not exists (select from mutirao.child u where u.undone_by = j.id)
  on conflict (job) do update set instance = null, status = null, wants = null, in_charge = null, rests = false, undone_by = null, due_at = excluded.due_at;
  with again as (
    update mutirao.job j set status = 'running', attempt = nextval('mutirao.attempt_number'), worker = 'child', lease_until = 'infinity'
    where j.id = any (jobs) and j.status = 'ready' and exists (select from mutirao.child u where u.undone_by = j.id) returning j.id)
  update mutirao.child c set wants = 'undo', due_at = mutirao.now() from again a where c.undone_by = a.id;
  if jobs <> '{}' then
    perform pg_notify('mutirao', 'clock');
  end if;
end $$;
comment on function mutirao.want_children(bigint[]) is 'Lets a clock start the instances that these jobs wait for; or undo them, if that is what these jobs do.';

create or replace function mutirao.is_childs(j mutirao.job) returns boolean
language sql stable
return exists (select from mutirao.instance i join mutirao.rule r on r.version = i.version and r.task = j.task where i.id = j.instance and r.child is not null);
comment on function mutirao.is_childs(mutirao.job) is 'Whether another instance does this job, by the version that its own instance has.';

-- Their instances are locked, and have come to another version or go on after a rest.
create or replace function mutirao.hand_out(instances bigint[]) returns void
language plpgsql as $$
declare
  wanted bigint[];
begin
  perform mutirao.offer_items(array(select j.id from mutirao.job j where j.instance = any (instances) and j.status = 'ready' and j.role is not null and j.size is null));
  delete from mutirao.child c using mutirao.job j where c.parent = any (instances) and c.instance is null and j.id = c.job and not mutirao.is_childs(j);
  wanted := array(select j.id from mutirao.job j where j.instance = any (instances) and j.by_clock and j.status in ('ready', 'held')
    and mutirao.is_childs(j) and not exists (select from mutirao.child c where c.job = j.id));
  if wanted <> '{}' then
    perform mutirao.want_children(wanted);
  end if;
end $$;
comment on function mutirao.hand_out(bigint[]) is 'Sees to jobs that people or other instances do and that nobody has been asked to do yet.';

create or replace function mutirao.children_ended(instances bigint[]) returns void
language plpgsql as $$
begin
  perform from mutirao.child c where c.instance = any (instances) order by c.job for update;
  update mutirao.child c set status = x.status, due_at = mutirao.now() from mutirao.closed x where c.instance = any (instances) and x.id = c.instance;
  if found then
    perform pg_notify('mutirao', 'clock');
  end if;
end $$;

create or replace function mutirao.steer_children(parents bigint[], act text) returns void
language plpgsql as $$
begin
  if not exists (select from mutirao.child) then return; end if;
  perform from mutirao.child c where c.parent = any (parents) order by c.job for update;
  if act = 'cancel' then
    delete from mutirao.child c where c.parent = any (parents) and c.instance is null;
  elsif act = 'resume' then
    update mutirao.child c set due_at = mutirao.now() where c.parent = any (parents) and c.instance is null and c.due_at is null
      and exists (select from mutirao.job j where j.id = c.job and j.status = 'ready');
  end if;
  -- What is to be undone will be, unless the parent is stopped; see undo_child.
  update mutirao.child c set wants = case when c.wants = 'undo' and act <> 'cancel' then c.wants when c.status is null then act end, due_at = mutirao.now()
  where c.parent = any (parents) and c.instance is not null and (c.status is null or c.wants = 'undo');
  perform pg_notify('mutirao', 'clock');
end $$;
comment on function mutirao.steer_children(bigint[], text) is 'Lets a clock do to the children what is being done to their parents: cancel, suspend, resume. Those that were not started are now, or never.';

-- A child that was handed over on its own stays with whoever has it.
create or replace function mutirao.hand_over_children(parent bigint, former int, recipient int) returns void
language plpgsql as $$
begin
  perform from mutirao.child c where c.parent = hand_over_children.parent order by c.job for update;
  update mutirao.child c set in_charge = recipient, due_at = mutirao.now()
  where c.parent = hand_over_children.parent and c.instance is not null and c.status is null
    and coalesce(c.in_charge, (select k.person from mutirao.charge k where k.instance = c.instance)) is not distinct from former;
  if found then
    perform pg_notify('mutirao', 'clock');
  end if;
end $$;

create or replace function mutirao.chosen(state jsonb, names text[]) returns jsonb
language sql immutable
return case when names is null then state else coalesce((select jsonb_object_agg(n, state -> n) from unnest(names) n where state ? n), '{}') end;
comment on function mutirao.chosen(jsonb, text[]) is 'Of a state, the attributes of these names; null: all.';

-- Whether it may go otherwise a moment later: somebody was in the way, or the server had no room.
create or replace function mutirao.is_passing(sqlstate text) returns boolean
language sql immutable
return left(sqlstate, 2) in ('08', '40', '53', '55', '57', '58');

-- The parent is locked. Whoever is in charge of it is in charge of the child, and hears of it only when there is something to do.
create or replace function mutirao.start_child(c mutirao.child) returns void
language plpgsql as $$
declare
  j mutirao.job;
  r mutirao.rule;
  i mutirao.instance;
  f mutirao.flow;
  started bigint;
begin
  select * into i from mutirao.instance x where x.id = c.parent;
  select * into r from mutirao.rule x where x.version = i.version and x.task = c.task;
  select * into f from mutirao.flow x where x.name = r.child;
  update mutirao.job x set status = 'running', attempt = nextval('mutirao.attempt_number'), worker = 'child', lease_until = 'infinity'
  where x.id = c.job returning * into j;
  if j.watched then
    perform mutirao.reach(array[j.id], 'running');
  end if;
  begin
    started := (select * from mutirao.start_instances(r.child, array[(
        select coalesce(jsonb_object_agg(a.name, i.state -> a.name), '{}') from mutirao.attribute a
        where a.version = f.version and i.state ? a.name and (r.inputs is null or a.name = any (r.inputs)))],
      i.priority, 'mutirao', null, array[jsonb_build_object('parent', c.parent, 'job', c.job)]));
    perform mutirao.put_in_charge(array[started], k.person, null, null) from mutirao.charge k where k.instance = c.parent;
    update mutirao.child x set instance = started, status = (select e.status from mutirao.closed e where e.id = started),
      due_at = (select mutirao.now() from mutirao.closed e where e.id = started)  -- it may have been final at once
    where x.job = c.job;
  exception when others then
    if mutirao.is_passing(sqlstate) then raise; end if;
    -- For good: starting it once more would not help.
    update mutirao.child x set due_at = null where x.job = c.job;
    perform mutirao.finish_jobs('mutirao', array[j.id], array[j.attempt], array[null::jsonb],
      array[jsonb_build_object('code', 'child_not_started', 'error', format('its child could not be started: %s', sqlerrm), 'final', true)], null);
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
  update mutirao.child x set due_at = null where x.job = c.job;
  if c.undone_by is not null then
    select * into j from mutirao.job x where x.id = c.undone_by and x.status = 'running';
    perform mutirao.finish_jobs('mutirao', array[j.id], array[j.attempt], array['{}'::jsonb], array[case when c.status is distinct from 'closed.terminated' then
      jsonb_build_object('code', 'child_not_undone', 'error', format('its child, instance %s, was not undone', c.instance), 'final', true) end], null) where found;
    return;
  end if;
  select * into j from mutirao.job x where x.id = c.job and x.status = 'running';
  if not found then return; end if;
  select x.* into r from mutirao.instance i join mutirao.rule x on x.version = i.version and x.task = c.task where i.id = c.parent;
  if c.status = 'closed.completed' then
    gives := mutirao.chosen((select e.state from mutirao.closed e where e.id = c.instance), coalesce(r.outputs, array(
      select a.name from mutirao.instance i join mutirao.attribute a on a.version = i.version where i.id = c.parent)));
  end if;
  select * into refused from mutirao.finish_jobs('mutirao', array[j.id], array[j.attempt], array[gives], array[case when gives is null then
    jsonb_build_object('code', 'child_ended', 'error', format('its child, instance %s, was %s', c.instance, mutirao.end_words(c.status)), 'final', true) end], null);
  if refused.kind = 'refused' then
    perform mutirao.finish_jobs('mutirao', array[j.id], array[j.attempt], array[null::jsonb], array[refused.note || '{"final": true}'], null);
  end if;
end $$;

-- Its parent is locked, or is no more.
create or replace function mutirao.step_child(c mutirao.child) returns void
language plpgsql as $$
declare
  at timestamptz := mutirao.now();
  j mutirao.job;
begin
  -- A forced one is tried again: after a pause, and if it passes the gate.
  update mutirao.job x set status = 'ready', due_at = null, ready_at = at where x.id = c.job and x.status = 'waiting' and x.due_at <= at;
  select * into j from mutirao.job x where x.id = c.job;
  if c.instance is not null then
    perform mutirao.end_child(c);
  elsif j.status = 'ready' then
    perform mutirao.start_child(c);
  elsif j.id is not null then
    -- Synchronizing, or in a pause: it is looked at again. Interrupted: when it is resumed.
    update mutirao.child x set due_at = case when j.gate is not null then at + interval '1 second' else j.due_at end where x.job = c.job;
  else
    delete from mutirao.child x where x.job = c.job;
  end if;
end $$;

-- The child is locked. One that somebody interrupted on its own is not resumed with its parent.
create or replace function mutirao.follow_parent(c mutirao.child) returns void
language plpgsql as $$
declare
  i mutirao.instance;
  is_held boolean;
begin
  select * into i from mutirao.instance x where x.id = c.instance;
  if c.in_charge is not null then
    update mutirao.child x set due_at = case when c.wants is not null then x.due_at end, in_charge = null where x.job = c.job;
    perform mutirao.pass_charge(i, c.in_charge, 'mutirao', mutirao.note(format('its parent, instance %s, was handed over', c.parent))) where i.id is not null;
  end if;
  if c.wants is null then return; end if;
  if c.wants = 'undo' then
    perform mutirao.undo_child(c);
    return;
  end if;
  is_held := i.hold = 'suspended';
  update mutirao.child x set due_at = null, wants = null, rests = c.wants = 'suspend' and is_held is not true where x.job = c.job;
  if i.id is null or i.hold = 'cancelled' or c.wants = 'resume' and not (c.rests and is_held) or c.wants = 'suspend' and is_held then return; end if;
  perform mutirao.hint_items(i.id);
  if c.wants = 'cancel' then
    perform mutirao.cancel_instances(array[i.id], 'mutirao', format('its parent, instance %s, was cancelled', c.parent));
  else
    perform mutirao.hold_instances(array[i.id], c.wants, 'mutirao', format('its parent, instance %s, was %s', c.parent, case c.wants when 'suspend' then 'interrupted' else 'resumed' end));
  end if;
end $$;

create or replace function mutirao.follows(c mutirao.child) returns boolean
language sql immutable
return coalesce(c.wants = 'undo', false) or coalesce(c.wants, c.in_charge::text) is not null and c.status is null;
comment on function mutirao.follows(mutirao.child) is 'Whether something is to be done to the child, and not to its parent.';

-- One child after another: first the instance that is to be written, then the row, if it is still due.
create or replace function mutirao.clock_children(room int, out done int, out next_at timestamptz)
language plpgsql as $$
declare
  at timestamptz := mutirao.now();
  c mutirao.child;
  follows boolean;
  subject bigint;
begin
  done := 0;
  for c in select x.* from mutirao.child x where x.due_at <= at order by x.due_at, x.job limit least(room, 50) loop
    follows := mutirao.follows(c);
    subject := case when follows then c.instance else c.parent end;
    perform from mutirao.instance i where i.id = subject for no key update skip locked;
    continue when not found and exists (select from mutirao.instance i where i.id = subject);
    select * into c from mutirao.child x where x.job = c.job and x.due_at <= at for update skip locked;
    continue when not found or follows <> mutirao.follows(c);
    if follows then
      perform mutirao.follow_parent(c);
    else
      perform mutirao.step_child(c);
    end if;
    done := done + 1;
  end loop;
  next_at := (select min(x.due_at) from mutirao.child x where x.due_at is not null);
end $$;
comment on function mutirao.clock_children(int) is 'Starts the instances that jobs wait for, ends the jobs when these have ended, and does to them what is done to their parents.';
