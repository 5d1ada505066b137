-- Starting instances, many in one call.

create or replace function mutirao.start_instances(flow text, states jsonb[], priority int, writer text) returns setof bigint
language plpgsql as $$
#variable_conflict use_column
declare
  f mutirao.flow;
  v mutirao.version;
  ids bigint[];
  work mutirao.work[];
  looked mutirao.looked[];
  bad record;
begin
  select * into f from mutirao.flow x where x.name = start_instances.flow;
  if not found then
    perform mutirao.refuse('unknown_flow', format('there is no flow "%s": put it in place first, by mutirao flow apply, engine.apply or mutirao.create_flow', flow));
  end if;
  if priority not between -1000000 and 1000000 then
    perform mutirao.refuse('wrong_call', format('a priority is at most a million either way: got %s', priority));
  end if;
  select * into strict v from mutirao.version x where x.id = f.version;
  ids := array(select nextval('mutirao.instance_id') from unnest(states));
  select array_agg(row(x.n, 'start', x.id, f.id, v.id, null, null, null, null, x.state, v.defaults || x.state,
      '{}', '{}', '{}', '{}', null, '{}', 0, null, null, 0, start_instances.priority, mutirao.now(), start_instances.writer, null)::mutirao.work order by x.n)
    into work
  from (select u.id, coalesce(u.state, '{}') as state, u.n from unnest(ids, states) with ordinality u(id, state, n)) x;
  if work is null then return; end if;
  looked := mutirao.look(work, array[v.id]);
  select w.n, w.problem into bad from unnest(looked) with ordinality w(final, fires, problem, n)
  where w.problem is not null or not w.final and w.fires = '{}'
  order by w.n limit 1;
  if found then
    perform mutirao.refuse(coalesce(bad.problem ->> 'code', 'nothing_fires'),
      format('start of flow "%s"%s: %s', f.name, case when cardinality(states) > 1 then format(', state %s of %s', bad.n, cardinality(states)) else '' end,
        coalesce(case when bad.problem ->> 'task' is not null then format('condition of %s: ', bad.problem ->> 'task') else '' end || (bad.problem ->> 'error'),
          'this initial state is not final and no condition holds on it, so nothing would ever happen')));
  end if;
  perform mutirao.settle(work, array[v.id], null, looked);
  return query select unnest(ids);
end $$;
comment on function mutirao.start_instances(text, jsonb[], int, text) is
  'Starts one instance per state, all or none: a state that is not final and fires nothing is rejected, and the whole call with it.';
