-- Signing in, sessions, tokens. Passwords are hashed by whoever calls, since PostgreSQL has no argon2; here is what must be decided with
-- the tables in hand. Secrets are known here by their SHA-256 alone.

create or replace function mutirao.hours(setting text) returns interval
language sql stable
return (select make_interval(mins => round((s.value)::numeric * 60)::int) from mutirao.setting s where s.name = hours.setting);

create or replace function mutirao.clock_access(room int, out done int, out next_at timestamptz)
language plpgsql as $$
begin
  with old as (
    select s.id from mutirao_secret.session s
    where s.seen_at < mutirao.now() - mutirao.hours('session_idle_hours') or s.made_at < mutirao.now() - mutirao.hours('session_hours') limit room for update skip locked),
  swept as (delete from mutirao_secret.session s using old o where s.id = o.id returning 1)
  select count(*) into done from swept;
  with old as (
    select a.kind, a.key from mutirao_secret.attempt a where a.at < mutirao.now() - interval '15 minutes' limit room for update skip locked),
  swept as (delete from mutirao_secret.attempt a using old o where a.kind = o.kind and a.key = o.key returning 1)
  select done + count(*) into done from swept;
  with old as (
    select t.id from mutirao_secret.token t where t.expires_at < mutirao.now() - interval '30 days' limit room for update skip locked),
  swept as (delete from mutirao_secret.token t using old o where t.id = o.id returning 1)
  select done + count(*) into done from swept;
  done := done + (
    select coalesce(mutirao.give_back(array_agg(p.id), null, 'clock', 'disabled', waits => false), 0)
    from mutirao.person p where p.disabled_at > mutirao.now() - interval '10 minutes');
end $$;
comment on function mutirao.clock_access(int) is 'Forgets sessions and failed attempts that are over, and tokens a month after; gives back what somebody took while being disabled.';
