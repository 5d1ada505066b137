-- Signing in, sessions, tokens. Passwords are hashed by whoever calls, since PostgreSQL has no argon2; here is what must be decided with
-- the tables in hand. Secrets are known here by their SHA-256 alone.

create or replace function mutirao.hours(setting text) returns interval
language plpgsql stable as $$
begin
  return (select s.value::float8 * interval '1 hour' from mutirao.setting s where s.name = hours.setting);
end $$;
comment on function mutirao.hours(text) is 'A setting in hours. In plpgsql, which keeps its plan: every request asks it.';

create or replace function mutirao.clock_access(room int, out done int, out next_at timestamptz)
language plpgsql as $$
declare
  now_at timestamptz := mutirao.now();
  idle_since timestamptz := now_at - mutirao.hours('session_idle_hours');
  made_before timestamptz := now_at - mutirao.hours('session_hours');
begin
  with old as (
    select s.id from mutirao_secret.session s where s.seen_at < idle_since or s.made_at < made_before limit room for update skip locked),
  swept as (delete from mutirao_secret.session s using old o where s.id = o.id returning 1)
  select count(*) into done from swept;
  with old as (
    select a.kind, a.key from mutirao_secret.attempt a where a.at < now_at - case when a.kind = 'known' then interval '60 days' else interval '15 minutes' end limit room for update skip locked),
  swept as (delete from mutirao_secret.attempt a using old o where a.kind = o.kind and a.key = o.key returning 1)
  select done + count(*) into done from swept;
  with old as (
    select t.id from mutirao_secret.token t where t.expires_at < now_at - interval '30 days' limit room for update skip locked),
  swept as (delete from mutirao_secret.token t using old o where t.id = o.id returning 1)
  select done + count(*) into done from swept;
  done := done + (
    select coalesce(mutirao.give_back(array_agg(p.id), null, 'clock', 'disabled', waits => false), 0)
    from mutirao.person p where p.disabled_at > now_at - interval '10 minutes');
  done := done + (
    select coalesce(sum(mutirao.give_back(d.persons, d.role, 'clock', format('out of the role "%s"', d.name), waits => false)), 0)
    from (select x.role, r.name, array_agg(x.person) as persons from mutirao.departure x join mutirao.role r on r.id = x.role group by x.role, r.name) d);
  with old as (select x.role, x.person from mutirao.departure x where x.at < now_at - interval '10 minutes' limit room for update skip locked)
  delete from mutirao.departure d using old o where (d.role, d.person) = (o.role, o.person);
end $$;
comment on function mutirao.clock_access(int) is 'Forgets sessions and failed attempts that are over, and tokens a month after; gives back what somebody took while being disabled or leaving its role.';

---------------------------------------------------------------------------------------------------------------- attempts

-- Whoever tries is counted before it is known whether they fail: a hundred who try at once are a hundred. The row's lock keeps the count.
create or replace function mutirao.count_attempt(kind text, key bytea, most int) returns timestamptz
language plpgsql as $$
declare
  tried_at timestamptz := mutirao.now();
  a mutirao_secret.attempt;
begin
  insert into mutirao_secret.attempt as x (kind, key, times, at) values (kind, key, '{}', tried_at)
  on conflict on constraint attempt_pkey do update set times = array(select t from unnest(x.times) t where t > excluded.at - interval '15 minutes' order by t)
  returning * into a;
  if cardinality(a.times) >= most then
    return a.times[1] + interval '15 minutes';
  end if;
  update mutirao_secret.attempt x set times = x.times || tried_at, at = tried_at where x.kind = count_attempt.kind and x.key = count_attempt.key;
  return null;
end $$;
comment on function mutirao.count_attempt(text, bytea, int) is 'Counts an attempt to sign in, or answers when the next may be made: so many within a quarter of an hour are allowed.';

-- However it is spelt, it is one person: or each spelling would be a guess more.
create or replace function mutirao.name_key(name text) returns bytea
language sql immutable
return sha256(convert_to(lower(name), 'UTF8'));

create or replace function mutirao.both(name text, origin text) returns bytea
language sql immutable
return mutirao.name_key(name) || sha256(convert_to(coalesce(origin, ''), 'UTF8'));
comment on function mutirao.both(text, text) is 'What a name at an address is counted by. All of one name begin alike.';

-- Five guesses at a name from one address are enough, and they keep nobody out who is somewhere else. A name that is guessed at from
-- everywhere is shut, too, but not where its person has come from before: or anybody could shut out anybody.
-- The refusal would undo the counting, so it is answered and not raised.
create or replace function mutirao.begin_sign_in(name text, origin text, out person int, out hash text, out wait_until timestamptz)
language plpgsql security definer as $$
begin
  -- Always in this order. Who has to wait at one counts against none of the next.
  if origin is not null then
    wait_until := mutirao.count_attempt('address', sha256(convert_to(origin, 'UTF8')), 20);
  end if;
  if wait_until is null then
    wait_until := mutirao.count_attempt('both', mutirao.both(name, origin), 5);
  end if;
  if wait_until is null and not exists (select from mutirao_secret.attempt a where a.kind = 'known' and a.key = mutirao.both(name, origin)) then
    wait_until := mutirao.count_attempt('name', mutirao.name_key(name), 200);
  end if;
  if wait_until is null then
    select p.id, w.hash into person, hash from mutirao.person p join mutirao_secret.password w on w.person = p.id
    where lower(p.name) = lower(begin_sign_in.name) and p.disabled_at is null;
  end if;
end $$;
comment on function mutirao.begin_sign_in(text, text) is
  'Somebody tries to sign in. Answers the hash that the password must have, null for whoever cannot sign in; or until when to wait, after too many attempts.';

create or replace function mutirao.forget_attempts(name text, origin text) returns void
language sql as $$
  -- Of the address only this attempt: or whoever has an account could try those of others for ever.
  update mutirao_secret.attempt a set times = a.times[:cardinality(a.times) - 1] where a.kind = 'address' and a.key = sha256(convert_to(origin, 'UTF8'));
  delete from mutirao_secret.attempt a where a.kind = 'both' and a.key = mutirao.both(name, origin);
  insert into mutirao_secret.attempt (kind, key, times, at) values ('known', mutirao.both(name, origin), '{}', mutirao.now())
  on conflict on constraint attempt_pkey do update set at = excluded.at;
$$;
comment on function mutirao.forget_attempts(text, text) is 'The last attempt of this name from this origin was none of a stranger.';

create or replace function mutirao.forget_attempts(name text) returns void
language sql as $$
  -- In the order of begin_sign_in, so that neither waits for the other.
  delete from mutirao_secret.attempt a
  where a.kind = 'both' and a.key between mutirao.name_key(name) and mutirao.name_key(name) || decode(repeat('ff', 32), 'hex');
  delete from mutirao_secret.attempt a where a.kind = 'name' and a.key = mutirao.name_key(name);
$$;
comment on function mutirao.forget_attempts(text) is 'Whatever was tried by this name, from wherever, counts no more.';

create or replace function mutirao.finish_sign_in(
  person int, verified text, name text, origin text, secret bytea, address text default null, agent text default null, new_hash text default null) returns bigint
language plpgsql security definer as $$
declare
  p mutirao.person := mutirao.lock_person(person);
  session bigint;
begin
  if p.disabled_at is not null or not exists (select from mutirao_secret.password w where w.person = p.id and w.hash = verified) then
    perform mutirao.refuse('wrong_credentials', 'name and password do not go together');  -- changed in this very moment
  end if;
  perform mutirao.forget_attempts(name, origin);
  update mutirao_secret.password w set hash = new_hash where w.person = p.id and new_hash is not null;
  update mutirao.person x set seen_at = mutirao.now() where x.id = p.id;
  insert into mutirao_secret.session as s (person, hash, address, agent, made_at, seen_at)
  values (p.id, secret, left(address, 200), left(agent, 500), mutirao.now(), mutirao.now()) returning s.id into session;
  return session;
end $$;
comment on function mutirao.finish_sign_in(int, text, text, text, bytea, text, text, text) is
  'The password had the hash that begin_sign_in answered: a session begins. new_hash replaces one with parameters of yesterday.';

---------------------------------------------------------------------------------------------------------------- passwords

create or replace function mutirao.set_password(actor int, person int, hash text, keep bigint default null, writer text default session_user) returns void
language plpgsql security definer as $$
declare
  signature text := mutirao.check_administrator(actor, writer, person);
  p mutirao.person := mutirao.lock_person(person);
begin
  insert into mutirao_secret.password as w (person, hash, set_at) values (p.id, set_password.hash, mutirao.now())
  on conflict on constraint password_pkey do update set hash = excluded.hash, set_at = excluded.set_at;
  perform mutirao.drop_sessions(p.id, null, keep);
  perform mutirao.forget_attempts(p.name);
  update mutirao.person x set revision = x.revision + 1, changes = mutirao.changed(x.changes, x.revision + 1, array['password'], signature) where x.id = p.id;
end $$;
comment on function mutirao.set_password(int, int, text, bigint, text) is
  'Gives a person the password that has this argon2 hash, and ends all their sessions but the one to keep. Tokens stay.';

create or replace function mutirao.has_administrator() returns boolean
language sql stable
return mutirao.administrators() <> '{}';

create or replace function mutirao.first_administrator(name text, hash text, writer text default session_user) returns int
language plpgsql security definer as $$
declare
  made int;
  free text;
begin
  perform mutirao.lock_people();
  if not mutirao.has_administrator() then
    select n into free from (select first_administrator.name union all select format('%s_%s', first_administrator.name, k) from generate_series(2, 1000) k) x(n)
    where not exists (select from mutirao.person p where lower(p.name) = lower(n)) limit 1;
    made := mutirao.add_person(null, free, roles => array['administrator'], writer => writer);
    perform mutirao.set_password(null, made, hash, writer => writer);
  end if;
  return made;
end $$;
comment on function mutirao.first_administrator(text, text, text) is 'Makes a person who is an administrator if there is none who is enabled; else answers null. Where the name is taken, a number is put behind it.';

----------------------------------------------------------------------------------------------------------------- sessions

create or replace function mutirao.is_live(s mutirao_secret.session) returns boolean
language plpgsql stable as $$
declare
  at timestamptz := mutirao.now();
begin
  return s.seen_at > at - mutirao.hours('session_idle_hours') and s.made_at > at - mutirao.hours('session_hours');
end $$;

-- Every request asks this, so it is one statement; and that somebody is here is written once a minute at most, and never waited for.
create or replace function mutirao.authenticate(
  kind text, secret bytea, out person int, out name text, out roles text[], out is_administrator boolean, out session bigint, out token bigint)
language plpgsql security definer as $$
declare
  at timestamptz := mutirao.now();
  last timestamptz;
begin
  if kind = 'session' then
    select s.person, s.id, s.seen_at into person, session, last from mutirao_secret.session s where s.hash = secret and mutirao.is_live(s);
  else
    select t.person, t.id, t.used_at into person, token, last from mutirao_secret.token t where t.hash = secret and (t.expires_at is null or t.expires_at > at);
  end if;
  select p.name, coalesce(array_agg(r.name order by r.name) filter (where r.id is not null), '{}') into name, roles
  from mutirao.person p left join mutirao.member m on m.person = p.id left join mutirao.role r on r.id = m.role
  where p.id = authenticate.person and p.disabled_at is null group by p.id;
  if not found then
    perform mutirao.refuse('not_signed_in', case when kind = 'session' then 'there is no such session, or it has ended: sign in' else 'there is no such token, or it has expired or was revoked' end);
  end if;
  is_administrator := 'administrator' = any (roles);
  if coalesce(last < at - interval '1 minute', true) then
    update mutirao_secret.session s set seen_at = at where s.id = (select x.id from mutirao_secret.session x where x.id = session for update skip locked);
    update mutirao_secret.token t set used_at = at where t.id = (select x.id from mutirao_secret.token x where x.id = token for update skip locked);
    update mutirao.person p set seen_at = at where p.id = (select x.id from mutirao.person x where x.id = authenticate.person for no key update skip locked);
  end if;
end $$;
comment on function mutirao.authenticate(text, bytea) is 'Who has this session or token, by the SHA-256 of its secret; refuses one that is unknown or over.';

create or replace function mutirao.sessions(
  actor int, person int, out id bigint, out address text, out agent text, out made_at timestamptz, out seen_at timestamptz) returns setof record
language plpgsql stable security definer as $$
#variable_conflict use_column
begin
  perform mutirao.check_administrator(sessions.actor, null, sessions.person);
  return query select s.id, s.address, s.agent, s.made_at, s.seen_at from mutirao_secret.session s where s.person = sessions.person and mutirao.is_live(s) order by s.seen_at desc, s.id desc;
end $$;
comment on function mutirao.sessions(int, int) is 'Where a person is signed in: for oneself and administrators.';

create or replace function mutirao.drop_sessions(person int, session bigint, but bigint) returns int
language plpgsql as $$
declare
  ended int;
begin
  delete from mutirao_secret.session s
  where s.person = drop_sessions.person and (drop_sessions.session is null or s.id = drop_sessions.session) and s.id is distinct from but;
  get diagnostics ended = row_count;
  if not exists (select from mutirao_secret.session s where s.person = drop_sessions.person and mutirao.is_live(s)) then
    update mutirao.person p set signed_out_at = mutirao.now() where p.id = drop_sessions.person;
  end if;
  return ended;
end $$;
comment on function mutirao.drop_sessions(int, bigint, bigint) is 'Ends one session of a person, or all but one. Whoever has none left is not here any more.';

create or replace function mutirao.end_sessions(actor int, person int, session bigint default null, but bigint default null) returns int
language plpgsql security definer as $$
declare
  ended int;
begin
  perform mutirao.check_administrator(actor, null, person);
  ended := mutirao.drop_sessions(person, session, but);
  if ended = 0 and session is not null then
    perform mutirao.refuse('unknown_session', format('there is no session %s of this person; it may have ended', session));
  end if;
  return ended;
end $$;
comment on function mutirao.end_sessions(int, int, bigint, bigint) is 'Signs a person out: of one session, or everywhere, but for one if so wished. Answers how many that were.';

------------------------------------------------------------------------------------------------------------------- tokens

create or replace function mutirao.add_token(
  actor int, person int, name text, secret bytea, expires_at timestamptz default null, writer text default session_user) returns bigint
language plpgsql security definer as $$
declare
  signature text := mutirao.check_administrator(actor, writer, person);
  p mutirao.person := mutirao.actor(person);
  made bigint;
begin
  perform mutirao.check_line_name('token', name);
  perform mutirao.lock_person(person);
  if exists (select from mutirao_secret.token t where t.person = p.id and t.name = add_token.name) then
    perform mutirao.refuse('name_taken', format('"%s" has a token "%s" already: revoke it first', p.name, name));
  elsif expires_at <= mutirao.now() then
    perform mutirao.refuse('wrong_call', format('token "%s" would have expired already, at %s', name, to_char(expires_at, 'YYYY-MM-DD HH24:MI TZ')));
  end if;
  insert into mutirao_secret.token as t (person, name, hash, made_by, made_at, expires_at)
  values (p.id, add_token.name, secret, signature, mutirao.now(), add_token.expires_at) returning t.id into made;
  return made;
end $$;
comment on function mutirao.add_token(int, int, text, bytea, timestamptz, text) is 'Lets a program act as a person, by a token whose secret has this SHA-256.';

create or replace function mutirao.tokens(
  actor int, person int, out id bigint, out name text, out made_by text, out made_at timestamptz, out expires_at timestamptz, out used_at timestamptz) returns setof record
language plpgsql stable security definer as $$
#variable_conflict use_column
begin
  perform mutirao.check_administrator(tokens.actor, null, tokens.person);
  return query select t.id, t.name, t.made_by, t.made_at, t.expires_at, t.used_at from mutirao_secret.token t where t.person = tokens.person order by t.name;
end $$;
comment on function mutirao.tokens(int, int) is 'The tokens by which programs act as a person, without their secrets: for oneself and administrators.';

create or replace function mutirao.revoke_token(actor int, person int, name text) returns void
language plpgsql security definer as $$
begin
  perform mutirao.check_administrator(actor, null, person);
  delete from mutirao_secret.token t where t.person = revoke_token.person and t.name = revoke_token.name;
  if not found then
    perform mutirao.refuse('unknown_token', format('this person has no token "%s"%s', name,
      coalesce((select '; there is ' || string_agg(t.name, ', ' order by t.name) from mutirao_secret.token t where t.person = revoke_token.person), '')));
  end if;
end $$;
comment on function mutirao.revoke_token(int, int, text) is 'Ends what a program may do by a token, from now on.';
