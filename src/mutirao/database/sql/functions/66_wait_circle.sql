-- Circles of waits, across orderings, classes and children: found when a job begins to wait, and told to a person.
--
-- A job waits for jobs. For its class: for each that holds a conflicting one. By an ordering: for each instance that goes first, that is for the job
-- of the task which it owes, or if there is none yet, for whatever may still lead to it: all that is pending. For its child: for all that is pending there. Parked,
-- for whatever else is pending. It is stuck if for one of these needs all jobs are stuck; a job that waits for nobody is not. So who can still go on is taken out until
-- nobody is left to be taken out, and the rest are stuck. An instance for which nobody waits is in no circle: most are not looked at any further.
--
-- A work item waits for nobody until somebody would do it; but if they would be refused, it counts as waiting.
--
-- A circle that one of its jobs can still break may close without anybody beginning to wait, when that one ends. So it is kept, and a clock looks again.

create or replace function mutirao.may_wait(j mutirao.job) returns boolean
language sql stable
return j.gate = 'waits' or j.role is not null and j.status = 'ready' and (j.ordered is true or mutirao.is_exclusive(j.class));
comment on function mutirao.may_wait(mutirao.job) is 'Whether a job waits by a class or an ordering, or is a work item that may be kept back by one.';

-- Of very many that go first, those that wait for nobody themselves are left out: they are not stuck.
create or replace function mutirao.waits_on(job bigint, room int, out need bigint[], out other bigint) returns setof record
language sql stable as $$
  with me as (
    select * from mutirao.job j where j.id = waits_on.job),
  waiting as (
    select w.* from mutirao.order_wait w where w.job = waits_on.job
    union all
    select (a.wait).* from me cross join lateral mutirao.order_ahead(me) a where me.role is not null and me.status = 'ready' and me.ordered and a.first is not null),
  ahead as materialized (
    select o.* from waiting w cross join lateral (
      select x.instance, x.task from mutirao.owed x
      where x.ordering = w.ordering and x.pair = w.pair and x.side = 3 - w.side and x.key = w.key and x.stamp < w.stamp and x.instance <> w.instance order by x.stamp limit 50 * room + 1) o),
  pending as (
    select i.id as instance, p.id, p.task, p.status, i.pending as tasks from mutirao.instance i join mutirao.job p on p.instance = i.id and p.task = any (i.pending))
  (select array[1, h.id], h.id from me join mutirao.class c on c.id = me.class join mutirao.job h on h.class = any (c.conflicts) and h.gate = 'holds'
   where mutirao.may_wait(me) and me.waits_for is null limit room)
  union all
  (select array[2, o.instance, o.task], p.id
   from (select * from ahead a where exists (select from mutirao.job x where x.instance = a.instance and (x.by_clock or mutirao.may_wait(x))) limit room) o
   join pending p on p.instance = o.instance and (p.task = o.task or o.task <> all (p.tasks)))
  union all
  (select array[3, c.instance], p.id from mutirao.child c join pending p on p.instance = c.instance where c.job = waits_on.job and c.status is null limit room)
  union all
  (select array[4, me.instance], p.id from me join pending p on p.instance = me.instance where me.status = 'parked' and p.status <> 'parked')
  union all
  (select null, null from ahead offset 50 * room)
$$;
comment on function mutirao.waits_on(bigint, int) is 'The jobs that a job waits for, by what it needs them for; a null: there are more than were looked at.';

create or replace function mutirao.find_circle(job bigint, room int, out circle bigint[], out may_close boolean)
language plpgsql stable as $$
declare
  nodes bigint[] := array(
    with recursive node(id) as (select find_circle.job union select w.other from node n cross join lateral mutirao.waits_on(n.id, find_circle.room) w where w.other is not null)
    select n.id from node n limit room);
  froms bigint[];
  needs text[];
  tos bigint[];
  stuck bigint[] := nodes;
  others bigint[];
begin
  select array_agg(n.id), array_agg(w.need::text), array_agg(w.other) into froms, needs, tos from unnest(nodes) n(id) cross join lateral mutirao.waits_on(n.id, find_circle.room) w;
  may_close := coalesce(job = any (tos), false) or cardinality(nodes) = room or array_position(tos, null) is not null;
  loop
    others := array(
      select distinct x.id from (
        select e.id, bool_and(e.other = any (stuck)) as is_stuck from unnest(froms, needs, tos) e(id, need, other) where e.id = any (stuck) group by e.id, e.need) x
      where x.is_stuck);
    exit when cardinality(others) = cardinality(stuck);
    stuck := others;
  end loop;
  circle := mutirao.way_back(job, array(select e.id from unnest(froms, tos) e(id, other) where e.id = any (stuck) and e.other = any (stuck)),
    array(select e.other from unnest(froms, tos) e(id, other) where e.id = any (stuck) and e.other = any (stuck)));
end $$;
comment on function mutirao.find_circle(bigint, int) is
  'The instances of the circle in which this job is stuck, if it is; otherwise whether it may come to that. Looks at so many jobs at most; where there are more, it may.';

-- Each job is visited once, layer by layer.
create or replace function mutirao.way_back(job bigint, froms bigint[], tos bigint[]) returns bigint[]
language plpgsql stable as $$
declare
  seen bigint[] := '{}';
  came_from bigint[] := '{}';
  layer bigint[] := array[job];
  before bigint[];
  way bigint[] := array[job];
begin
  while job <> all (seen) loop
    select array_agg(x.other), array_agg(x.id) into layer, before from (
      select distinct on (e.other) e.other, e.id from unnest(froms, tos) e(id, other) where e.id = any (layer) and e.other <> all (seen) order by e.other, e.id) x;
    if layer is null then return null; end if;
    seen := seen || layer;
    came_from := came_from || before;
  end loop;
  loop
    way := came_from[array_position(seen, way[1])] || way;
    exit when way[1] = job;
  end loop;
  return array(select j.instance from unnest(way) with ordinality w(id, n) join mutirao.job j on j.id = w.id order by w.n);
end $$;
comment on function mutirao.way_back(bigint, bigint[], bigint[]) is 'The instances of the shortest way from a job back to itself; null: there is none.';

-- Within one ordering all wait for those with an earlier stamp, so a circle takes another one, a class or a child.
create or replace function mutirao.may_be_in_circle(j mutirao.job) returns boolean
language sql stable as $$
  select (exists (select from mutirao.child c where c.instance = j.instance and c.status is null)
      or exists (
        select from mutirao.owed o join mutirao.order_wait w on w.ordering = o.ordering and w.pair = o.pair and w.side = 3 - o.side and w.key = o.key and w.stamp > o.stamp and w.instance <> o.instance
        where o.instance = j.instance)
      or exists (
        select from mutirao.owed o join mutirao.ordering_task t on t.ordering = o.ordering and t.pair = o.pair and t.side = 3 - o.side
        join mutirao.job w on w.task = t.task and w.role is not null and w.ordered and w.instance <> o.instance where o.instance = j.instance))
    and (exists (select from mutirao.job x where x.class is not null and x.gate = 'waits' and x.waits_for is null)
      or exists (select from mutirao.child)
      or exists (select from mutirao.job x where x.role is not null and x.ordered)
      or (select min(w.ordering) < max(w.ordering) from mutirao.order_wait w))
$$;
comment on function mutirao.may_be_in_circle(mutirao.job) is 'Whether somebody waits for the instance of this job, and not all by one ordering.';

-- The gate is held. Few are looked at here, since everybody else waits meanwhile; a clock looks at more.
create or replace function mutirao.look_for_circle(j mutirao.job) returns void
language plpgsql as $$
begin
  if mutirao.may_be_in_circle(j) and (mutirao.find_circle(j.id, 50)).may_close then
    insert into mutirao.wait_circle values (j.id, j.instance, mutirao.now()) on conflict do nothing;
    perform mutirao.look_at_circle(j.id);
  end if;
end $$;
comment on function mutirao.look_for_circle(mutirao.job) is 'A job begins to wait.';

create or replace function mutirao.look_for_circles(class int) returns void
language plpgsql as $$
begin
  perform mutirao.lock_gate();
  insert into mutirao.wait_circle select j.id, j.instance, mutirao.now() from mutirao.job j
  where j.class = look_for_circles.class and j.gate = 'waits' and j.waits_for is null and mutirao.may_be_in_circle(j) on conflict do nothing;
  perform mutirao.look_at_circles();
end $$;
comment on function mutirao.look_for_circles(int) is 'A class conflicts with others than before: whoever waits for it waits for others now. What is not looked at at once, a clock looks at.';

-- The gate is held, so nobody is waited for: if somebody has the instance, or works on its exceptions, a clock tells.
create or replace function mutirao.look_at_circle(job bigint, room int default 50) returns void
language plpgsql as $$
declare
  k mutirao.wait_circle;
  i mutirao.instance;
  found_circle record;
  told jsonb;
begin
  update mutirao.wait_circle c set looked_at = mutirao.now() where c.job = look_at_circle.job returning * into k;
  found_circle := mutirao.find_circle(job, room);
  select * into i from mutirao.instance x where x.id = k.instance for no key update skip locked;
  if i.id is null and exists (select from mutirao.instance x where x.id = k.instance) then return; end if;
  told := (select r -> 'instances' from jsonb_array_elements(i.reasons) r where r ->> 'code' = 'wait_circle' and (r ->> 'job')::bigint = look_at_circle.job);
  if told is distinct from to_jsonb(found_circle.circle) then
    perform from mutirao.job x join mutirao.flow f on f.exception_task = x.task where x.instance = i.id for update of x skip locked;
    if not found and exists (select from mutirao.job x join mutirao.flow f on f.exception_task = x.task where x.instance = i.id) then return; end if;
    perform mutirao.tell_circle(i, job, found_circle.circle);
  end if;
  if found_circle.circle is null and not found_circle.may_close then
    delete from mutirao.wait_circle c where c.job = look_at_circle.job;
  end if;
end $$;
comment on function mutirao.look_at_circle(bigint, int) is 'Tells of a circle of waits, or that there is none any more.';

create or replace function mutirao.tell_circle(i mutirao.instance, job bigint, circle bigint[]) returns void
language plpgsql as $$
declare
  says text := format('instances wait for each other: %s', array_to_string(circle, ' → '));
begin
  i.reasons := mutirao.reasons_without(i.reasons, array[job]);
  if circle is not null then
    -- A message does not number the others: they may be none of its reader's.
    i.reasons := coalesce(i.reasons, '[]') || jsonb_build_object('code', 'wait_circle', 'job', job, 'instances', circle, 'error', says);
    perform mutirao.tell(array_agg(mutirao.message_to(c.person, 'exception', i.id, format('Instance %s of %s cannot go on: it waits for instances that wait for it.', i.id, f.name), jsonb_build_object('code', 'wait_circle'))))
    from mutirao.charge c join mutirao.flow f on f.id = i.flow where c.instance = i.id;
  end if;
  update mutirao.instance x set reasons = i.reasons, status = case when x.hold is not null then x.status when i.reasons is null then 'open.running' else 'open.exception' end where x.id = i.id;
  perform mutirao.show_exceptions(array[i.id]);
end $$;
comment on function mutirao.tell_circle(mutirao.instance, bigint, bigint[]) is 'Makes an instance an exception because a job of it is in a circle of waits; without one, not any more.';

create or replace function mutirao.look_at_circles() returns void
language plpgsql as $$
declare
  began timestamptz := mutirao.stopwatch();
  one bigint;
begin
  if not exists (select from mutirao.wait_circle) then return; end if;
  perform mutirao.lock_gate();
  for one in select c.job from mutirao.wait_circle c order by c.looked_at, c.job limit 50 loop
    perform mutirao.look_at_circle(one, 200);
    exit when mutirao.stopwatch() - began > interval '30 milliseconds';
  end loop;
end $$;
comment on function mutirao.look_at_circles() is 'For clocks: looks again at circles of waits, those that are and those that may be.';
