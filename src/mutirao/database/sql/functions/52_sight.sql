-- What a person may see of instances, and whether it is still what they saw when they change it.

create or replace function mutirao.check_see(actor int, instance bigint) returns void
language plpgsql stable security definer as $$
declare
  p mutirao.person := mutirao.actor(actor);
begin
  if not mutirao.may_see(p.id, instance) then
    perform mutirao.refuse('unknown_instance', format('there is no instance %s', instance));
  end if;
end $$;
comment on function mutirao.check_see(int, bigint) is 'Refuses whoever may not see an instance: for them there is none.';

create or replace function mutirao.seen_among(actor int, instances bigint[]) returns setof bigint
language sql stable security definer
begin atomic
  select n from unnest(instances) n
  where (exists (select from mutirao.instance i where i.id = n) or exists (select from mutirao.closed c where c.id = n)) and mutirao.may_see(actor, n);
end;
comment on function mutirao.seen_among(int, bigint[]) is 'Which of these instances a person may see.';

create or replace function mutirao.check_see_job(actor int, job bigint) returns void
language plpgsql stable security definer as $$
declare
  p mutirao.person := mutirao.actor(actor);
  of_instance bigint := (select j.instance from mutirao.job j where j.id = check_see_job.job);
begin
  if of_instance is null or not mutirao.may_see(p.id, of_instance) then
    perform mutirao.refuse('unknown_job', format('there is no job %s; it may have ended', job));
  end if;
end $$;
comment on function mutirao.check_see_job(int, bigint) is 'Refuses whoever may not see a job.';

create or replace function mutirao.check_see_flow(actor int, flow text) returns void
language plpgsql stable security definer as $$
declare
  p mutirao.person := mutirao.actor(actor);
  f mutirao.flow;
begin
  select * into f from mutirao.flow x where x.name = check_see_flow.flow;
  if f.id is null or not mutirao.may_create(p.id, f) then
    perform mutirao.refuse('unknown_flow', format('there is no flow "%s"', left(flow, 100)));
  end if;
end $$;
comment on function mutirao.check_see_flow(int, text) is 'Refuses whoever may not start a flow: they have no business with its definition.';

create or replace function mutirao.startable(actor int) returns setof int
language sql stable security definer
begin atomic
  select f.id from mutirao.flow f where mutirao.may_create(actor, f);
end;
comment on function mutirao.startable(int) is 'The flows that a person may start.';

create or replace function mutirao.kin(actor int, instance bigint, out parent bigint, out children bigint[])
language sql stable security definer
begin atomic
  select (select c.parent from mutirao.child c where c.instance = kin.instance and (actor is null or mutirao.may_see(actor, c.parent))),
    array(select c.instance from mutirao.child c where c.parent = kin.instance and c.instance is not null and (actor is null or mutirao.may_see(actor, c.instance)) order by 1);
end;
comment on function mutirao.kin(int, bigint) is 'Which instance this one does a job for, and which do jobs of it: of those that a person may see; actor null: of all.';

-- What somebody would want to have seen before they steer it: what it says, and who steers it.
create or replace function mutirao.last_change(instance bigint) returns mutirao.trace
language sql stable
return (select t from mutirao.trace t where t.instance = last_change.instance and (t.state is not null or t.kind = 'hand_over') order by t.id desc limit 1);
comment on function mutirao.last_change(bigint) is 'The row of the trace that is the revision of an instance.';

create or replace function mutirao.stance(actor int, instance bigint, out in_charge text, out may_steer boolean, out revision bigint)
language plpgsql stable security definer as $$
begin
  perform mutirao.check_see(actor, instance);
  select p.name into in_charge from mutirao.charge c join mutirao.person p on p.id = c.person where c.instance = stance.instance;
  may_steer := mutirao.may_steer(actor, instance);
  revision := (mutirao.last_change(instance)).id;
end $$;
comment on function mutirao.stance(int, bigint) is
  'Who is in charge of an instance, whether this person steers it, and which row of the trace changed it or its person in charge last. Refuses whoever may not see it.';

-- Its transaction changes the instance next: nobody else can in between.
create or replace function mutirao.check_unchanged(actor int, instance bigint, seen bigint) returns void
language plpgsql security definer as $$
declare
  last mutirao.trace;
begin
  perform mutirao.check_see(actor, instance) where actor is not null;
  perform from mutirao.instance i where i.id = check_unchanged.instance for no key update;
  last := mutirao.last_change(instance);
  if last.id is distinct from seen then
    perform mutirao.refuse('changed_meanwhile', format('instance %s was changed since revision %s: last by "%s" at %s, which made revision %s', instance, seen, last.writer,
      to_char(last.at, 'YYYY-MM-DD HH24:MI:SS TZ'), last.id));
  end if;
end $$;
comment on function mutirao.check_unchanged(int, bigint, bigint) is
  'Refuses whoever has not seen the newest state of an instance, and locks it for them otherwise. actor: a person, who must be allowed to see it; null: a program.';

create or replace function mutirao.interests(actor int, out persons int[], out roles int[])
language sql stable security definer
begin atomic
  select s.ids, array(select distinct m.role from mutirao.member m where m.person = any (s.ids)) from (select mutirao.stands_for(actor) as ids) s;
end;
comment on function mutirao.interests(int) is 'Which hints concern a person: those for whom they stand, and the roles of all of these.';
