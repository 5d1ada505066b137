-- Making, changing and dropping classes while work goes on; and who holds, waits, and for whom.

create or replace function mutirao.class_ids(names text[], but text default null) returns int[]
language plpgsql stable as $$
declare
  missing text;
begin
  select n into missing from unnest(names) n where not exists (select from mutirao.class c where c.name = n and not c.is_dropped) limit 1;
  if missing is not null then
    perform mutirao.refuse('unknown_class', format('there is no class "%s"; there are %s', missing, coalesce((
      select string_agg(format('"%s"', c.name), ', ' order by c.name) from mutirao.class c where not c.is_dropped and c.name is distinct from but), 'none')));
  end if;
  return array(select c.id from mutirao.class c where c.name = any (names) order by 1);
end $$;

create or replace function mutirao.class_of(task text, name text) returns int
language plpgsql stable as $$
declare
  found_class int := (select c.id from mutirao.class c where c.name = class_of.name and not c.is_dropped);
begin
  if name is not null and found_class is null then
    perform mutirao.refuse('unknown_class', format('task "%s" names the task_class "%s", which there is not: make it first, by mutirao class put', task, name));
  end if;
  return found_class;
end $$;

-- Taken first of all locks: whoever changes classes or orderings does so one after another.
create or replace function mutirao.lock_meeting() returns void
language sql as $$ select pg_advisory_xact_lock(hashtextextended('mutirao.meeting', 0)) $$;

create or replace function mutirao.mark_gated() returns void
language sql as $$
  update mutirao.version v set gated = g.tasks
  from (select r.version, coalesce(array_agg(r.task) filter (where r.role is null and (r.ordered or mutirao.is_exclusive(r.class_id))), '{}') as tasks
    from mutirao.rule r where r.enabled group by 1) g
  where g.version = v.id and not (v.gated @> g.tasks and v.gated <@ g.tasks)
$$;
comment on function mutirao.mark_gated() is 'Brings the versions up to date with what is ordered or has a class that excludes others. It holds for jobs that fire from now on.';

create or replace function mutirao.class_changed() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform mutirao.admit_touched();
  if tg_op = 'UPDATE' and old.conflicts <> new.conflicts then
    perform mutirao.look_for_circles(new.id);
  end if;
  return null;
end $$;

drop trigger if exists class_changed on mutirao.class;
create constraint trigger class_changed after insert or update on mutirao.class deferrable initially deferred
for each row execute function mutirao.class_changed();

-- Whatever is locked is being claimed: it begins.
create or replace function mutirao.take_back_ready(classes int[]) returns void
language sql as $$
  update mutirao.job j set gate = 'waits', status = 'waiting', due_at = 'infinity', waits_for = null
  where j.id in (select x.id from mutirao.job x where x.class = any (classes) and x.gate = 'holds' and x.status = 'ready' and x.role is null for update skip locked)
$$;
comment on function mutirao.take_back_ready(int[]) is 'Jobs of these classes that were let through and have not begun must pass the gate again.';

create or replace function mutirao.put_class(name text, conflicts text[], description text default null, writer text default session_user) returns void
language plpgsql security definer as $$
declare
  signature text := mutirao.signed(writer);
  c mutirao.class;
  others int[];
  added int[];
  new_name text;
begin
  perform mutirao.check_line_name('class', name);
  perform mutirao.lock_meeting();
  new_name := (select name where not exists (select from mutirao.class x where x.name = put_class.name and not x.is_dropped));
  insert into mutirao.class (name, made_by, made_at) values (name, signature, mutirao.now()) on conflict on constraint class_name_key do update set is_dropped = false;
  select * into c from mutirao.class x where x.name = put_class.name;
  others := mutirao.class_ids(conflicts, but => new_name);
  added := array(select unnest(others) except select unnest(c.conflicts));
  perform mutirao.touch_class(t) from unnest(array[c.id] || others || c.conflicts) t;
  update mutirao.class x set conflicts = others, description = nullif(coalesce(put_class.description, x.description), ''), made_by = signature, made_at = mutirao.now() where x.id = c.id;
  update mutirao.class x set conflicts = array_remove(x.conflicts, c.id) || case when x.id = any (others) then array[c.id] else '{}' end
  where x.id <> c.id and (x.id = any (others)) <> (c.id = any (x.conflicts));
  perform mutirao.mark_gated();
  perform mutirao.take_back_ready(added || c.id) where added <> '{}';
  insert into mutirao.class_trace (kind, name, conflicts, writer, at) values ('put', c.name, array(select x.name from mutirao.class x where x.id = any (others) order by 1), signature, mutirao.now());
end $$;
comment on function mutirao.put_class(text, text[], text, text) is 'Makes a synchronisation class, or changes it: the classes it conflicts with, itself among them or not. Without a description it keeps the one it has. It holds for what begins from now on.';

create or replace function mutirao.drop_class(name text, writer text default session_user) returns void
language plpgsql security definer as $$
declare
  c mutirao.class;
begin
  perform mutirao.lock_meeting();
  select * into c from mutirao.class x where x.name = drop_class.name and not x.is_dropped;
  if not found then
    perform mutirao.class_ids(array[name]);
  end if;
  perform mutirao.touch_class(t) from unnest(array[c.id] || c.conflicts) t;
  insert into mutirao.class_trace (kind, name, conflicts, writer, at)
  values ('drop', c.name, array(select x.name from mutirao.class x where x.id = any (c.conflicts) order by 1), mutirao.signed(writer), mutirao.now());
  update mutirao.class x set conflicts = array_remove(x.conflicts, c.id) where c.id = any (x.conflicts);
  update mutirao.class x set conflicts = '{}', description = null, is_dropped = true where x.id = c.id;
  perform mutirao.mark_gated();
end $$;
comment on function mutirao.drop_class(text, text) is 'Takes a synchronisation class away: its jobs exclude nobody any more, and those that wait for it are ready.';

-- Who waits by an ordering is in another index.
create or replace function mutirao.classes(out name text, out description text, out conflicts text[], out holding int, out waiting int, out waits_since timestamptz, out flows text[]) returns setof record
language sql stable security definer as $$
  select c.name, c.description, array(select o.name from mutirao.class o where o.id = any (c.conflicts) order by 1),
    (select count(*) from mutirao.job j where j.class = c.id and j.gate = 'holds'), w.number, w.since,
    array(select distinct f.name from mutirao.flow f join mutirao.rule r on r.version = f.version where r.class_id = c.id order by 1)
  from mutirao.class c cross join lateral (
    select count(*) as number, min(j.created_at) as since from (
      select x.created_at from mutirao.job x where x.class = c.id and x.gate = 'waits' and x.waits_for is null
      union all
      select x.created_at from mutirao.job x where x.class = c.id and x.waits_for is not null) j) w
  where not c.is_dropped order by c.name
$$;
comment on function mutirao.classes() is 'All synchronisation classes: what they conflict with, how many jobs hold them, how many wait and since when, and which flows use them.';

create or replace function mutirao.gate_waits(class text default null, room int default 1000,
  out job bigint, out instance bigint, out flow text, out task text, out class_name text, out since timestamptz, out place int, out kind text, out held_by bigint, out holder_instance bigint, out holder_task text,
  out ordering text)
returns setof record
language sql stable security definer as $$
  select (w.j).id, (w.j).instance, f.name, t.name, w.class_name, (w.j).created_at, w.place,
    case when (w.j).waits_for is not null then 'ordering' when h.holds then 'class' else 'turn' end, h.job, case when (w.j).waits_for is null then h.instance else mutirao.goes_before(w.j) end, h.task,
    (select o.first || ': ' || o.second from mutirao.order_wait x join mutirao.ordering o on o.id = x.ordering where x.job = (w.j).id)
  from (  -- for whom each waits is found out only of those that are told
    select u.j, c.name as class_name, row_number() over (partition by (u.j).class order by (u.j).gate_at, (u.j).id)::int as place
    from (  -- each of these has its index; both together have none
      select x as j from mutirao.job x where x.gate = 'waits' and x.waits_for is null
      union all
      select x from mutirao.job x where x.gate = 'waits' and x.waits_for is not null) u
    left join mutirao.class c on c.id = (u.j).class
    where gate_waits.class is null or c.name = gate_waits.class order by (u.j).class, (u.j).gate_at, (u.j).id limit least(room, 10000)) w
  join mutirao.flow f on f.id = (w.j).flow join mutirao.task t on t.id = (w.j).task
  left join lateral mutirao.excluder(w.j) h on (w.j).waits_for is null
  order by (w.j).class, (w.j).gate_at, (w.j).id
$$;
comment on function mutirao.gate_waits(text, int) is 'Who waits for whom: jobs that are synchronizing, since when, at which place of the queue, and who holds what they wait for.';

create or replace function mutirao.seen_waits(actor int, class text default null, room int default 1000,
  out job bigint, out instance bigint, out flow text, out task text, out class_name text, out since timestamptz, out place int, out kind text, out held_by bigint, out holder_instance bigint, out holder_task text,
  out ordering text)
returns setof record
language plpgsql stable security definer as $$
declare
  p mutirao.person := mutirao.actor(actor);
begin
  return query
    select w.job, w.instance, w.flow, w.task, w.class_name, w.since, w.place, w.kind, case when h.is_seen then w.held_by end, case when h.is_seen then w.holder_instance end, case when h.is_seen then w.holder_task end,
      case when h.is_seen then w.ordering end
    from mutirao.gate_waits(class, 1000) w cross join lateral (select mutirao.may_see(p.id, w.holder_instance) as is_seen) h
    where mutirao.may_see(p.id, w.instance) limit room;
end $$;
comment on function mutirao.seen_waits(int, text, int) is
  'What of gate_waits a person may see: of the first thousand that wait those whose instances they may see, and for whom these wait only if they may see that one, too.';
