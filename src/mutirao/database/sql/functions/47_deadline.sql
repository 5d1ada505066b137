-- Deadlines of work items: reminders before them, and the move to the person in charge.
--
-- An item's alert_at is the next moment at which a clock has something to say about it: a reminder, or the deadline itself. What falls due
-- while nobody looks (the instance is interrupted, or no clock runs) is not made up for: only the latest of it is told. But an item that
-- should have moved moves.

-- A reminder that would come no later than the item itself is none.
create or replace function mutirao.reminders(allowed interval) returns interval[]
language sql stable
return array(select x.before from mutirao.setting s, jsonb_array_elements_text(s.value) h(hours), lateral (select make_interval(secs => 3600 * h.hours::float8)) x(before)
  where s.name = 'reminders' and x.before < allowed order by x.before desc);
comment on function mutirao.reminders(interval) is 'How long before its deadline an item that was given so much time is told of, the earliest first.';

create or replace function mutirao.transfer_before(allowed interval) returns interval
language sql stable
return (select case when t.before < allowed then t.before else coalesce((mutirao.reminders(allowed))[1], '0') end
  from (select mutirao.hours('transfer')) t(before));
comment on function mutirao.transfer_before(interval) is 'How long before its deadline an item that was given so much time moves to the person in charge.';

create or replace function mutirao.next_alert(at timestamptz, finish_by timestamptz) returns timestamptz
language sql stable
return (select min(a.alert_at) from (
  select finish_by - make_interval(secs => 3600 * h.hours::float8) as alert_at from mutirao.setting s, jsonb_array_elements_text(s.value) h(hours) where s.name = 'reminders'
  union all select finish_by) a where a.alert_at > at);
comment on function mutirao.next_alert(timestamptz, timestamptz) is 'When a clock has to see to an item next; null: never again.';

create or replace function mutirao.move_at(j mutirao.job) returns timestamptz
language sql stable
return j.finish_by - mutirao.transfer_before(j.allowed);

create or replace function mutirao.is_to_move(j mutirao.job, at timestamptz) returns boolean
language sql stable
return j.transferred is null and at >= mutirao.move_at(j);

-- For whom an item is not, it does not become by being late.
create or replace function mutirao.heir(j mutirao.job) returns int
language sql stable
return (select p.id from mutirao.charge c join mutirao.person p on p.id = c.person
  where c.instance = j.instance and p.disabled_at is null and not exists (select from mutirao.barred b where b.person = p.id and b.job = j.id));
comment on function mutirao.heir(mutirao.job) is 'Whose business an item is whose deadline has come near: the person in charge; null: the administrators.';

----------------------------------------------------------------------------------------------------------------- the move

create or replace function mutirao.transfer_items(alerts mutirao.alert[], at timestamptz) returns void
language plpgsql as $$
declare
  moved bigint[] := array(select a.job from unnest(alerts) a);
  administrators int := (select r.id from mutirao.role r where r.name = 'administrator');
begin
  insert into mutirao.trace (instance, id, flow, version, kind, job, task, attempt, cause, status, writer, note, at)
  select i.id, nextval('mutirao.trace_id'), i.flow, i.version, 'transfer', j.id, j.task, j.attempt, j.cause, i.status, 'clock',
    jsonb_strip_nulls(jsonb_build_object('from', f.name, 'to', coalesce(t.name, 'administrator'), 'finish_by', j.finish_by)), transfer_items.at
  from unnest(alerts) a join mutirao.job j on j.id = a.job join mutirao.instance i on i.id = j.instance
  left join mutirao.person f on f.id = a.holder left join mutirao.person t on t.id = a.heir;
  perform mutirao.hint(array(select a.holder from unnest(alerts) a union select a.heir from unnest(alerts) a), array(select distinct j.role from mutirao.job j where j.id = any (moved)) || administrators);
  perform mutirao.put_back(r.jobs, r.attempts) from (
    select array_agg(j.id) as jobs, array_agg(j.attempt) as attempts from mutirao.job j where j.id = any (moved) and j.status = 'running') r where r.jobs is not null;
  delete from mutirao.invited v where v.job = any (moved);
  update mutirao.job j set person = null, reserved = null, offered_to = a.heir, role = case when a.heir is null then administrators else j.role end
  from unnest(alerts) a where j.id = a.job;
end $$;
comment on function mutirao.transfer_items(mutirao.alert[], timestamptz) is 'Moves items to those in charge, even out of somebody''s hands. They and their instances are locked.';

-- At most one message of an alert to each: that it has moved, or how long there is still.
create or replace function mutirao.tell_alerts(alerts mutirao.alert[]) returns void
language sql as $$
  select mutirao.tell(array_agg(mutirao.item_message(w.person, case when a.moves then 'transferred' else 'deadline' end, j, concat(
      case when a.remaining <= '0' then format('should have been done by %s', mutirao.moment_words(j.finish_by)) else format('is to be done within %s, by %s', mutirao.span_words(a.remaining), mutirao.moment_words(j.finish_by)) end,
      case
        when a.moves and w.person is not distinct from a.holder then format(': it was taken from you and went to %s', coalesce('"' || h.name || '"', 'the administrators'))
        when a.moves then format(': it %s%s', case when w.inherits then 'is yours now' else 'went to the administrators' end, ', taken from "' || p.name || '"')
        when a.remaining <= '0' and w.steers then ': cancel the instance, delegate or skip the task, or give it more time' end),
    jsonb_strip_nulls(jsonb_build_object('finish_by', j.finish_by, 'seconds_left', greatest(round(extract(epoch from a.remaining)), 0), 'holder', p.name,
      'to', case when a.moves then coalesce(h.name, 'administrator') end)))))
  from unnest(alerts) a join mutirao.job j on j.id = a.job left join mutirao.person p on p.id = a.holder left join mutirao.person h on h.id = a.heir
  cross join lateral (
    select x.person, bool_or(x.steers), bool_or(x.inherits) from (
      select a.holder, false, false union all select a.in_charge, true, a.in_charge is not distinct from a.heir
      union all select n, true, not exists (select from mutirao.barred b where b.person = n and b.job = a.job)
        from unnest(mutirao.administrators()) n where a.heir is null and (a.moves or a.remaining <= '0')) x(person, steers, inherits)
    where x.person is not null group by 1) w(person, steers, inherits)
$$;

-- Whoever has an item of an instance that is held may still finish it. But a class is not kept from others for ever: not longer than the item's own time.
create or replace function mutirao.give_up_classes(jobs bigint[], at timestamptz) returns void
language plpgsql as $$
declare
  late mutirao.job[] := array(
    select j from mutirao.job j join mutirao.instance i on i.id = j.instance
    where j.id = any (jobs) and j.gate = 'holds' and mutirao.job_hold(i.hold, i.id, j.cause, j.undoes) is not null and give_up_classes.at >= mutirao.move_at(j) order by j.id);
begin
  if late = '{}' then return; end if;
  perform mutirao.tell(array(
    select mutirao.item_message(l.person, 'transferred', l, 'was taken from you: its instance does not go on, its time has run out, and others may need its class') from unnest(late) l));
  perform mutirao.hint(array(select l.person from unnest(late) l), null);
  perform mutirao.put_back(array(select l.id from unnest(late) l), array(select l.attempt from unnest(late) l));
  update mutirao.job j set person = null, reserved = null from unnest(late) l where j.id = l.id;
end $$;
comment on function mutirao.give_up_classes(bigint[], timestamptz) is 'Takes items out of somebody''s hands that hold a class, and whose time has run out while their instances are held. They and their instances are locked.';

-- The items and their instances are locked.
create or replace function mutirao.alert_items(jobs bigint[], at timestamptz) returns void
language plpgsql as $$
declare
  alerts mutirao.alert[];
  moving mutirao.alert[];
begin
  perform mutirao.give_up_classes(jobs, at);
  -- Of what nobody can do nothing is told; whatever lets the instance go on calls for it again.
  update mutirao.job j set alert_at = case when j.gate = 'holds' then mutirao.move_at(j) when x.hold = 'suspended' then 'infinity' end
  from (select n.id, mutirao.job_hold(i.hold, i.id, n.cause, n.undoes) as hold from mutirao.job n join mutirao.instance i on i.id = n.instance where n.id = any (jobs)) x
  where j.id = x.id and (x.hold is not null or j.status not in ('ready', 'running'));
  select array_agg(row(x.id, x.holder, x.in_charge, x.heir, x.is_to_move and (x.heir is null or x.holder is distinct from x.heir), x.finish_by - alert_items.at)::mutirao.alert order by x.id) into alerts
  from (select j.id, j.finish_by, case when j.status = 'running' then j.person else j.offered_to end as holder, c.person as in_charge, mutirao.heir(j) as heir, mutirao.is_to_move(j, alert_items.at) as is_to_move
        from mutirao.job j left join mutirao.charge c on c.instance = j.instance where j.id = any (jobs) and j.alert_at <= alert_items.at) x;
  if alerts is null then return; end if;
  perform mutirao.tell_alerts(alerts);
  update mutirao.job j set alert_at = mutirao.next_alert(alert_items.at, j.finish_by), transferred = case when mutirao.is_to_move(j, alert_items.at) then true else j.transferred end
  from unnest(alerts) a where j.id = a.job;
  select array_agg(a) into moving from unnest(alerts) a where a.moves;
  if moving is not null then
    perform mutirao.transfer_items(moving, at);
  end if;
end $$;

-- Interrupted instances go on: what fell due meanwhile is told now.
create or replace function mutirao.resume_alerts(instances bigint[]) returns void
language sql as $$
  update mutirao.job j set alert_at = mutirao.now() where j.instance = any (instances) and j.alert_at = 'infinity'
$$;

-- Items follow a new list of reminders page by page. One that somebody has at the moment is where the next page begins.
create or replace function mutirao.follow_reminders(at timestamptz) returns int
language plpgsql as $$
declare
  began bigint;
  page bigint[];
  locked bigint[];
  skipped bigint;
  moved int;
begin
  select r.after into began from mutirao.realert r for update skip locked;
  if not found then return 0; end if;
  page := array(select j.id from mutirao.job j where j.id > began order by j.id limit 1000);
  locked := array(select j.id from mutirao.job j where j.id = any (page) and j.alert_at < 'infinity' for update skip locked);
  update mutirao.job j set alert_at = n.alert_at from (
    select x.id, case when mutirao.is_to_move(x, at) then at else mutirao.next_alert(at, x.finish_by) end as alert_at from mutirao.job x where x.id = any (locked)) n
  where j.id = n.id and j.alert_at is distinct from n.alert_at;
  get diagnostics moved = row_count;
  skipped := (select min(j.id) from mutirao.job j where j.id = any (page) and j.alert_at < 'infinity' and j.id <> all (locked));
  if cardinality(page) < 1000 and skipped is null then
    delete from mutirao.realert;
  else
    update mutirao.realert set after = coalesce(skipped - 1, page[1000]);
  end if;
  return moved;
end $$;

create or replace function mutirao.clock_deadlines(room int, out done int, out next_at timestamptz)
language plpgsql as $$
declare
  at timestamptz := mutirao.now();
  due bigint[];
  locked bigint[];
begin
  done := mutirao.follow_reminders(at);
  select array_agg(x.id), array_agg(x.instance) into due, locked from (
    select j.id, j.instance from mutirao.job j where j.alert_at <= at order by j.alert_at limit least(room, 200)) x;  -- each is a message or three, and perhaps a move
  if due is not null then
    locked := array(select i.id from mutirao.instance i where i.id = any (locked) order by i.id for no key update skip locked);
    due := array(select j.id from mutirao.job j where j.id = any (due) and j.instance = any (locked) and j.alert_at <= at order by j.id for update skip locked);
    perform mutirao.alert_items(due, at);
    done := done + cardinality(due);
  end if;
  next_at := case when exists (select from mutirao.realert) then at else (select min(j.alert_at) from mutirao.job j where j.alert_at < 'infinity') end;
end $$;
comment on function mutirao.clock_deadlines(int) is 'Reminds of deadlines, and moves what nobody has done to the person in charge.';

-------------------------------------------------------------------------------------------------------------- more time

create or replace function mutirao.extend_deadline(actor int, job bigint, finish_by timestamptz, reason text default null) returns void
language plpgsql security definer as $$
declare
  at timestamptz := mutirao.now();
  p mutirao.person := mutirao.actor(actor);
  j mutirao.job := mutirao.lock_item(actor, job);
  has int;
begin
  perform mutirao.check_steer(p.id, j.instance);
  if j.status not in ('ready', 'running', 'held') then
    perform mutirao.refuse('item_not_ready', format('work item %s is %s: it has no deadline at present', job, j.status));
  elsif finish_by is null or not isfinite(finish_by) or finish_by <= at or finish_by > at + interval '100 years' then
    perform mutirao.refuse('wrong_call', format('a deadline is a time to come, within a hundred years: it cannot be %s', coalesce(finish_by::text, 'null')));
  end if;
  perform mutirao.note_item(j, 'extend', mutirao.signed(p.name), jsonb_strip_nulls(jsonb_build_object('from', j.finish_by, 'to', extend_deadline.finish_by)) || coalesce(mutirao.note(reason), '{}'));
  has := case when j.status = 'running' then j.person else j.offered_to end;
  update mutirao.job x set finish_by = extend_deadline.finish_by, allowed = extend_deadline.finish_by - at, transferred = null,
    alert_at = mutirao.next_alert(at, extend_deadline.finish_by)
  where x.id = j.id returning * into j;
  if has <> p.id then
    perform mutirao.tell(array[mutirao.item_message(has, 'deadline', j, format('is to be done by %s now', mutirao.moment_words(finish_by)), jsonb_build_object('finish_by', finish_by, 'by', p.name))]);
  end if;
  perform mutirao.hint(array[has], array[j.role]);
end $$;
comment on function mutirao.extend_deadline(int, bigint, timestamptz, text) is
  'The person in charge or an administrator gives a work item another deadline. Reminders and the move count from now on.';
