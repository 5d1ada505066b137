-- Persons: added, changed, away, disabled and enabled. They are never deleted, since the trace speaks of them.
--
-- Every function names its actor first. Null is the operator, who has the database in hand and may do everything. Whoever changes persons
-- or roles holds the role administrator locked meanwhile: so there is always one left who is enabled, and no circle of substitutes.

create or replace function mutirao.check_administrator(actor int, writer text, own int default null) returns text
language plpgsql stable as $$
declare
  p mutirao.person;
begin
  if actor is null then
    return mutirao.signed(writer);
  end if;
  p := mutirao.actor(actor);
  if p.id is distinct from own and not mutirao.is_administrator(p.id) then
    perform mutirao.refuse('forbidden', 'only an administrator may do this' || case when own is null then '' else ' for somebody else' end);
  end if;
  return mutirao.signed(p.name);
end $$;
comment on function mutirao.check_administrator(int, text, int) is 'Refuses whoever is neither the operator, nor an administrator, nor the person concerned; answers how they sign.';

create or replace function mutirao.lock_people() returns void
language sql as $$
  select from mutirao.role r where r.name = 'administrator' for no key update
$$;
comment on function mutirao.lock_people() is 'Lets persons and roles be changed by one at a time.';

-- A letter that is not seen would let one name pass for another; a space at an end is never meant.
create or replace function mutirao.is_line(line text, longest int) returns boolean
language sql immutable
return length(line) between 1 and longest and line !~ '[\u0001-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]'
  and line !~ '^[ \u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]' and line !~ '[ \u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]$';
comment on function mutirao.is_line(text, int) is 'Whether a text is one line of so many printable characters at most, with no spaces around it.';

create or replace function mutirao.check_line_name(what text, name text) returns void
language plpgsql as $$
begin
  if name is null or not mutirao.is_line(name, 100) or name in ('.', '..') then  -- in an address these would be something else
    perform mutirao.refuse('wrong_call', format('a %s cannot be called "%s": a name is one line of 1 to 100 printable characters, with no spaces around it, and more than dots',
      what, left(regexp_replace(coalesce(name, ''), '[\u0001-\u001f\u007f-\u009f]', '?', 'g'), 100)));
  end if;
end $$;

create or replace function mutirao.lock_person(person int) returns mutirao.person
language plpgsql as $$
declare
  p mutirao.person;
begin
  select * into p from mutirao.person x where x.id = lock_person.person for no key update;
  if not found then
    perform mutirao.refuse('unknown_person', format('there is no person number %s', person));
  end if;
  return p;
end $$;

------------------------------------------------------------------------------------------------------------ who was first

create or replace function mutirao.check_revision(what text, current int, seen int, changes jsonb) returns void
language plpgsql as $$
begin
  if seen <> current then
    perform mutirao.refuse('changed_meanwhile', format('%s is at revision %s, not %s: %s', what, current, seen, coalesce(
      (select string_agg(format('%s changed by %s', replace(c.key, '_', ' '), c.value ->> 'by'), ', ' order by (c.value -> 'revision')::int, c.key)
       from jsonb_each(changes) c where (c.value -> 'revision')::int > seen), 'nothing has changed since, so that was none of its revisions')));
  end if;
end $$;
comment on function mutirao.check_revision(text, int, int, jsonb) is 'Refuses a change that was made for an earlier revision, and tells what has changed since.';

create or replace function mutirao.check_texts(change jsonb, fields text[], says text) returns void
language plpgsql as $$
begin
  if jsonb_typeof(change) is distinct from 'object' or exists (
    select from jsonb_each(change) c where c.key <> all (fields) or jsonb_typeof(c.value) not in ('string', 'null'))
  then
    perform mutirao.refuse('wrong_call', says);
  end if;
end $$;
comment on function mutirao.check_texts(jsonb, text[], text) is 'Refuses a change that is not an object of texts, or nulls, by these names.';

create or replace function mutirao.differing(old jsonb, change jsonb) returns text[]
language sql immutable
return array(select c.key from jsonb_each_text(change) c where c.value is distinct from old ->> c.key);
comment on function mutirao.differing(jsonb, jsonb) is 'What a change would make different.';

create or replace function mutirao.changed(changes jsonb, revision int, what text[], writer text) returns jsonb
language sql stable
return changes || coalesce((select jsonb_object_agg(w, jsonb_build_object('revision', revision, 'by', writer, 'at', mutirao.now())) from unnest(what) w), '{}');
comment on function mutirao.changed(jsonb, int, text[], text) is 'Notes who changed what, and at which revision.';

create or replace function mutirao.note_change(persons int[], roles int[], writer text) returns void
language sql as $$
  update mutirao.person p set revision = p.revision + 1, changes = mutirao.changed(p.changes, p.revision + 1, array['roles'], writer) where p.id = any (persons);
  update mutirao.role r set revision = r.revision + 1, changes = mutirao.changed(r.changes, r.revision + 1, array['members'], writer) where r.id = any (roles);
$$;
comment on function mutirao.note_change(int[], int[], text) is 'Notes that these persons are in other roles now, and these roles have other members.';

------------------------------------------------------------------------------------------------------------------ persons

create or replace function mutirao.check_person(p mutirao.person) returns void
language plpgsql as $$
declare
  taken text := (select x.name from mutirao.person x where lower(x.name) = lower(p.name) and x.id is distinct from p.id);
begin
  perform mutirao.check_line_name('person', p.name);
  if taken is not null then
    perform mutirao.refuse('name_taken', format('there is a person "%s" already%s', taken, case when taken <> p.name then ': capital and small letters do not tell persons apart' end));
  elsif not mutirao.is_line(p.full_name, 200) then
    perform mutirao.refuse('wrong_call', format('person "%s": a full name is one line of 1 to 200 printable characters, with no spaces around it', p.name));
  elsif not (mutirao.is_line(p.email, 254) and p.email ~ '^[^@[:space:]]+@[^@[:space:]]+$') then
    perform mutirao.refuse('wrong_call', format('person "%s": an e-mail address is something@somewhere, of 254 characters at most', p.name));
  end if;
end $$;

create or replace function mutirao.add_person(
  actor int, name text, full_name text default null, email text default null, roles text[] default '{}', writer text default session_user) returns int
language plpgsql security definer as $$
declare
  signature text := mutirao.check_administrator(actor, writer);
  p mutirao.person;
begin
  perform mutirao.lock_people();
  p.name := name;
  p.full_name := full_name;
  p.email := email;
  perform mutirao.check_person(p);
  insert into mutirao.person as x (name, full_name, email, made_by, made_at) values (p.name, p.full_name, p.email, signature, mutirao.now()) returning * into p;
  perform mutirao.put_into_role(actor, mutirao.role_named(format('person "%s"', p.name), r), array[p.id], writer) from unnest(roles) r;
  return p.id;
end $$;
comment on function mutirao.add_person(int, text, text, text, text[], text) is 'Adds a person, in these roles. They sign in once they have a password.';

create or replace function mutirao.change_person(actor int, person int, change jsonb, revision int default null, writer text default session_user) returns int
language plpgsql security definer as $$
declare
  signature text := mutirao.check_administrator(actor, writer, person);
  old mutirao.person;
  p mutirao.person;
  what text[];
begin
  perform mutirao.lock_people();
  old := mutirao.lock_person(person);
  perform mutirao.check_texts(change, '{name,full_name,email}', 'of a person, name, full_name and email are changed so: {"full_name": "…", "email": null}');
  if change ? 'name' and change ->> 'name' is distinct from old.name then
    perform mutirao.check_administrator(actor, writer);
  end if;
  perform mutirao.check_revision(format('person "%s"', old.name), old.revision, revision, old.changes);
  p := jsonb_populate_record(old, change);
  perform mutirao.check_person(p);
  what := mutirao.differing(to_jsonb(old), change);
  if what <> '{}' then
    update mutirao.person x set name = p.name, full_name = p.full_name, email = p.email, revision = x.revision + 1,
      changes = mutirao.changed(x.changes, x.revision + 1, what, signature)
    where x.id = p.id returning * into p;
    perform mutirao.hint(array[p.id], null);
  end if;
  return p.revision;
end $$;
comment on function mutirao.change_person(int, int, jsonb, int, text) is
  'Changes the name, full_name or email of a person, as an object says; answers the revision. Persons change their own full_name and email, administrators everything.';

create or replace function mutirao.check_substitute(p mutirao.person, substitute int) returns void
language plpgsql as $$
declare
  s mutirao.person;
  circle text;
begin
  if substitute is null then return; end if;
  select * into s from mutirao.person x where x.id = check_substitute.substitute;
  if not found then
    perform mutirao.refuse('unknown_person', format('there is no person number %s', substitute));
  elsif s.disabled_at is not null then
    perform mutirao.refuse('wrong_substitute', format('"%s" is disabled, and cannot stand in for "%s"', s.name, p.name));
  end if;
  with recursive chain(id, next, path) as (
    select s.id, s.substitute, array[p.name, s.name]
    union all
    select x.id, x.substitute, c.path || x.name from chain c join mutirao.person x on x.id = c.next where c.id <> p.id)
  select array_to_string(c.path, ' → ') into circle from chain c where c.id = p.id;
  if found then
    perform mutirao.refuse('wrong_substitute', format('these would stand in for each other without end: %s', circle));
  end if;
end $$;
comment on function mutirao.check_substitute(mutirao.person, int) is 'Refuses a substitute who is disabled, or for whom this person stands in already.';

create or replace function mutirao.set_away(
  actor int, person int, away_from timestamptz, away_until timestamptz default null, substitute int default null, revision int default null,
  writer text default session_user) returns int
language plpgsql security definer as $$
declare
  signature text := mutirao.check_administrator(actor, writer, person);
  p mutirao.person;
begin
  perform mutirao.lock_people();
  p := mutirao.lock_person(person);
  perform mutirao.check_revision(format('person "%s"', p.name), p.revision, revision, p.changes);
  if away_from is null and (away_until is not null or substitute is not null) then
    perform mutirao.refuse('wrong_call', format('since when "%s" is away has to be said, too', p.name));
  elsif away_until <= away_from then
    perform mutirao.refuse('wrong_call', format('"%s" cannot be back, at %s, before being away, at %s', p.name, away_until, away_from));
  end if;
  perform mutirao.check_substitute(p, substitute);
  if (p.away_from, p.away_until, p.substitute) is distinct from (set_away.away_from, set_away.away_until, set_away.substitute) then
    update mutirao.person x set away_from = set_away.away_from, away_until = set_away.away_until, substitute = set_away.substitute,
      revision = x.revision + 1, changes = mutirao.changed(x.changes, x.revision + 1, array['away'], signature)
    where x.id = p.id returning x.revision into p.revision;
    perform mutirao.hint(array[p.id, p.substitute, substitute], null);
  end if;
  return p.revision;
end $$;
comment on function mutirao.set_away(int, int, timestamptz, timestamptz, int, int, text) is
  'Says from when until when a person is away, and who sees their work meanwhile; all null: they are back. Answers the revision.';

create or replace function mutirao.set_disabled(actor int, person int, is_to_be boolean, revision int, writer text) returns int
language plpgsql as $$
declare
  signature text := mutirao.check_administrator(actor, writer);
  p mutirao.person;
begin
  perform mutirao.lock_people();
  p := mutirao.lock_person(person);
  perform mutirao.check_revision(format('person "%s"', p.name), p.revision, revision, p.changes);
  if (p.disabled_at is not null) = is_to_be then return p.revision; end if;
  update mutirao.person x set disabled_at = case when is_to_be then mutirao.now() end, revision = x.revision + 1,
    changes = mutirao.changed(x.changes, x.revision + 1, array['disabled'], signature)
  where x.id = p.id returning x.revision into p.revision;
  if is_to_be then
    if mutirao.is_administrator(p.id) then
      perform mutirao.check_administrators_left();
    end if;
    perform mutirao.drop_sessions(p.id, null, null);
    delete from mutirao_secret.token t where t.person = p.id;
    perform mutirao.give_back(array[p.id], null, signature, 'disabled');
  end if;
  return p.revision;
end $$;

create or replace function mutirao.disable_person(actor int, person int, revision int default null, writer text default session_user) returns int
language plpgsql security definer as $$
begin
  return mutirao.set_disabled(actor, person, true, revision, writer);
end $$;
comment on function mutirao.disable_person(int, int, int, text) is
  'From now on they may do nothing and are offered nothing: their sessions and tokens end, and what they hold goes back to its role. Answers the revision.';

create or replace function mutirao.enable_person(actor int, person int, revision int default null, writer text default session_user) returns int
language plpgsql security definer as $$
begin
  return mutirao.set_disabled(actor, person, false, revision, writer);
end $$;
comment on function mutirao.enable_person(int, int, int, text) is 'Lets a disabled person sign in again, with the password they had. Answers the revision.';

-- Whoever selects an item at the very moment in which they are disabled or leave its role may come through: a clock looks after them (clock_access).
-- It does not wait, and takes nobody what they may do for another reason.
create or replace function mutirao.give_back(persons int[], role int, writer text, why text, waits boolean default true) returns int
language plpgsql as $$
declare
  jobs bigint[];
  locked bigint[];
  freed mutirao.job[];
begin
  jobs := array(
    select j.id from mutirao.job j where j.person = any (persons) and j.status = 'running' and (give_back.role is null or j.role = give_back.role)
    union select j.id from mutirao.job j where j.offered_to = any (persons) and j.status <> 'running' and (give_back.role is null or j.role = give_back.role));
  if jobs = '{}' then return 0; end if;
  if waits then
    locked := array(select i.id from mutirao.instance i where i.id in (select j.instance from mutirao.job j where j.id = any (jobs)) order by i.id for no key update);
  else
    locked := array(select i.id from mutirao.instance i where i.id in (select j.instance from mutirao.job j where j.id = any (jobs)) order by i.id for no key update skip locked);
  end if;
  -- Out of one role, a person keeps what is theirs for another reason: invited, or in charge of what is late.
  freed := array(
    select j from mutirao.job j
    where j.id = any (jobs) and j.instance = any (locked)
      and (j.status = 'running' and j.person = any (persons) or j.status <> 'running' and j.offered_to = any (persons))
      and (give_back.role is null or not coalesce(j.transferred and j.offered_to = any (persons), false)
        and not exists (select from mutirao.invited v where v.job = j.id and v.person = coalesce(j.person, j.offered_to))
        and (waits or not mutirao.may_do(coalesce(j.person, j.offered_to), j)))
    order by j.id for update);
  perform mutirao.note_item(j, 'return', writer, jsonb_build_object('from', p.name, 'reason', why))
  from unnest(freed) j join mutirao.person p on p.id = case when j.status = 'running' then j.person else j.offered_to end;
  perform mutirao.put_back(array_agg(j.id), array_agg(j.attempt)) from unnest(freed) j where j.status = 'running' having count(*) > 0;
  update mutirao.job x set person = null, reserved = null, offered_to = case when x.transferred and x.offered_to <> all (persons) then x.offered_to end
  from unnest(freed) j where x.id = j.id;
  perform mutirao.follow_version(array(select j.id from unnest(freed) j));
  perform mutirao.hint(persons, array(select distinct j.role from unnest(freed) j));
  return cardinality(freed);
end $$;
comment on function mutirao.give_back(int[], int, text, text, boolean) is
  'What these persons hold and what is offered to them alone, of one role or of all, is for its whole role again. Answers how many items that were.';
