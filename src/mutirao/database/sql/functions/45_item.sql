-- What persons do with work items: select, lock, return, finish, delegate, and put into or take out of somebody's list.
--
-- Selecting is a claim: it locks the job and not its instance, unless somebody waits for it to run. So of two hundred who go for one
-- item, one gets it and the others are told as soon as that is committed. An attempt number fences as it does for workers: whose item was
-- moved to somebody else cannot finish it any more, and what they bring is kept as an attachment.

create or replace function mutirao.item(actor int, job bigint) returns mutirao.job
language plpgsql stable as $$
declare
  j mutirao.job;
  finished_at timestamptz;
begin
  select * into j from mutirao.job x where x.id = item.job;
  if not found then
    select k.did_at into finished_at from mutirao.participation k where k.job = item.job and k.person = item.actor and k.did = k.attempt;
    if found then
      perform mutirao.refuse('item_finished', format('you have finished work item %s already, at %s', job, to_char(finished_at, 'YYYY-MM-DD HH24:MI:SS TZ')));
    end if;
  end if;
  if j.id is null or j.role is null and not mutirao.may_see(actor, j.instance)
    or j.role is not null and j.person is distinct from actor and not mutirao.may_do(actor, j) and not mutirao.may_see(actor, j.instance)
  then
    perform mutirao.refuse('unknown_job', format('there is no work item %s; it may have ended', job));
  elsif j.role is null then
    perform mutirao.refuse('not_an_item', format('job %s is not for people: programs do it', job));
  end if;
  return j;
end $$;
comment on function mutirao.item(int, bigint) is 'A work item, for somebody who may know of it.';

create or replace function mutirao.note_item(j mutirao.job, kind text, writer text, note jsonb default null) returns void
language sql as $$
  insert into mutirao.trace (instance, id, flow, version, kind, job, task, attempt, cause, status, writer, note, at)
  select i.id, nextval('mutirao.trace_id'), i.flow, i.version, note_item.kind, j.id, j.task, j.attempt, j.cause, i.status, note_item.writer, note_item.note, mutirao.now()
  from mutirao.instance i where i.id = j.instance
$$;
comment on function mutirao.note_item(mutirao.job, text, text, jsonb) is 'Writes into the trace what somebody did with a work item.';

create or replace function mutirao.refuse_item(j mutirao.job, job bigint) returns void
language plpgsql as $$
declare
  i mutirao.instance;
begin
  if j.id is null then
    perform mutirao.refuse('unknown_job', format('work item %s has ended, or its instance was cancelled', job));
  elsif j.status = 'running' then
    perform mutirao.refuse('item_taken', format('"%s" holds work item %s', (select p.name from mutirao.person p where p.id = j.person), j.id));
  end if;
  select * into i from mutirao.instance x where x.id = j.instance;
  if i.hold = 'suspended' then
    perform mutirao.refuse('instance_suspended', format('instance %s is interrupted: its work items can be done when it is resumed', i.id));
  end if;
  perform mutirao.refuse('item_not_ready', format('work item %s is %s: it cannot be done at present', j.id, j.status));
end $$;
comment on function mutirao.refuse_item(mutirao.job, bigint) is 'Says why nobody can take this work item now; without a row, that it has ended.';

create or replace function mutirao.is_disconnected(j mutirao.job) returns boolean
language sql stable
return coalesce((select (r.offer -> 'disconnected')::boolean from mutirao.instance i join mutirao.rule r on r.version = i.version and r.task = j.task where i.id = j.instance), false);
comment on function mutirao.is_disconnected(mutirao.job) is 'Whether a work item may be done away from the engine.';

-- Or a person in charge could let themselves approve what they asked for. Who holds the other item is as good as done with it.
create or replace function mutirao.is_barred_by_policy(person int, j mutirao.job) returns boolean
language sql stable
return exists (
  select from (select mutirao.policy_of(j) as policy offset 0) p join mutirao.task t on t.flow = j.flow and t.name = p.policy ->> 'task'
  where p.policy ->> 'kind' = 'not_as'
    and (exists (select from mutirao.participation k where k.instance = j.instance and k.task = t.id and k.person = is_barred_by_policy.person and k.did_at is not null)
      or exists (select from mutirao.job h where h.instance = j.instance and h.task = t.id and h.person = is_barred_by_policy.person and h.status = 'running'))
    and not exists (select from mutirao.invited v where v.person = is_barred_by_policy.person and v.job = j.id and v.regardless));
comment on function mutirao.is_barred_by_policy(int, mutirao.job) is 'Whether this person does or did the task whose doers may not do this one, and no administrator has allowed it.';

create or replace function mutirao.may_take(person int, j mutirao.job) returns boolean
language sql stable
return mutirao.may_do(person, j) and not mutirao.is_barred_by_policy(person, j);
comment on function mutirao.may_take(int, mutirao.job) is 'Whether this person may take the item now. A worklist asks less: it shows what somebody may not do only because they hold the other item.';

-- The item is locked, so whoever delegated it or took it out of a list meanwhile is heard.
create or replace function mutirao.check_take(p mutirao.person, j mutirao.job, lock boolean) returns void
language plpgsql as $$
begin
  if j.status = 'ready' and not mutirao.may_take(p.id, j) then
    perform mutirao.refuse('forbidden', format('work item %s is not for you: %s', j.id, case
      when mutirao.is_barred_by_policy(p.id, j) then format('whoever did "%s" may not do it, and you %s', mutirao.policy_of(j) ->> 'task',
        case when p.id = any (mutirao.doers(j.instance, j.flow, mutirao.policy_of(j) ->> 'task')) then 'did' else 'hold it' end)
      when exists (select from mutirao.barred b where b.person = p.id and b.job = j.id) then 'it was taken out of your list'
      when j.offered_to is not null then format('it is offered to "%s" alone', (select x.name from mutirao.person x where x.id = j.offered_to))
      else format('it is for the role "%s"', (select r.name from mutirao.role r where r.id = j.role)) end));
  elsif lock and not mutirao.is_disconnected(j) then
    perform mutirao.refuse('not_disconnected', format('work item %s may not be done away from the engine: its task does not allow it', j.id));
  end if;
end $$;

-- The item is locked, and ready or theirs already.
create or replace function mutirao.take_item(p mutirao.person, j mutirao.job, lock boolean) returns bigint
language plpgsql as $$
begin
  update mutirao.job x set status = 'running', due_at = null, person = p.id, reserved = nullif(take_item.lock, false), worker = p.name,
    lease_until = case when x.status = 'running' then x.lease_until else coalesce(mutirao.now() + x.timeout, 'infinity') end,
    attempt = case when x.status = 'running' then x.attempt else nextval('mutirao.attempt_number') end
  where x.id = j.id returning * into j;
  insert into mutirao.participation as k (instance, task, person, job, attempt) values (j.instance, j.task, p.id, j.id, j.attempt)
  on conflict on constraint participation_pkey do update set attempt = excluded.attempt;
  perform mutirao.note_item(j, case when lock then 'lock' else 'select' end, mutirao.signed(p.name));
  perform mutirao.hint(array[p.id, j.offered_to], array[j.role]);
  if j.watched then
    perform mutirao.reach(array[j.id], 'running');
  end if;
  return j.attempt;
end $$;

create or replace function mutirao.held_classes() returns int[]
language sql stable
return array(select mine.id from mutirao.class mine where exists (select from mutirao.job x where x.class = any (mine.conflicts) and x.gate = 'holds'));
comment on function mutirao.held_classes() is 'The classes whose jobs have to wait at present.';

-- The item is taken. Whoever calls this waits for no other lock afterwards.
create or replace function mutirao.take_gate(j mutirao.job) returns void
language plpgsql as $$
declare
  why text;
begin
  if j.class is null and j.ordered is not true or j.status = 'running' then return; end if;
  perform mutirao.lock_gate();
  why := (mutirao.kept_back(j)).says;
  if why is not null then
    perform mutirao.refuse('class_held', format('work item %s cannot be done at present: %s', j.id, why));
  elsif j.ordered then
    perform mutirao.take_stamp(j);
  end if;
end $$;
comment on function mutirao.take_gate(mutirao.job) is 'A work item is being taken: it has its class until the transaction ends, or is refused.';

-- Of a worklist, one after another: what is kept back is as it was.
create or replace function mutirao.try_item(p mutirao.person, j mutirao.job, lock boolean) returns bigint
language plpgsql as $$
declare
  attempt bigint;
begin
  if j.class is null and j.ordered is not true then
    return mutirao.take_item(p, j, lock);
  end if;
  begin
    attempt := mutirao.take_item(p, j, lock);
    perform mutirao.take_gate(j);
    return attempt;
  exception when sqlstate 'MU226' then
    return null;
  end;
end $$;

create or replace function mutirao.select_item(actor int, job bigint, lock boolean default false) returns bigint
language plpgsql security definer as $$
declare
  p mutirao.person := mutirao.actor(actor);
  j mutirao.job := mutirao.item(actor, job);
  attempt bigint;
begin
  if j.person = p.id and j.status = 'running' and coalesce(j.reserved, false) = lock then
    return j.attempt;  -- asked twice
  elsif j.watched then
    perform mutirao.lock_instance(j.instance);
  end if;
  select * into j from mutirao.job x where x.id = select_item.job and (x.status = 'ready' or x.status = 'running' and x.person = p.id) for update;
  if not found then
    select * into j from mutirao.job x where x.id = select_item.job;
    perform mutirao.refuse_item(j, job);
  end if;
  perform mutirao.check_take(p, j, lock);
  attempt := mutirao.take_item(p, j, lock);
  perform mutirao.take_gate(j);  -- last of all locks
  return attempt;
end $$;
comment on function mutirao.select_item(int, bigint, boolean) is
  'A person takes a work item, and it leaves everybody else''s list; with lock, to do it away from the engine. Answers the attempt, which finishing must name.';

-- What runs while its instance is migrated is left as it is. Their instances are locked.
create or replace function mutirao.follow_version(jobs bigint[]) returns void
language plpgsql as $$
declare
  moved record;
begin
  for moved in
    select v, array_agg(j.id) as jobs, array_agg(i.id) as instances
    from mutirao.job j join mutirao.instance i on i.id = j.instance join mutirao.version v on v.id = i.version join mutirao.rule r on r.version = v.id and r.task = j.task
    where j.id = any (follow_version.jobs) and j.status in ('ready', 'held') and (r.role is null or r.role <> j.role and j.transferred is not true) group by v.id
  loop
    perform mutirao.take_rules(moved.jobs, moved.v);
    perform mutirao.reslot(moved.instances);
    perform mutirao.hand_out(moved.instances);
  end loop;
end $$;
comment on function mutirao.follow_version(bigint[]) is 'Items that nobody holds any more are for whom the version says that their instances have come to meanwhile: another role, or programs.';

-- Its instance is locked. It goes back to its role, unless its deadline made it the business of the person in charge.
create or replace function mutirao.let_go(j mutirao.job, offered_to int) returns void
language plpgsql as $$
begin
  if j.status = 'running' then
    perform mutirao.put_back(array[j.id], array[j.attempt]);
  end if;
  update mutirao.job x set person = null, reserved = null, offered_to = null where x.id = j.id;
  perform mutirao.follow_version(array[j.id]);
  if offered_to is not null then
    update mutirao.job x set offered_to = let_go.offered_to where x.id = j.id and x.role is not null;
  end if;
  perform mutirao.hint(array[j.person, j.offered_to, offered_to], array[j.role]);
end $$;

create or replace function mutirao.lock_item(actor int, job bigint) returns mutirao.job
language plpgsql as $$
declare
  j mutirao.job := mutirao.item(actor, job);
begin
  perform from mutirao.instance i where i.id = j.instance for no key update;
  select * into j from mutirao.job x where x.id = lock_item.job for update;
  if not found then
    perform mutirao.refuse('unknown_job', format('there is no work item %s; it may have ended', job));
  end if;
  return j;
end $$;
comment on function mutirao.lock_item(int, bigint) is 'Locks the instance of a work item, then the item.';

create or replace function mutirao.return_item(actor int, job bigint, reason text default null) returns void
language plpgsql security definer as $$
declare
  p mutirao.person := mutirao.actor(actor);
  j mutirao.job := mutirao.lock_item(actor, job);
begin
  if j.status <> 'running' or j.person <> all (mutirao.stands_for(p.id)) and not mutirao.may_steer(p.id, j.instance) then
    perform mutirao.refuse('item_not_held', format('work item %s is not yours to return: %s', job,
      case when j.status = 'running' then format('"%s" holds it', (select x.name from mutirao.person x where x.id = j.person)) else 'nobody holds it' end));
  end if;
  perform mutirao.note_item(j, 'return', mutirao.signed(p.name), mutirao.note(reason));
  perform mutirao.let_go(j, case when j.transferred then mutirao.heir(j) end);
  perform mutirao.tell_moved(j, p, null, reason);
end $$;
comment on function mutirao.return_item(int, bigint, text) is
  'Whoever holds a work item gives it back, undone; their substitute while they are away, the person in charge and administrators take it from them.';

-- Their instances are locked.
create or replace function mutirao.take_late_items(items bigint[]) returns int
language plpgsql as $$
declare
  j mutirao.job;
begin
  for j in select x.* from mutirao.job x where x.id = any (items) and x.status = 'running' order by x.id loop
    perform mutirao.note_item(j, 'return', 'clock', mutirao.note('its time ran out'));
    perform mutirao.let_go(j, case when j.transferred then mutirao.heir(j) end);
    perform mutirao.tell(array[mutirao.item_message(j.person, 'taken', j, format('was taken from you: it was to be done within %s', mutirao.span_words(j.timeout)))]);
  end loop;
  return cardinality(items);
end $$;
comment on function mutirao.take_late_items(bigint[]) is 'Takes work items back from whoever has let their timeout pass. They are undone, and nobody is to blame: it uses no retry.';

--------------------------------------------------------------------------------------------------------------- finishing

create or replace function mutirao.late_result(actor int, job bigint, attempt bigint, content jsonb, out code text, out message text, out attachment bigint)
language plpgsql as $$
declare
  k mutirao.participation;
  holder text;
begin
  select * into k from mutirao.participation x where x.job = late_result.job and x.person = late_result.actor and x.attempt >= late_result.attempt;
  if not found or exists (select from mutirao.job j where j.id = k.job and j.person = k.person and j.status = 'running') then
    code := 'item_not_held';
    select coalesce(
      (select format('you hold work item %s by attempt %s, and not by %s: give that one', j.id, j.attempt, late_result.attempt)
        from mutirao.job j where j.id = late_result.job and j.person = late_result.actor and j.status = 'running'),
      (select format('"%s" holds work item %s, and you do not', p.name, j.id)
        from mutirao.job j join mutirao.person p on p.id = j.person
        where j.id = late_result.job and j.status = 'running' and mutirao.may_see(late_result.actor, j.instance)),
      format('you do not hold work item %s: select it first', job)) into message;
  elsif k.did = k.attempt then
    code := 'item_finished';
    message := format('you have finished work item %s already, at %s', job, to_char(k.did_at, 'YYYY-MM-DD HH24:MI:SS TZ'));
  else
    if pg_column_size(content) > (select f.change_limit from mutirao.task t join mutirao.flow f on f.id = t.flow where t.id = k.task) then
      perform mutirao.refuse('too_large', format('work item %s is not yours any more, and the result is too large to be kept', job));
    end if;
    -- Sent again, it takes the place of what was sent before.
    update mutirao.attachment a set content = late_result.content, at = mutirao.now()
    where a.instance = k.instance and a.job = k.job and a.person = k.person and a.kind = 'late_result' returning a.id into attachment;
    if not found then
      insert into mutirao.attachment (instance, job, task, person, kind, content, at)
      values (k.instance, k.job, k.task, k.person, 'late_result', content, mutirao.now()) returning id into attachment;
    end if;
    perform mutirao.use_files(k.instance, k.person, content -> 'change');
    select p.name into holder from mutirao.job j join mutirao.person p on p.id = coalesce(j.person, j.offered_to) where j.id = late_result.job;
    code := 'item_moved';
    message := format('work item %s is not yours any more%s: your result is not written, but kept as attachment %s of instance %s', job,
      coalesce(', it was given to "' || holder || '"', ''), attachment, k.instance);
  end if;
end $$;
comment on function mutirao.late_result(int, bigint, bigint, jsonb) is 'What becomes of a result from somebody who does not hold the item: kept, if they once did and have not finished it.';

create or replace function mutirao.check_outputs(j mutirao.job, change jsonb) returns void
language plpgsql as $$
declare
  outputs text[];
  stray text;
begin
  select r.outputs into outputs from mutirao.instance i join mutirao.rule r on r.version = i.version and r.task = j.task where i.id = j.instance;
  if jsonb_typeof(change) is distinct from 'object' then
    perform mutirao.refuse('wrong_type', format('a result is a JSON object of attributes and their values: it cannot be %s', coalesce(left(change::text, 100), 'null')));
  end if;
  if outputs is null then return; end if;
  select k into stray from jsonb_object_keys(change) k where k <> all (outputs) limit 1;
  if found then
    perform mutirao.refuse('wrong_output', format('the task of work item %s does not write "%s"; it writes %s', j.id, stray, coalesce(nullif(array_to_string(outputs, ', '), ''), 'nothing')));
  end if;
end $$;

-- A result that comes too late is refused, but kept: so it is answered and not raised, for raising would undo the keeping.
create or replace function mutirao.finish_item(
  actor int, job bigint, attempt bigint, change jsonb default '{}', error text default null, out outcome text, out code text, out message text, out attachment bigint)
language plpgsql security definer as $$
declare
  p mutirao.person := mutirao.actor(actor);
  j mutirao.job;
  told mutirao.settled;
begin
  perform from mutirao.instance i where i.id = (select x.instance from mutirao.job x where x.id = finish_item.job) for no key update;
  select * into j from mutirao.job x where x.id = finish_item.job;
  if not found or j.attempt is distinct from finish_item.attempt or j.person is distinct from p.id or j.status <> 'running' then
    outcome := 'refused';
    select l.code, l.message, l.attachment into code, message, attachment
    from mutirao.late_result(p.id, job, attempt, jsonb_strip_nulls(jsonb_build_object('change', change, 'error', error))) l;
    return;
  end if;
  if error is null then
    perform mutirao.check_outputs(j, change);
    perform mutirao.check_given_files(p.id, j.instance, change);
  end if;
  if mutirao.is_barred_by_policy(p.id, j) then  -- they took the other one after this one
    perform mutirao.refuse('forbidden', format('work item %s is not for whoever does "%s": return it, so that somebody else does it', job, mutirao.policy_of(j) ->> 'task'));
  end if;
  -- Before the finish: what fires may have to go to whoever did this.
  update mutirao.participation k set did = j.attempt, did_at = mutirao.now() where k.job = j.id and k.person = p.id;
  perform mutirao.bar_on_principle(array[j.instance]);
  select * into told from mutirao.finish_jobs(mutirao.signed(p.name), array[j.id], array[j.attempt], array[case when error is null then change end],
    array[case when error is not null then jsonb_build_object('code', 'refused_by_person', 'error', error, 'final', true) end], null, true);
  if told.kind = 'refused' then
    perform mutirao.refuse(told.note ->> 'code', format('work item %s: %s', job, coalesce(told.note ->> 'error', 'it cannot be written now')));
  end if;
  outcome := case when told.kind = 'parked' then 'parked' else 'done' end;
  perform mutirao.hint(array[p.id], null);
end $$;
comment on function mutirao.finish_item(int, bigint, bigint, jsonb, text) is
  'A person finishes the item they hold: with what it writes, or as failed. Answers done, parked (it is kept, and written when other jobs have ended) or refused.';

------------------------------------------------------------------------------------------------- moving it between persons

create or replace function mutirao.delegate_item(actor int, job bigint, recipient int, reason text default null) returns void
language plpgsql security definer as $$
declare
  p mutirao.person := mutirao.actor(actor);
  j mutirao.job := mutirao.lock_item(actor, job);
  r mutirao.person := mutirao.actor(recipient);
  steers boolean := mutirao.may_steer(p.id, j.instance);
begin
  if not steers and not coalesce(case when j.status = 'running' then j.person else j.offered_to end = any (mutirao.stands_for(p.id)), false) then
    perform mutirao.refuse('forbidden', format('work item %s is not yours to delegate: whoever holds it or is alone offered it may, and the person in charge of instance %s', job, j.instance));
  elsif j.status not in ('ready', 'running') then
    perform mutirao.refuse_item(j, job);
  elsif not steers and not exists (select from mutirao.member m where m.role = j.role and m.person = r.id) then
    perform mutirao.refuse('forbidden', format('"%s" is not in the role "%s": only the person in charge or an administrator may give it to others', r.name, (select x.name from mutirao.role x where x.id = j.role)));
  elsif exists (select from mutirao.barred b where b.person = r.id and b.job = j.id) or mutirao.is_barred_by_policy(r.id, j) then
    perform mutirao.refuse('forbidden', format('work item %s is not for "%s"', job, r.name));
  end if;
  perform mutirao.note_item(j, 'delegate', mutirao.signed(p.name), jsonb_build_object('to', r.name) || coalesce(mutirao.note(reason), '{}'));
  perform mutirao.let_go(j, r.id);
  perform mutirao.tell_moved(j, p, r.id, reason);
end $$;
comment on function mutirao.delegate_item(int, bigint, int, text) is 'Offers a work item to one other person alone.';

create or replace function mutirao.insert_item(actor int, job bigint, recipient int) returns void
language plpgsql security definer as $$
declare
  p mutirao.person := mutirao.actor(actor);
  j mutirao.job := mutirao.lock_item(actor, job);
  r mutirao.person := mutirao.actor(recipient);
  is_excluded boolean := mutirao.is_barred_by_policy(r.id, j);
begin
  perform mutirao.check_steer(p.id, j.instance);
  if is_excluded and not mutirao.is_administrator(p.id) then
    perform mutirao.refuse('forbidden', format('work item %s is not for whoever did "%s": only an administrator may give it to "%s"', job, mutirao.policy_of(j) ->> 'task', r.name));
  end if;
  delete from mutirao.barred b where b.person = r.id and b.job = j.id;
  insert into mutirao.invited as v (person, job, regardless) values (r.id, j.id, is_excluded)
  on conflict on constraint invited_pkey do update set regardless = v.regardless or excluded.regardless;
  perform mutirao.note_item(j, 'insert', mutirao.signed(p.name), jsonb_build_object('to', r.name));
  perform mutirao.hint(array[r.id], null);
end $$;
comment on function mutirao.insert_item(int, bigint, int) is 'Puts a work item into somebody''s list as well, of the role or not.';

create or replace function mutirao.remove_item(actor int, job bigint, recipient int) returns void
language plpgsql security definer as $$
declare
  p mutirao.person := mutirao.actor(actor);
  j mutirao.job := mutirao.lock_item(actor, job);
  r mutirao.person;
begin
  perform mutirao.check_steer(p.id, j.instance);
  select * into r from mutirao.person x where x.id = recipient;
  if not found then
    perform mutirao.refuse('unknown_person', format('there is no person number %s', recipient));
  end if;
  delete from mutirao.invited i where i.person = r.id and i.job = j.id;
  insert into mutirao.barred (person, job) values (r.id, j.id) on conflict do nothing;
  perform mutirao.note_item(j, 'remove', mutirao.signed(p.name), jsonb_build_object('from', r.name));
  if j.person = r.id and j.status = 'running' or j.offered_to = r.id and j.status <> 'running' then
    perform mutirao.let_go(j, nullif(j.offered_to, r.id));
    perform mutirao.tell_moved(j, p, null, null);
  else
    update mutirao.job x set offered_to = null where x.id = j.id and x.offered_to = r.id;  -- somebody else holds it
    perform mutirao.hint(array[r.id], null);
  end if;
end $$;
comment on function mutirao.remove_item(int, bigint, int) is 'Takes a work item out of somebody''s list, and out of their hands.';
