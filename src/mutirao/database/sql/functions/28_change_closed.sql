-- Finished instances of a live flow under a new version: one that had completed reopens if it would not be final by the new version.
--
-- Done when all open instances have followed, since until then one may still close by a version before. It is a batch of kind `look`
-- (23_batch.sql), so it can be watched, stopped and taken up again, and only made where a version can tell otherwise about the end than one
-- before it: whoever adds a task does not have a million finished instances looked at. A newer version makes a batch of its own.

-- The same compiled condition means the same text over attributes of the same types.
create or replace function mutirao.ends_alike(old mutirao.version, new mutirao.version) returns boolean
language sql stable
return old.ends = 'final' and new.ends = 'final' and old.searchable @> new.searchable and old.searchable <@ new.searchable
  and (select r.function from mutirao.rule r join mutirao.task t on t.id = r.task and t.name = '_FINAL' where r.version = old.id and r.enabled)
    is not distinct from (select r.function from mutirao.rule r join mutirao.task t on t.id = r.task and t.name = '_FINAL' where r.version = new.id and r.enabled);
comment on function mutirao.ends_alike(mutirao.version, mutirao.version) is 'Whether what is final and what can be searched for is the same in both.';

create or replace function mutirao.look_at_closed(v mutirao.version) returns void
language plpgsql as $$
declare
  last_id bigint := (select max(c.id) from mutirao.closed c);
  seen int := (select max((b.arguments ->> 'version')::int) from mutirao.batch b where b.kind = 'look' and b.flow = v.flow and b.status = 'finished');
begin
  if last_id is null or not exists (
    select from mutirao.version o where o.flow = v.flow and o.number >= coalesce(seen, 0) and o.number < v.number and not mutirao.ends_alike(o, v))
  then
    return;
  end if;
  insert into mutirao.batch (kind, flow, filter, arguments, bound, made_by, reason, made_at, stepped_at)
  select 'look', f.id, jsonb_build_object('flow', f.name, 'status', 'closed.completed'), jsonb_build_object('version', v.number), last_id, 'clock',
    format('version %s may end otherwise', v.number), mutirao.now(), mutirao.now()
  from mutirao.flow f where f.id = v.flow;
end $$;
comment on function mutirao.look_at_closed(mutirao.version) is 'Has the finished instances of a live flow looked at again, if need be.';

create or replace function mutirao.search_closed(instances bigint[], searchable text[]) returns void
language plpgsql as $$
begin
  delete from mutirao.search s where s.instance = any (instances) and s.name <> all (searchable);
  insert into mutirao.search (flow, name, value, instance)
  select c.flow, n.name, left(mutirao.searched(c.state -> n.name), 200), c.id
  from mutirao.closed c cross join unnest(searchable) n(name) where c.id = any (instances) and c.state ->> n.name is not null
    and not exists (select from mutirao.attribute a where a.version = c.version and a.name = n.name and a.type = 'file')
  on conflict do nothing;
end $$;

-- Reopens those that would not be final: of a flow that ends quiet, those where something fires. One on whose state a condition raises
-- stays closed: nobody can say that it is not final. Answers the others.
create or replace function mutirao.batch_look(b mutirao.batch, instances bigint[]) returns setof mutirao.batch_outcome
language plpgsql as $$
declare
  v mutirao.version;
  work mutirao.work[];
  looked mutirao.looked[];
  reopened bigint[];
begin
  select x.* into v from mutirao.flow f join mutirao.version x on x.id = f.version where f.id = b.flow;
  if v.number <> (b.arguments ->> 'version')::int then
    raise exception 'version % has taken its place', v.number;
  end if;
  perform mutirao.search_closed(instances, v.searchable);
  with lens as (
    select o.id, o.named, l.* from mutirao.version o cross join lateral mutirao.lens(o, v) l
    where o.id in (select c.version from mutirao.closed c where c.id = any (instances)) and o.id <> v.id)
  select array_agg(row(1, 'reopen', c.id, c.flow, v.id, null, null, null, null, null, mutirao.state_as(c.state, l.gone, v.defaults, l.changed, l.types),
      '{}', '{}', k.fired, c.reached, mutirao.latest_as(c.id, c.latest, l.named, v.named), k.fired, 0, null, null, c.firings, c.priority, c.started_at,
      'clock', jsonb_build_object('version', v.number))::mutirao.work order by c.id)
    into work
  from mutirao.closed c join lens l on l.id = c.version
  cross join lateral (select array(select t from unnest(c.fired) t where t = any (v.once || v.gone)) as fired offset 0) k
  where c.id = any (instances) and c.status = 'closed.completed';
  if work is not null then
    looked := mutirao.look(work, array[v.id]);
    select array_agg(row(w.n, w.kind, w.instance, w.flow, w.version, w.job, w.task, w.attempt, w.cause, w.change, w.state, w.pending, w.failed, w.fired, w.reached,
        w.latest, w.held, w.parked, w.reasons, w.hold, w.firings, w.priority, w.started_at, w.writer, w.note)::mutirao.work),
      array_agg(row(w.final, w.fires, w.problem)::mutirao.looked), array_agg(w.instance)
      into work, looked, reopened
    from unnest(work, looked) w where w.problem is null and not w.final and (v.ends = 'final' or w.fires <> '{}');
  end if;
  if reopened is not null then
    delete from mutirao.exported e using mutirao.closed c
    where c.id = any (reopened) and e.flow = c.flow and e.status = c.status and e.closed_at = c.closed_at and e.instance = c.id;
    delete from mutirao.closed c where c.id = any (reopened);
    update mutirao.charge c set ended = false where c.instance = any (reopened);
    perform mutirao.settle(work, array[v.id], null, looked);
  end if;
  return query select n, null::text, null::text from unnest(instances) n where n <> all (coalesce(reopened, '{}'));
end $$;
