-- Roles and their members. The role administrator is always there, and has a member who is enabled once there was one.

create or replace function mutirao.lock_role(role int) returns mutirao.role
language plpgsql as $$
declare
  r mutirao.role;
begin
  select * into r from mutirao.role x where x.id = lock_role.role and x.removed_at is null for no key update;
  if not found then
    perform mutirao.refuse('unknown_role', format('there is no role number %s', role));
  end if;
  return r;
end $$;

create or replace function mutirao.check_administrators_left() returns void
language plpgsql as $$
begin
  if not mutirao.has_administrator() then
    perform mutirao.refuse('last_administrator', 'no enabled administrator would be left: put somebody else into the role "administrator" first');
  end if;
end $$;

create or replace function mutirao.check_role(r mutirao.role) returns void
language plpgsql as $$
begin
  perform mutirao.check_line_name('role', r.name);
  if exists (select from mutirao.role x where x.name = r.name and x.id is distinct from r.id) then
    perform mutirao.refuse('name_taken', format('there is a role "%s" already%s', r.name,
      case when exists (select from mutirao.role x where x.name = r.name and x.removed_at is not null) then ', removed but spoken of by old versions of flows: add it to bring it back' else '' end));
  elsif length(r.description) > 10000 then
    perform mutirao.refuse('too_large', format('role "%s": a description has at most 10000 characters', r.name));
  end if;
end $$;

create or replace function mutirao.add_role(actor int, name text, description text default null, writer text default session_user) returns int
language plpgsql security definer as $$
declare
  signature text := mutirao.check_administrator(actor, writer);
  r mutirao.role;
begin
  perform mutirao.lock_people();
  select * into r from mutirao.role x where x.name = add_role.name and x.removed_at is not null;
  r.name := name;
  r.description := description;
  perform mutirao.check_role(r);
  if r.id is not null then
    update mutirao.role x set description = r.description, removed_at = null, revision = x.revision + 1,
      changes = mutirao.changed(x.changes, x.revision + 1, array['removed', 'description'], signature)
    where x.id = r.id;
  else
    insert into mutirao.role as x (name, description, changes, made_at)
    values (r.name, r.description, mutirao.changed('{}', 1, array['added'], signature), mutirao.now()) returning x.id into r.id;
  end if;
  return r.id;
end $$;
comment on function mutirao.add_role(int, text, text, text) is 'Adds a role; one that was removed comes back, with nobody in it.';

create or replace function mutirao.change_role(actor int, role int, change jsonb, revision int default null, writer text default session_user) returns int
language plpgsql security definer as $$
declare
  signature text := mutirao.check_administrator(actor, writer);
  old mutirao.role;
  r mutirao.role;
  what text[];
begin
  perform mutirao.lock_people();
  old := mutirao.lock_role(role);
  perform mutirao.check_texts(change, '{name,description}', 'of a role, name and description are changed so: {"name": "…", "description": null}');
  perform mutirao.check_revision(format('role "%s"', old.name), old.revision, revision, old.changes);
  r := jsonb_populate_record(old, change);
  if old.name = 'administrator' and r.name is distinct from old.name then
    perform mutirao.refuse('wrong_call', 'the role "administrator" is always called so');
  end if;
  perform mutirao.check_role(r);
  what := mutirao.differing(to_jsonb(old), change);
  if what <> '{}' then
    update mutirao.role x set name = r.name, description = r.description, revision = x.revision + 1, changes = mutirao.changed(x.changes, x.revision + 1, what, signature)
    where x.id = r.id returning * into r;
  end if;
  return r.revision;
end $$;
comment on function mutirao.change_role(int, int, jsonb, int, text) is 'Changes the name or description of a role, as an object says; answers the revision. Flows follow: they know it by number.';

create or replace function mutirao.uses_of(role int) returns setof text
language sql stable
begin atomic
  select format('flow "%s" may be started by it', f.name) from mutirao.flow f where f.creator_role = uses_of.role
  union all
  select format('task "%s" of flow "%s" is offered to it', t.name, f.name)
  from mutirao.rule x join mutirao.flow f on f.version = x.version join mutirao.task t on t.id = x.task where x.role = uses_of.role
  union all
  select case count(*) when 1 then 'an open work item is offered to it' else format('%s open work items are offered to it', count(*)) end from mutirao.job j where j.role = uses_of.role having count(*) > 0
  union all
  select format('instances of an old version of flow "%s" are open, whose task "%s" is offered to it', f.name, t.name)
  from mutirao.rule x join mutirao.task t on t.id = x.task join mutirao.flow f on f.id = t.flow and f.version <> x.version
  where x.role = uses_of.role and exists (select from mutirao.instance i where i.version = x.version);
end;
comment on function mutirao.uses_of(int) is 'What keeps a role from being removed, a line each.';

create or replace function mutirao.remove_role(actor int, role int, revision int default null, writer text default session_user) returns void
language plpgsql security definer as $$
declare
  signature text := mutirao.check_administrator(actor, writer);
  r mutirao.role;
  uses text[];
begin
  perform mutirao.lock_people();
  r := mutirao.lock_role(role);
  perform mutirao.check_revision(format('role "%s"', r.name), r.revision, revision, r.changes);
  perform from mutirao.role x where x.id = r.id for update;  -- waits for whoever puts a flow in place that names it
  uses := array(select * from mutirao.uses_of(role));
  if r.name = 'administrator' then
    perform mutirao.refuse('wrong_call', 'the role "administrator" is always there');
  elsif uses <> '{}' then
    perform mutirao.refuse('role_used', format('role "%s" cannot be removed: %s', r.name, array_to_string(uses[1:3], '; ') || case when cardinality(uses) > 3 then '; …' else '' end));
  end if;
  perform mutirao.note_change(array(select m.person from mutirao.member m where m.role = r.id), array[r.id], signature);
  delete from mutirao.member m where m.role = r.id;
  if exists (select from mutirao.rule x where x.role = r.id) then
    update mutirao.role x set removed_at = mutirao.now(), changes = mutirao.changed(x.changes, x.revision, array['removed'], signature) where x.id = r.id;
  else
    delete from mutirao.role x where x.id = r.id;
  end if;
end $$;
comment on function mutirao.remove_role(int, int, int, text) is 'Removes a role that no flow offers work to or is started by, and that no open work item is for.';

------------------------------------------------------------------------------------------------------------------ members

create or replace function mutirao.known_persons(persons int[]) returns void
language plpgsql stable as $$
declare
  unknown int;
begin
  select n into unknown from unnest(persons) n where not exists (select from mutirao.person p where p.id = n) limit 1;
  if found then
    perform mutirao.refuse('unknown_person', format('there is no person number %s', unknown));
  end if;
end $$;

create or replace function mutirao.put_into_role(actor int, role int, persons int[], writer text default session_user) returns int
language plpgsql security definer as $$
declare
  signature text := mutirao.check_administrator(actor, writer);
  r mutirao.role;
  added int[];
begin
  perform mutirao.lock_people();
  r := mutirao.lock_role(role);
  perform mutirao.known_persons(persons);
  with new as (insert into mutirao.member as m (role, person) select r.id, n from unnest(persons) n on conflict do nothing returning m.person)
  select array_agg(n.person) into added from new n;
  if added is not null then
    perform mutirao.note_change(added, array[r.id], signature);
    perform mutirao.hint(added, null);
  end if;
  return coalesce(cardinality(added), 0);
end $$;
comment on function mutirao.put_into_role(int, int, int[], text) is 'Puts persons into a role; they see at once what is offered to it. Answers how many were not in it.';

create or replace function mutirao.take_out_of_role(actor int, role int, persons int[], writer text default session_user) returns int
language plpgsql security definer as $$
declare
  signature text := mutirao.check_administrator(actor, writer);
  r mutirao.role;
  gone int[];
begin
  perform mutirao.lock_people();
  r := mutirao.lock_role(role);
  perform mutirao.known_persons(persons);
  with old as (delete from mutirao.member m where m.role = r.id and m.person = any (persons) returning m.person)
  select array_agg(o.person) into gone from old o;
  if gone is not null then
    if r.name = 'administrator' then
      perform mutirao.check_administrators_left();
    end if;
    perform mutirao.note_change(gone, array[r.id], signature);
    perform mutirao.give_back(gone, r.id, signature, format('out of the role "%s"', r.name));
    insert into mutirao.departure as d (role, person, at) select r.id, g, mutirao.now() from unnest(gone) g on conflict on constraint departure_pkey do update set at = excluded.at;
    perform pg_notify('mutirao', 'clock');
    perform mutirao.hint(gone, null);
  end if;
  return coalesce(cardinality(gone), 0);
end $$;
comment on function mutirao.take_out_of_role(int, int, int[], text) is
  'Takes persons out of a role; what they hold of it or are alone offered goes back to it. Answers how many were in it.';

-------------------------------------------------------------------------------------------------------------- who is there

-- Names and roles are for everybody, since whoever delegates has to know them. The rest is for administrators and oneself.
create or replace function mutirao.persons(
  actor int, named text default null, numbered int default null, search text default null, role text default null, is_here boolean default null,
  is_disabled boolean default null, after text default null, room int default 100,
  out id int, out name text, out full_name text, out email text, out roles text[], out disabled_at timestamptz, out away_from timestamptz, out away_until timestamptz,
  out substitute text, out here boolean, out seen_at timestamptz, out holds bigint, out offered bigint, out revision int, out made_by text, out made_at timestamptz)
returns setof record
language plpgsql stable security definer as $$
#variable_conflict use_column
declare
  sees_all boolean := actor is null or mutirao.is_administrator((mutirao.actor(actor)).id);
  moment timestamptz := mutirao.now();
begin
  return query
    select p.id, p.name, p.full_name, case when s.sees then p.email end,
      array(select r.name from mutirao.member m join mutirao.role r on r.id = m.role where m.person = p.id order by r.name),
      p.disabled_at, p.away_from, p.away_until, (select x.name from mutirao.person x where x.id = p.substitute), mutirao.is_here(p, moment),
      case when s.sees then p.seen_at end,
      case when s.sees then (select count(*) from mutirao.job j where j.person = p.id and j.status = 'running') end,
      case when s.sees then (select count(*) from mutirao.job j where j.offered_to = p.id and j.status = 'ready') end,
      p.revision, p.made_by, p.made_at
    from mutirao.person p, lateral (select sees_all or p.id = persons.actor as sees) s
    where (persons.named is null or p.name = persons.named)
      and (persons.numbered is null or p.id = persons.numbered)
      and (persons.search is null or position(lower(persons.search) in lower(p.name || ' ' || coalesce(p.full_name, ''))) > 0)
      and (persons.role is null or exists (select from mutirao.member m join mutirao.role r on r.id = m.role where r.name = persons.role and m.person = p.id))
      -- Whoever was not seen for so long is not here: the function, which costs more, is asked about the others.
      and (persons.is_here is not true or p.seen_at > moment - interval '15 minutes')
      and (persons.is_here is null or mutirao.is_here(p, moment) = persons.is_here)
      and (persons.is_disabled is null or (p.disabled_at is not null) = persons.is_disabled)
      and (persons.after is null or p.name > persons.after)
    order by p.name limit persons.room;
end $$;
comment on function mutirao.persons(int, text, int, text, text, boolean, boolean, text, int) is
  'Persons by name: all, or by number, in a role, here or not, disabled or not, with a text in their name. E-mail, last request and numbers of items only for administrators and of oneself.';

create or replace function mutirao.roles(
  actor int, named text default null, numbered int default null,
  out id int, out name text, out description text, out members bigint, out revision int, out made_at timestamptz)
returns setof record
language plpgsql stable security definer as $$
#variable_conflict use_column
begin
  if actor is not null then
    perform mutirao.actor(actor);
  end if;
  return query
    select r.id, r.name, r.description, (select count(*) from mutirao.member m where m.role = r.id), r.revision, r.made_at
    from mutirao.role r
    where r.removed_at is null and (roles.named is null or r.name = roles.named) and (roles.numbered is null or r.id = roles.numbered)
    order by r.name;
end $$;
comment on function mutirao.roles(int, text, int) is 'Roles by name, and how many persons are in each.';
