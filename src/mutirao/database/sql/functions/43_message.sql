-- Messages: notices to persons, written in the transaction that did what they tell, kept until they are read, and sent on by webhooks.
--
--   instance_started, instance_ended, task_failed, exception     to the person in charge; of a child only what calls for them
--   deadline                                                     to whoever holds the item, and to the person in charge
--   offered, delegated, transferred, taken                       to whom an item came alone, and from whom it was taken
--   in_charge                                                    to whom an instance was handed over
--
-- An engine without persons pays one look at an empty table for each batch that ends instances, and one where a job fails for good.

create or replace function mutirao.sender_of(instance bigint) returns text
language sql stable
return coalesce((select min(k.key) from mutirao.key k where k.instance = sender_of.instance), instance::text);
comment on function mutirao.sender_of(bigint) is 'What an instance is called in messages: its key, or its number.';

create or replace function mutirao.moment_words(at timestamptz) returns text
language sql stable
return to_char(at at time zone 'UTC', 'YYYY-MM-DD HH24:MI "UTC"');

-- The one place where messages are written.
create or replace function mutirao.tell(messages mutirao.message[]) returns void
language plpgsql as $$
declare
  now timestamptz := mutirao.now();
  persons int[];
begin
  if messages is null then return; end if;
  with told as (
    insert into mutirao.message (person, kind, instance, job, task, sender, text, note, at)
    select m.person, m.kind, m.instance, m.job, m.task, mutirao.sender_of(m.instance), m.text, m.note, now from unnest(messages || mutirao.for_substitutes(messages)) m
    returning id, person, kind),
  sent_on as (
    insert into mutirao.delivery (webhook, message, made_at, due_at)
    select w.id, t.id, now, case when not w.paused then now end
    from told t join mutirao.webhook w on (w.person is null or w.person = t.person) and (w.kinds is null or t.kind = any (w.kinds))
    where not exists (select from mutirao.person p where p.id = w.person and p.disabled_at is not null))
  select array_agg(distinct t.person) into persons from told t;
  perform mutirao.hint(persons, null);
end $$;
comment on function mutirao.tell(mutirao.message[]) is 'Sends messages: keeps them, calls whoever is here, and puts them on their way to webhooks.';

create or replace function mutirao.message_to(person int, kind text, instance bigint, text text, note jsonb default null, job bigint default null, task int default null) returns mutirao.message
language sql immutable
return row(null, person, kind, instance, job, task, null, text, note, null, null)::mutirao.message;

create or replace function mutirao.item_message(person int, kind text, j mutirao.job, says text, note jsonb default null) returns mutirao.message
language sql stable
return mutirao.message_to(person, kind, j.instance, format('Task %s of instance %s, %s, %s.', (select t.name from mutirao.task t where t.id = j.task), j.instance,
  (select f.name from mutirao.flow f where f.id = j.flow), says), note, j.id, j.task);

-- Whoever is away may not read in time what calls for somebody: it goes to their substitute as well, unless that one is told anyhow.
create or replace function mutirao.for_substitutes(messages mutirao.message[]) returns mutirao.message[]
language sql stable as $$
  select array(
    select mutirao.message_to(p.substitute, m.kind, m.instance, format('For "%s", who is away: %s', p.name, m.text), m.note, m.job, m.task)
    from unnest(messages) m join mutirao.person p on p.id = m.person join mutirao.person s on s.id = p.substitute and s.disabled_at is null
    where mutirao.is_away(p) and m.kind in ('task_failed', 'exception', 'deadline', 'transferred', 'delegated', 'offered', 'in_charge')
      and not exists (select from unnest(messages) x where x.person = p.substitute and (x.kind, x.instance) = (m.kind, m.instance) and x.job is not distinct from m.job))
$$;
comment on function mutirao.for_substitutes(mutirao.message[]) is 'Of these messages those that concern the substitutes of persons who are away, as they are told.';

----------------------------------------------------------------------------------------- what befalls an instance and its jobs

-- The instances need not be there yet.
create or replace function mutirao.tell_started(instances bigint[], flow text) returns void
language sql as $$
  select mutirao.tell(array_agg(mutirao.message_to(c.person, 'instance_started', c.instance, format('Instance %s of %s has started.', c.instance, flow)) order by c.instance))
  from mutirao.charge c where c.instance = any (instances)
$$;

create or replace function mutirao.end_words(status mutirao.instance_status) returns text
language sql immutable
return case status when 'closed.completed' then 'completed' when 'closed.aborted' then 'cancelled' when 'closed.terminated' then 'undone' end;

-- Of a child's end its parent tells, if it tells anything: it goes on, or its task has failed.
create or replace function mutirao.tell_ended(instances bigint[]) returns void
language sql as $$
  select mutirao.tell(array_agg(mutirao.message_to(c.person, 'instance_ended', x.id, format('Instance %s of %s has ended: it was %s.', x.id, f.name, mutirao.end_words(x.status)),
    jsonb_build_object('status', x.status)) order by x.id))
  from mutirao.charge c join mutirao.closed x on x.id = c.instance join mutirao.flow f on f.id = x.flow
  where c.instance = any (instances) and not exists (select from mutirao.child k where k.instance = x.id)
$$;

create or replace function mutirao.is_trouble(s mutirao.verdict) returns boolean
language sql immutable
return s.kind = 'fail' or s.outcome in ('stuck', 'runaway', 'raised') or s.attempt is not null and s.problem is not null and mutirao.is_parking(s);
comment on function mutirao.is_trouble(mutirao.verdict) is 'Whether the person in charge should know: a job has failed for good, or the instance has become an exception otherwise.';

-- Jobs that have failed are still there, whatever their instances came to.
create or replace function mutirao.tell_troubles(special mutirao.verdict[]) returns void
language sql as $$
  select mutirao.tell(array_agg(case when s.kind = 'fail'
    then mutirao.item_message(c.person, 'task_failed', j, format('has failed: %s%s', mutirao.error_words(j.error), case when s.task = any (v.handled) then '; another task handles that' else '' end),
      jsonb_strip_nulls(jsonb_build_object('code', j.error -> 'code', 'error', mutirao.error_words(j.error), 'handled', s.task = any (v.handled))))
    else mutirao.message_to(c.person, 'exception', s.instance, format('Instance %s of %s cannot go on: %s.', s.instance, f.name, case s.outcome
        when 'stuck' then 'nothing is pending, and no condition holds' when 'runaway' then 'it has fired too often without an end'
        else coalesce(mutirao.error_words(s.problem), s.problem ->> 'code') end), jsonb_build_object('code', case s.outcome when 'stuck' then 'nothing_fires' when 'runaway' then 'runaway' else s.problem ->> 'code' end))
    end order by s.instance))
  from unnest(special) s join mutirao.charge c on c.instance = s.instance join mutirao.version v on v.id = s.version join mutirao.flow f on f.id = s.flow
  left join mutirao.job j on j.id = s.job
  where mutirao.is_trouble(s) and (s.kind <> 'fail' or j.id is not null)
$$;

------------------------------------------------------------------------------------------------------- items that come and go

create or replace function mutirao.tell_offered(jobs bigint[]) returns void
language sql as $$
  select mutirao.tell(array_agg(mutirao.item_message(j.offered_to, 'offered', j, 'is offered to you alone') order by j.id))
  from mutirao.job j where j.id = any (jobs) and j.offered_to is not null
$$;

-- Nobody is told of what they did themselves.
create or replace function mutirao.tell_moved(j mutirao.job, by mutirao.person, recipient int, reason text) returns void
language sql as $$
  select mutirao.tell(array_agg(mutirao.item_message(w.person, w.kind, j, format(w.says, by.name) || coalesce(': ' || left(reason, 1000), ''), jsonb_build_object('by', by.name))))
  from (
    select recipient, 'delegated', 'is yours now, delegated by "%s"'
    union all select j.person, 'taken', 'was taken from you by "%s"' where j.status = 'running') w(person, kind, says)
  where w.person is not null and w.person <> by.id
$$;
comment on function mutirao.tell_moved(mutirao.job, mutirao.person, int, text) is 'Tells whom an item came to, and who has it no more.';

------------------------------------------------------------------------------------------------------------------ reading

create or replace function mutirao.read_messages(actor int, messages bigint[] default null, up_to bigint default null) returns bigint
language plpgsql security definer as $$
declare
  p mutirao.person := mutirao.actor(actor);
  marked bigint;
begin
  if (messages is null) = (up_to is null) then
    perform mutirao.refuse('wrong_call', 'give the numbers of messages, or the one up to which all are read');
  elsif exists (select from unnest(messages) n where not exists (select from mutirao.message m where m.id = n and m.person = p.id)) then
    perform mutirao.refuse('unknown_message', format('there is no message %s for you', (
      select n from unnest(messages) n where not exists (select from mutirao.message m where m.id = n and m.person = p.id) limit 1)));
  end if;
  update mutirao.message m set read_at = mutirao.now() where m.person = p.id and m.read_at is null and (m.id = any (messages) or m.id <= up_to);
  get diagnostics marked = row_count;
  if marked > 0 then
    perform mutirao.hint(array[p.id], null);
  end if;
  return marked;
end $$;
comment on function mutirao.read_messages(int, bigint[], bigint) is 'A person marks messages of theirs as read: these, or all up to one. Answers how many were not yet.';

create or replace function mutirao.unread_messages(person int) returns bigint
language sql stable security definer
return (select count(*) from (select from mutirao.message m where m.person = unread_messages.person and m.read_at is null limit 1000) m);
comment on function mutirao.unread_messages(int) is 'How many messages a person has not read; 1000 stands for as many or more.';

-- What nobody has read is kept.
create or replace function mutirao.clock_messages(room int, out done int, out next_at timestamptz)
language plpgsql as $$
declare
  oldest timestamptz := mutirao.now() - (select make_interval(secs => 86400 * s.value::float8) from mutirao.setting s where s.name = 'keep_messages');
begin
  with gone as (
    delete from mutirao.message m where m.id in (select x.id from mutirao.message x where x.read_at < oldest order by x.read_at limit room for update skip locked) returning 1),
  ended as (
    delete from mutirao.delivery d where d.id in (select x.id from mutirao.delivery x where x.ended_at < oldest order by x.ended_at limit room for update skip locked) returning 1)
  select (select count(*) from gone) + (select count(*) from ended) into done;
  if done > 0 then
    next_at := mutirao.now() + interval '1 second';
  end if;
end $$;
comment on function mutirao.clock_messages(int) is 'Forgets messages that were read so long ago, and what became of their sending.';
