-- Starting instances, many in one call: at once, or later by a clock.

-- Two starts of one key at once: the second waits here for the first, and finds its instance. Keys go in one order for everybody, so
-- that two batches cannot wait for each other.
create or replace function mutirao.take_keys(flow int, keys text[], ids bigint[]) returns bigint[]
language plpgsql as $$
declare
  taken bigint[];
begin
  if cardinality(keys) <> cardinality(ids) then
    perform mutirao.refuse('wrong_call', format('there are %s states and %s keys: each state needs its key, or null', cardinality(ids), cardinality(keys)));
  elsif exists (select from unnest(keys) k where length(k) not between 1 and 200) then
    perform mutirao.refuse('wrong_call', 'a key has 1 to 200 characters');
  end if;
  loop
    insert into mutirao.key (flow, key, instance)
    select take_keys.flow, u.key, min(u.id) from unnest(keys, ids) u(key, id) where u.key is not null group by u.key order by u.key collate "C"
    on conflict do nothing;
    select array_agg(case when u.key is null then u.id else k.instance end order by u.n) into taken
    from unnest(keys, ids) with ordinality u(key, id, n) left join mutirao.key k on k.flow = take_keys.flow and k.key = u.key;
    exit when array_position(taken, null) is null;  -- or the instance was dropped in between
  end loop;
  return taken;
end $$;
comment on function mutirao.take_keys(int, text[], bigint[]) is 'Gives each key its id, unless it has an instance already. Answers whose each is then.';

create or replace function mutirao.check_start(flow text, work mutirao.work[], looked mutirao.looked[], states int) returns void
language plpgsql as $$
declare
  bad record;
begin
  select work[l.n].n, l.problem into bad from unnest(looked) with ordinality l(final, fires, problem, n)
  where l.problem is not null or not l.final and l.fires = '{}'
  order by l.n limit 1;
  if found then
    perform mutirao.refuse(coalesce(bad.problem ->> 'code', 'nothing_fires'),
      format('start of flow "%s"%s: %s', flow, case when states > 1 then format(', state %s of %s', bad.n, states) else '' end,
        coalesce(case when bad.problem ->> 'task' is not null then format('condition of %s: ', bad.problem ->> 'task') else '' end || (bad.problem ->> 'error'),
          'this initial state is not final and no condition holds on it, so nothing would ever happen')));
  end if;
end $$;
comment on function mutirao.check_start(text, mutirao.work[], mutirao.looked[], int) is 'Refuses a state that does not fit its flow, or that is not final and fires nothing.';

create or replace function mutirao.start_instances(
  flow text, states jsonb[], priority int, writer text, keys text[] default null, notes jsonb[] default null, due_at timestamptz default null,
  in_charge int default null, policies jsonb default null)
returns setof bigint
language plpgsql as $$
#variable_conflict use_column
declare
  f mutirao.flow;
  v mutirao.version;
  ids bigint[];
  taken bigint[];
  hold text;
  work mutirao.work[];
  looked mutirao.looked[];
begin
  select * into f from mutirao.flow x where x.name = start_instances.flow;
  if not found then
    perform mutirao.refuse('unknown_flow', format('there is no flow "%s": put it in place first, by mutirao flow apply, engine.apply or mutirao.create_flow', flow));
  end if;
  if priority not between -1000000 and 1000000 then
    perform mutirao.refuse('wrong_call', format('a priority is at most a million either way: got %s', priority));
  elsif not isfinite(due_at) then
    perform mutirao.refuse('wrong_call', format('an instance starts at a time: it cannot be %s', due_at));
  end if;
  select * into strict v from mutirao.version x where x.id = f.version;
  ids := array(select nextval('mutirao.instance_id') from unnest(states));
  if keys is not null then
    taken := mutirao.take_keys(f.id, keys, ids);
  end if;
  if due_at > mutirao.now() then
    hold := 'delayed';
  end if;
  select array_agg(row(x.n, 'start', x.id, f.id, v.id, null, null, null, null, x.state, v.defaults || x.state,
      '{}', '{}', '{}', '{}', null, '{}', 0, null, hold, 0, start_instances.priority, mutirao.now(), start_instances.writer, x.note)::mutirao.work order by x.n)
    into work
  from (select u.id, coalesce(u.state, '{}') as state, u.note, u.n from unnest(ids, states, notes, taken) with ordinality u(id, state, note, taken, n)
        where coalesce(u.taken = u.id, true)) x;
  if work is not null then
    looked := mutirao.look(work, array[v.id]);
    perform mutirao.check_start(f.name, work, looked, cardinality(states));
    if in_charge is not null then
      perform mutirao.put_in_charge(array(select w.instance from unnest(work) w), in_charge, policies, case when hold is null then f.name end);
    end if;
    perform mutirao.settle(work, array[v.id], null, looked);
    if hold is not null then
      insert into mutirao.delayed (instance, due_at) select w.instance, start_instances.due_at from unnest(work) w;
      perform pg_notify('mutirao', 'clock');
    end if;
  end if;
  return query select unnest(coalesce(taken, ids));
end $$;
comment on function mutirao.start_instances(text, jsonb[], int, text, text[], jsonb[], timestamptz, int, jsonb) is
  'Starts one instance per state, all or none: a state that is not final and fires nothing is rejected, and the whole call with it. A state '
  'whose key has an instance starts nothing, and is not looked at.';
