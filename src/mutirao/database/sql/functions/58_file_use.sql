-- Who refers to a file, and what becomes of it when nobody does (57_file.sql says for how long it stays).

-- Called after every write of a flow that has files. A state has been checked, so what it names is there.
create or replace function mutirao.note_files(instances bigint[]) returns void
language plpgsql as $$
declare
  used bigint[];
begin
  if not exists (select from mutirao.file) then return; end if;
  with named as materialized (
    select distinct f.id as file, i.id as instance
    from (select id, version, state from mutirao.instance where id = any (instances)
          union all select id, version, state from mutirao.closed where id = any (instances)) i
    join mutirao.attribute a on a.version = i.version and a.type = 'file'
    join mutirao.file f on f.sha256 = i.state -> a.name ->> 'sha256'),
  noted as (
    insert into mutirao.file_use (file, instance) select n.file, n.instance from named n order by 1, 2 on conflict do nothing returning file)
  select array_agg(distinct n.file) into used from noted n;
  perform mutirao.mark_used(used);
end $$;
comment on function mutirao.note_files(bigint[]) is 'Remembers which files these instances refer to.';

create or replace function mutirao.mark_used(files bigint[]) returns void
language sql as $$
  update mutirao.file f set unused_at = null
  from (select x.id from mutirao.file x where x.id = any (files) and x.unused_at is not null order by x.id for no key update) u where f.id = u.id
$$;

-- Nobody checked what it names: so only what the person uploaded counts, or they could read any file whose hash they know.
create or replace function mutirao.use_files(instance bigint, person int, change jsonb) returns void
language plpgsql as $$
declare
  used bigint[];
begin
  if not exists (select from mutirao.file) then return; end if;
  select array_agg(distinct f.id) into used from jsonb_each(case when jsonb_typeof(change) = 'object' then change else '{}' end) e
  join mutirao.file f on f.sha256 = e.value ->> 'sha256'
  where jsonb_typeof(e.value) = 'object' and exists (select from mutirao.upload u where u.file = f.id and u.person = use_files.person);
  insert into mutirao.file_use (file, instance) select u, use_files.instance from unnest(used) u order by 1 on conflict do nothing;
  perform mutirao.mark_used(used);
end $$;
comment on function mutirao.use_files(bigint, int, jsonb) is 'Remembers the files of a result that came too late, and is kept beside the state.';

create or replace function mutirao.forget_uses(instances bigint[], kept bigint[] default '{}') returns bigint[]
language plpgsql as $$
declare
  freed bigint[];
begin
  with gone as (delete from mutirao.file_use u where u.instance = any (instances) and u.file <> all (kept) returning u.file)
  select array_agg(distinct g.file) into freed from gone g;
  if freed is null then return '{}'; end if;
  with unused as materialized (
    select f.id from mutirao.file f where f.id = any (freed) and not exists (select from mutirao.file_use u where u.file = f.id) order by f.id for no key update),
  marked as (
    update mutirao.file f set unused_at = mutirao.now() from unused u where f.id = u.id returning f.id)
  select coalesce(array_agg(m.id), '{}') into freed from marked m;
  return freed;
end $$;
comment on function mutirao.forget_uses(bigint[], bigint[]) is 'These instances refer to no file any more but those kept. Answers which files nobody refers to now.';

-- What only this instance referred to can be referred to no more, and goes as what is unused goes: whoever was let in by the check of a write
-- before may still commit. What was said about it on its way in is gone at once. Whoever had nothing to do with the instance and uploaded the
-- same keeps that for its day.
create or replace function mutirao.erase_files(instance bigint, whole boolean) returns void
language plpgsql as $$
declare
  kept bigint[];
  freed bigint[];
begin
  if not exists (select from mutirao.file_use u where u.instance = erase_files.instance) then return; end if;
  select coalesce(array_agg(distinct f.id) filter (where not whole), '{}') into kept from (
      select c.state from mutirao.closed c where c.id = erase_files.instance
      union all select i.state from mutirao.instance i where i.id = erase_files.instance
      union all select t.state from mutirao.trace t where t.instance = erase_files.instance and t.state is not null
      union all select j.change from mutirao.job j where j.instance = erase_files.instance and jsonb_typeof(j.change) = 'object'
      union all select x.content -> 'change' from mutirao.attachment x where x.instance = erase_files.instance and jsonb_typeof(x.content -> 'change') = 'object') s
    cross join jsonb_each(s.state) e join mutirao.file f on jsonb_typeof(e.value) = 'object' and f.sha256 = e.value ->> 'sha256';
  freed := mutirao.forget_uses(array[instance], kept);
  delete from mutirao.upload u where u.file = any (freed)
    and (u.person is null or exists (select from mutirao.participation p where p.instance = erase_files.instance and p.person = u.person));
  update mutirao.file f set unused_at = mutirao.now() - mutirao.file_grace() where f.id = any (freed) and not exists (select from mutirao.upload u where u.file = f.id);
  perform pg_notify('mutirao', 'clock');
end $$;
comment on function mutirao.erase_files(bigint, boolean) is 'Lets the files that an instance referred to and does not any more, or all of them, be removed within the hour, unless another instance or upload has them.';

------------------------------------------------------------------------------------------------------------------ sweeping

create or replace function mutirao.sweep_uploads(room int) returns int
language plpgsql as $$
declare
  old bigint[];
begin
  old := array(
    select u.id from mutirao.upload u
    where u.begun_at < mutirao.now() - mutirao.file_grace() and coalesce(u.finished_at < mutirao.now() - mutirao.file_grace(), true)
      and (u.finished_at is not null or not exists (select from mutirao.chunk c where c.file = u.id and c.put_at > mutirao.now() - mutirao.file_grace()))
    order by u.begun_at limit room for update skip locked);
  if old <> '{}' then
    perform mutirao.discard_uploads(old);
  end if;
  return cardinality(old);
end $$;

-- What waits in a parked job is not in a state yet, but will be.
create or replace function mutirao.sweep_unused(room int) returns int
language plpgsql as $$
declare
  old bigint[];
  wanted bigint[];
begin
  old := array(
    select f.id from mutirao.file f where f.unused_at < mutirao.now() - mutirao.file_grace() - interval '1 hour' order by f.unused_at limit room for update skip locked);
  if old = '{}' then return 0; end if;
  wanted := array(
    select u.file from mutirao.file_use u where u.file = any (old)
    union
    select f.id from mutirao.job j cross join jsonb_each(j.change) e join mutirao.file f on f.id = any (old) and jsonb_typeof(e.value) = 'object' and f.sha256 = e.value ->> 'sha256'
    where jsonb_typeof(j.change) = 'object');
  update mutirao.file f set unused_at = case when exists (select from mutirao.file_use u where u.file = f.id) then null else mutirao.now() end where f.id = any (wanted);
  with gone as (delete from mutirao.file f where f.id = any (old) and f.id <> all (wanted) returning f.id)
  insert into mutirao.discarded (file) select g.id from gone g on conflict do nothing;
  return cardinality(old);
end $$;

create or replace function mutirao.sweep_chunks(room int) returns int
language plpgsql as $$
declare
  one bigint;
  gone int;
  done int := 0;
begin
  for one in select d.file from mutirao.discarded d order by d.file limit room for update skip locked loop
    delete from mutirao.chunk c where c.file = one and c.number in (select x.number from mutirao.chunk x where x.file = one order by x.number limit room - done);
    get diagnostics gone = row_count;
    done := done + gone;
    exit when done >= room;
    delete from mutirao.discarded d where d.file = one;
  end loop;
  return done;
end $$;

create or replace function mutirao.clock_files(room int, out done int, out next_at timestamptz)
language plpgsql as $$
declare
  began timestamptz := mutirao.stopwatch();
begin
  room := least(room, 100);  -- chunks of a quarter of a megabyte
  done := mutirao.sweep_uploads(room) + mutirao.sweep_unused(room);
  done := done + mutirao.sweep_chunks(room);
  if exists (select from mutirao.discarded) then
    next_at := mutirao.now() + mutirao.rest('files', 9 * (mutirao.stopwatch() - began));
  else
    next_at := least(
      (select greatest(min(u.begun_at) + mutirao.file_grace(), mutirao.now() + interval '1 minute') from mutirao.upload u having count(*) > 0),
      (select min(f.unused_at) + mutirao.file_grace() + interval '1 hour' from mutirao.file f where f.unused_at is not null));
  end if;
end $$;
