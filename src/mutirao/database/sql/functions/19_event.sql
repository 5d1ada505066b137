-- Outside events: attributes of instances set by key, many in one call, each written once however often it is delivered.
--
-- A call finds the instances of its keys and locks them in id order; from then on what it reads of them is true. An event is judged in
-- this order: its key must be known; an id that was written before is repeated, even where the instance has ended since; then the instance
-- must be open. Events for one instance go one after another, in rounds, each with its own look; a round is one settle for all instances.

------------------------------------------------------------------------------------------------------------- only if

-- A predicate passes the gate of all conditions, and is one more function as long as the call lasts. What is written behind it keeps it from
-- being one that a task has, so that it can be dropped.
create or replace function mutirao.compile_predicates(predicate text, versions int[]) returns mutirao.predicate[]
language plpgsql as $$
declare
  made mutirao.predicate[] := '{}';
  one mutirao.predicate;
  names record;
  c mutirao.condition;
begin
  foreach one.version in array versions loop
    begin
      names := mutirao.condition_names(one.version);
      c := mutirao.condition_function('only_if', predicate || e'\n\t\r\f\n', names.names, names.types);
      one := row(one.version, c.function, c.arguments, null, null);
    exception when others then
      if sqlstate not like 'MU%' then raise; end if;
      one := row(one.version, null, null, split_part(sqlerrm, ': ', 1), substr(sqlerrm, strpos(sqlerrm, ': ') + 2));
    end;
    made := made || one;
  end loop;
  return made;
end $$;

create or replace function mutirao.drop_predicates(predicates mutirao.predicate[]) returns void
language plpgsql as $$
declare
  made text;
begin
  for made in
    select distinct to_regproc(p.function)::oid::regprocedure::text from unnest(predicates) p
    where to_regproc(p.function) is not null and not exists (select from mutirao.rule r where r.function = p.function)
  loop
    execute 'drop function ' || made;
  end loop;
end $$;

create or replace function mutirao.ask_version(p mutirao.predicate, work mutirao.work[]) returns mutirao.asked[]
language plpgsql as $$
declare
  tasks int[];
  ask text;
  one mutirao.work;
  answer mutirao.asked[];
  answers mutirao.asked[];
begin
  if p.code is not null then
    return array(select row(w.n, null, null, p.message)::mutirao.asked from unnest(work) w);
  end if;
  tasks := array(
    select t.id from mutirao.version v join mutirao.task t on t.flow = v.flow where v.id = p.version and 'task_' || t.name = any (p.arguments));
  -- Latest states are kept of the tasks that the flow's own conditions name. Of others they are found in jobs and trace.
  ask := format($sql$
    select array_agg(row(x.n, q.holds, case when not q.holds then (
        select jsonb_object_agg(a.name, case when a.name like 'task\_%%' then to_jsonb(coalesce(x.latest ->> substr(a.name, 6), 'not_ready')) else x.state -> a.name end)
        from unnest($2) a(name)) end, null)::mutirao.asked)
    from (select w.n, w.state, case when $3 = '{}' then w.latest else mutirao.latest_from(w.instance, w.latest, $3) end as latest from unnest($1) w) x,
      lateral jsonb_to_record(x.state) as s(%s), lateral (select coalesce(%s, false) as holds) q $sql$,
    mutirao.record_sql(p.version), mutirao.condition_sql(p.function, p.arguments));
  begin
    execute ask into answers using work, p.arguments, tasks;
    return answers;
  exception when others then
    answers := '{}';
  end;
  foreach one in array work loop
    begin
      execute ask into answer using array[one], p.arguments, tasks;
    exception when others then
      answer := array[row(one.n, null, null, sqlerrm)::mutirao.asked];
    end;
    answers := answers || answer;
  end loop;
  return answers;
end $$;
comment on function mutirao.ask_version(mutirao.predicate, mutirao.work[]) is 'Whether a predicate holds on each row, what it saw where not, and what it raised.';

------------------------------------------------------------------------------------------------------------- sending

create or replace function mutirao.event_work(n int, i mutirao.instance, v mutirao.version, change jsonb, writer text, note jsonb) returns mutirao.work
language sql stable
return row(n, 'set', i.id, i.flow, v.id, null, null, null, null, change,
  i.state, i.pending, i.failed, i.fired, i.reached, i.latest,
  i.pending || i.failed || i.fired, i.parked, i.reasons, i.hold, i.firings, i.priority, i.started_at, writer, note)::mutirao.work;
comment on function mutirao.event_work(int, mutirao.instance, mutirao.version, jsonb, text, jsonb) is
  'An instance as it stands, under this version. The change is still to be merged.';

create or replace function mutirao.answer_of(a mutirao.arrival, code text, message text) returns mutirao.sent
language sql immutable
return row(a.n, a.key, a.event, a.instance, 'refused', code, message, null)::mutirao.sent;

-- Answers only what was not done.
create or replace function mutirao.send_round(arrivals mutirao.arrival[], predicates mutirao.predicate[], writer text, reason text) returns setof mutirao.sent
language plpgsql as $$
declare
  work mutirao.work[];
  asked mutirao.asked[];
begin
  -- An event before this one may have ended the instance.
  return query
    select (mutirao.answer_of(a, 'instance_closed', format('instance %s has ended and takes no more changes', a.instance))).*
    from unnest(arrivals) a where not exists (select from mutirao.instance i where i.id = a.instance);
  select array_agg(mutirao.event_work(a.n, i, v, coalesce(a.change, 'null'), writer,
      nullif(jsonb_strip_nulls(jsonb_build_object('reason', reason, 'event', a.event)), '{}')) order by v.id, a.n)
    into work
  from unnest(arrivals) a join mutirao.instance i on i.id = a.instance join mutirao.version v on v.id = a.version;
  if predicates is not null then
    asked := array(
      select q from unnest(predicates) p cross join lateral unnest(mutirao.ask_version(p, array(select w from unnest(work) w where w.version = p.version))) q);
    return query
      select a.n, a.key, a.event, a.instance, case when q.holds is null then 'refused' else 'not_now' end,
        case when q.holds is null then coalesce(p.code, 'condition_failed') end,
        case when q.holds is null then format('only_if, on instance %s: %s', a.instance, q.error) end, q.saw
      from unnest(asked) q join unnest(arrivals) a on a.n = q.n join unnest(predicates) p on p.version = a.version where q.holds is not true;
  end if;
  return query
    select (mutirao.answer_of(a, r.note ->> 'code', mutirao.refusal_words(r))).*
    from mutirao.write_all(array(select w from unnest(work) w left join unnest(asked) q on q.n = w.n where predicates is null or q.holds)) r
    join unnest(arrivals) a on a.instance = r.instance;
end $$;

-- Answers what cannot be written, or was written before. Whatever has no answer here may go on.
create or replace function mutirao.receive(flow int, arrivals mutirao.arrival[], locked bigint[]) returns setof mutirao.sent
language sql stable as $$
  select a.n, a.key, a.event, coalesce(e.instance, a.instance), case when e.event is not null then 'repeated' else 'refused' end, r.code, r.message, null::jsonb
  from unnest(arrivals) a
  left join mutirao.event e on e.flow = receive.flow and e.event = a.event
  left join mutirao.instance i on i.id = a.instance
  left join unnest(locked) l(id) on l.id = a.instance
  cross join lateral (select
    case
      when a.instance is null then 'unknown_instance'
      when length(a.event) not between 1 and 200 then 'wrong_call'
      when e.event is not null then null
      when i.id is null then 'instance_closed'
      when l.id is null then 'instance_busy'
      when i.hold = 'cancelled' then 'instance_cancelled'
      when exists (select from mutirao.undoing u where u.instance = i.id) then 'instance_undoing'
    end as code) c
  cross join lateral (select c.code, case c.code
      when 'unknown_instance' then format('no instance has the key "%s"', a.key)
      when 'wrong_call' then 'the id of an event has 1 to 200 characters'
      when 'instance_closed' then format('instance %s has ended and takes no more changes', a.instance)
      when 'instance_busy' then format('another transaction is writing instance %s: try again', a.instance)
      when 'instance_cancelled' then format('instance %s is being cancelled: it closes when its last running job ends', a.instance)
      when 'instance_undoing' then format('instance %s is being rolled back: only compensations change it', a.instance)
    end as message) r
  where c.code is not null or e.event is not null
$$;

-- Ids are taken before anything is written, in one order for everybody; one that is not written after all is given back in the end.
-- Somebody else may have written one meanwhile, for another instance.
create or replace function mutirao.take_events(flow int, arrivals mutirao.arrival[]) returns mutirao.arrival[]
language plpgsql as $$
declare
  taken text[];
begin
  with made as (
    insert into mutirao.event (flow, event, instance, at)
    select take_events.flow, a.event, a.instance, mutirao.now() from unnest(arrivals) a where a.event is not null and a.leader = a.n order by a.event collate "C"
    on conflict do nothing returning event)
  select array_agg(m.event) into taken from made m;
  return (
    select array_agg(row(a.n, a.k, a.key, a.event, a.change, a.instance, a.version, a.leader)::mutirao.arrival)
    from (select u.n, row_number() over (partition by u.instance order by u.n) as k, u.key, u.event, u.change, u.instance, u.version, u.leader
          from unnest(arrivals) u left join unnest(taken) t(event) on t.event = u.event
          where u.leader = u.n and (u.event is null or t.event is not null)) a);
end $$;
comment on function mutirao.take_events(int, mutirao.arrival[]) is 'Those that may be tried, with their rounds.';

create or replace function mutirao.send_events(
  flow text, keys text[], changes jsonb[], events text[], only_if text, writer text, reason text, waits boolean) returns setof mutirao.sent
language plpgsql as $$
#variable_conflict use_column
declare
  f mutirao.flow;
  arrivals mutirao.arrival[];
  locked bigint[];
  answers mutirao.sent[];
  waiting mutirao.arrival[];
  going mutirao.arrival[];
  predicates mutirao.predicate[];
begin
  select * into f from mutirao.flow x where x.name = send_events.flow;
  if not found then
    perform mutirao.refuse_flow(flow);
  elsif cardinality(keys) is distinct from cardinality(changes) or cardinality(events) <> cardinality(keys) then
    perform mutirao.refuse('wrong_call', 'keys, changes and events must be of one length');
  end if;
  select array_agg(row(x.n, null, x.key, x.event, x.change, k.instance, null, null)::mutirao.arrival) into arrivals
  from unnest(keys, changes, events) with ordinality x(key, change, event, n) left join mutirao.key k on k.flow = f.id and k.key = x.key;
  -- Who sends one event waits for its instance; a batch does not wait behind anybody.
  if waits then
    select array_agg(q.id) into locked from (
      select i.id from mutirao.instance i where i.id in (select a.instance from unnest(arrivals) a) order by i.id for no key update) q;
  else
    select array_agg(q.id) into locked from (
      select i.id from mutirao.instance i where i.id in (select a.instance from unnest(arrivals) a) order by i.id for no key update skip locked) q;
  end if;

  if exists (select from mutirao.recheck) then
    perform mutirao.catch_up(locked);
  end if;

  -- A new statement, and so a new snapshot: from here on everything about these instances is ours.
  answers := array(select r from mutirao.receive(f.id, arrivals, locked) r);
  select array_agg(row(a.n, null, a.key, a.event, a.change, a.instance, i.version,
      case when a.event is null then a.n else a.leader end)::mutirao.arrival)
    into waiting
  from (select u.n, u.key, u.event, u.change, u.instance, min(u.n) over (partition by u.event) as leader
        from unnest(arrivals) u left join unnest(answers) s on s.n = u.n where s.n is null) a
  join mutirao.instance i on i.id = a.instance;
  if only_if is not null then
    predicates := mutirao.compile_predicates(only_if, array(select w.version from unnest(waiting) w union select f.version));
    perform mutirao.refuse(p.code, p.message) from unnest(predicates) p where p.version = f.version and p.code is not null;
  end if;
  going := mutirao.take_events(f.id, waiting);
  for round in 1 .. coalesce((select max(g.k) from unnest(going) g), 0) loop
    answers := answers || array(
      select s from mutirao.send_round(array(select g from unnest(going) g where g.k = round), predicates, writer, reason) s);
  end loop;

  delete from mutirao.event e using unnest(going) g join unnest(answers) s on s.n = g.n where e.flow = f.id and e.event = g.event;
  perform mutirao.drop_predicates(predicates);
  -- One that followed another of its id in this call: that one was done, or it shares its fate.
  return query
    select a.n, a.key, a.event, coalesce(s.instance, t.instance, a.instance), coalesce(s.outcome, t.outcome, case when g.n is null then 'repeated' else 'done' end),
      coalesce(s.code, t.code), coalesce(s.message, t.message), coalesce(s.saw, t.saw)
    from unnest(arrivals) a left join unnest(answers) s on s.n = a.n left join unnest(going) g on g.n = a.n
    left join unnest(waiting) w on w.n = a.n left join unnest(answers) t on t.n = w.leader
    order by a.n;
end $$;

create or replace function mutirao.send(
  flow text, key text, change jsonb, event text default null, only_if text default null, reason text default null, writer text default session_user)
returns mutirao.sent
language plpgsql security definer as $$
declare
  answer mutirao.sent;
begin
  select * into answer from mutirao.send_events(flow, array[key], array[change], array[event], only_if, mutirao.signed(writer), reason, true);
  if answer.outcome = 'refused' then
    perform mutirao.refuse(answer.code, answer.message);
  end if;
  return answer;
end $$;
comment on function mutirao.send(text, text, jsonb, text, text, text, text) is
  'Sets attributes of the instance that has a key. An event of the same id is written once. With only_if, only where that condition holds on '
  'its state. Raises what is refused.';

create or replace function mutirao.send_many(
  flow text, keys text[], changes jsonb[], events text[] default null, only_if text default null, reason text default null, writer text default session_user)
returns setof mutirao.sent
language plpgsql security definer as $$
begin
  return query select * from mutirao.send_events(flow, keys, changes, events, only_if, mutirao.signed(writer), reason, false);
end $$;
comment on function mutirao.send_many(text, text[], jsonb[], text[], text, text, text) is
  'The same for many events, in their order. Each is answered; those refused change nothing and keep no other from being written. One for an '
  'instance that somebody is writing is refused as instance_busy: send it again.';
