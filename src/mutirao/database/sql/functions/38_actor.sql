-- Who may do what: the one place that decides it, for all that persons do.
--
--   administrator    everything
--   in charge        steers the instance and its items; and so does their substitute while they are away, under their own name
--   holder           finishes, returns, delegates the item
--   offered to       sees and selects the item: a member of its role, the one it is offered to, whoever was invited; and their substitutes
--   participant      sees the instance
--   creator role     starts instances of the flow

create or replace function mutirao.actor(person int) returns mutirao.person
language plpgsql stable as $$
declare
  p mutirao.person;
begin
  select * into p from mutirao.person x where x.id = actor.person;
  if not found then
    perform mutirao.refuse('unknown_person', format('there is no person number %s', person));
  elsif p.disabled_at is not null then
    perform mutirao.refuse('person_disabled', format('"%s" is disabled since %s: an administrator can enable them', p.name, to_char(p.disabled_at, 'YYYY-MM-DD')));
  end if;
  return p;
end $$;
comment on function mutirao.actor(int) is 'The person who acts; refuses one who may not.';

-- Whoever asks of a thousand says when: with a clock in it, it would not be inlined, and cost ten times as much.
create or replace function mutirao.is_away(p mutirao.person, at timestamptz) returns boolean
language sql immutable
return coalesce(p.away_from <= at and coalesce(p.away_until > at, true), false);

create or replace function mutirao.is_away(p mutirao.person) returns boolean
language sql stable
return mutirao.is_away(p, mutirao.now());

create or replace function mutirao.is_here(p mutirao.person, at timestamptz) returns boolean
language sql immutable
return p.disabled_at is null and not coalesce(p.away_from <= at and coalesce(p.away_until > at, true), false)
  and coalesce(p.seen_at > at - interval '15 minutes', false) and coalesce(p.seen_at > p.signed_out_at, true);

create or replace function mutirao.is_here(p mutirao.person) returns boolean
language sql stable
return mutirao.is_here(p, mutirao.now());
comment on function mutirao.is_here(mutirao.person) is 'Active: has asked for something within the last quarter of an hour, and not signed out since.';

create or replace function mutirao.is_administrator(person int) returns boolean
language sql stable
return exists (select from mutirao.member m join mutirao.role r on r.id = m.role and r.name = 'administrator' where m.person = is_administrator.person);

create or replace function mutirao.administrators() returns int[]
language sql stable
return array(select p.id from mutirao.role r join mutirao.member m on m.role = r.id join mutirao.person p on p.id = m.person
  where r.name = 'administrator' and p.disabled_at is null);
comment on function mutirao.administrators() is 'Those who are enabled.';

create or replace function mutirao.stands_for(person int) returns int[]
language sql stable
return array(select stands_for.person union all
  select p.id from mutirao.person p where p.substitute = stands_for.person and p.disabled_at is null and mutirao.is_away(p));
comment on function mutirao.stands_for(int) is 'The person, and those who are away and have this one as their substitute.';

create or replace function mutirao.may_do(person int, j mutirao.job) returns boolean
language sql stable
return exists (
    select from unnest(mutirao.stands_for(person)) s(id)
    where (j.offered_to = s.id or exists (select from mutirao.invited i where i.person = s.id and i.job = j.id)
        or j.offered_to is null and exists (select from mutirao.member m where m.role = j.role and m.person = s.id))
      and not exists (select from mutirao.barred b where b.person = s.id and b.job = j.id))
  and not exists (select from mutirao.barred b where b.person = may_do.person and b.job = j.id);
comment on function mutirao.may_do(int, mutirao.job) is 'Whether a work item is in this person''s list, or would be if nobody held it.';

create or replace function mutirao.is_in_charge(person int, instance bigint) returns boolean
language sql stable
return exists (select from mutirao.charge c where c.instance = is_in_charge.instance and c.person = any (mutirao.stands_for(is_in_charge.person)));
comment on function mutirao.is_in_charge(int, bigint) is 'Whether an instance is this person''s to steer, or that of somebody who is away and for whom they stand in.';

create or replace function mutirao.may_steer(person int, instance bigint) returns boolean
language sql stable
return mutirao.is_in_charge(person, instance) or mutirao.is_administrator(person);

create or replace function mutirao.may_see(person int, instance bigint) returns boolean
language sql stable
return mutirao.may_steer(person, instance)
  or exists (select from mutirao.participation p where p.instance = may_see.instance and p.person = may_see.person)
  or exists (select from mutirao.job j where j.instance = may_see.instance and j.role is not null and mutirao.may_do(may_see.person, j));

create or replace function mutirao.may_create(person int, f mutirao.flow) returns boolean
language sql stable
return exists (select from mutirao.member m where m.role = f.creator_role and m.person = may_create.person) or mutirao.is_administrator(person);

-- What a person may not see is not there for them.
create or replace function mutirao.check_steer(actor int, instance bigint) returns mutirao.person
language plpgsql stable as $$
declare
  p mutirao.person := mutirao.actor(actor);
begin
  if not mutirao.may_see(p.id, instance) then
    perform mutirao.refuse('unknown_instance', format('there is no instance %s', instance));
  elsif not mutirao.may_steer(p.id, instance) then
    perform mutirao.refuse('forbidden', format('only the person in charge of instance %s or an administrator may do this', instance));
  end if;
  return p;
end $$;
comment on function mutirao.check_steer(int, bigint) is 'Refuses whoever may not steer this instance.';
