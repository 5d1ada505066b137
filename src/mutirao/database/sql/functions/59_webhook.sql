-- Webhooks: messages sent on by HTTP. What is to be sent is a row; whoever sends takes some for a while and says how it went.
--
-- At least once: a sender that is killed leaves its rows to the next. Each try has a number, and only the last one ends the delivery.

create or replace function mutirao.message_kinds() returns text[]
language sql immutable
return array['instance_started', 'instance_ended', 'task_failed', 'deadline', 'exception', 'transferred', 'delegated', 'offered', 'taken', 'in_charge'];

-- Whose webhooks one may see to: one's own; administrators and the operator (null), all.
create or replace function mutirao.webhook_for(actor int, webhook int) returns mutirao.webhook
language plpgsql stable as $$
declare
  w mutirao.webhook;
begin
  perform mutirao.actor(actor) where actor is not null;
  select * into w from mutirao.webhook x where x.id = webhook_for.webhook and (actor is null or x.person = actor or mutirao.is_administrator(actor));
  if not found then
    perform mutirao.refuse('unknown_webhook', format('there is no webhook %s', webhook));
  end if;
  return w;
end $$;

create or replace function mutirao.put_webhook(actor int, url text, secret bytea, kinds text[] default null, person int default null, writer text default session_user) returns int
language plpgsql security definer as $$
#variable_conflict use_column
declare
  signature text := mutirao.check_administrator(actor, writer, person);
  target text := lower(substring(url from '^https?://[^/?#@\s]+(?=$|[/?#])'));
  wrong text := (select k from unnest(kinds) k where k <> all (mutirao.message_kinds()) limit 1);
  made int;
begin
  perform mutirao.actor(put_webhook.person) where put_webhook.person is not null;
  if target is null or url ~ '[[:space:][:cntrl:]]' or length(url) > 2000 then
    perform mutirao.refuse('wrong_url', 'a webhook has an address such as https://example.org/hook: http or https, without a name and password, of at most 2000 characters');
  elsif wrong is not null then
    perform mutirao.refuse('wrong_call', format('there are no messages of the kind "%s": they are %s', wrong, array_to_string(mutirao.message_kinds(), ', ')));
  elsif octet_length(secret) not between 24 and 64 then
    perform mutirao.refuse('wrong_call', 'the secret of a webhook has 24 to 64 bytes');
  elsif (select count(*) from mutirao.webhook w where w.person is not distinct from put_webhook.person) >= 10 then
    perform mutirao.refuse('wrong_call', 'there are ten webhooks for these messages already: remove one first');
  end if;
  insert into mutirao.webhook (person, target, kinds, made_by, made_at) values (put_webhook.person, target, put_webhook.kinds, signature, mutirao.now()) returning id into made;
  insert into mutirao_secret.webhook (id, url, secret) values (made, put_webhook.url, put_webhook.secret);
  return made;
end $$;
comment on function mutirao.put_webhook(int, text, bytea, text[], int, text) is
  'Lets messages be sent on to an address: those of a person, or of everybody; of some kinds, or of all. The secret signs them.';

create or replace function mutirao.webhooks(actor int, webhook int default null)
returns table (id int, person text, target text, kinds text[], paused boolean, made_by text, made_at timestamptz, waiting bigint, given_up bigint, sent_at timestamptz)
language sql stable security definer begin atomic
  select w.id, p.name, w.target, w.kinds, w.paused, w.made_by, w.made_at,
    (select count(*) from mutirao.delivery d where d.webhook = w.id and d.status = 'waiting'), (select count(*) from mutirao.delivery d where d.webhook = w.id and d.status = 'given_up'),
    (select d.ended_at from mutirao.delivery d where d.webhook = w.id and d.status = 'sent' order by d.id desc limit 1)
  from mutirao.webhook w left join mutirao.person p on p.id = w.person
  where (actor is null or w.person = actor or mutirao.is_administrator(actor)) and (webhooks.webhook is null or w.id = webhooks.webhook) order by w.id;
end;
comment on function mutirao.webhooks(int, int) is 'The webhooks that an actor may see to, with how many messages wait and were given up, and when one was received last.';

create or replace function mutirao.webhook_address(actor int, webhook int, out url text, out secret bytea)
language plpgsql security definer as $$
declare
  w mutirao.webhook := mutirao.webhook_for(actor, webhook);
begin
  select s.url, s.secret into url, secret from mutirao_secret.webhook s where s.id = w.id;
end $$;
comment on function mutirao.webhook_address(int, int) is 'The address and the secret of a webhook, for those whose it is.';

create or replace function mutirao.pause_webhook(actor int, webhook int, paused boolean default true) returns void
language plpgsql security definer as $$
declare
  w mutirao.webhook := mutirao.webhook_for(actor, webhook);
begin
  update mutirao.webhook x set paused = pause_webhook.paused where x.id = w.id;
  update mutirao.delivery d set due_at = case when not pause_webhook.paused then mutirao.now() end where d.webhook = w.id and d.status = 'waiting' and (d.due_at is null) <> pause_webhook.paused;
end $$;
comment on function mutirao.pause_webhook(int, int, boolean) is 'Lets a webhook send nothing, or go on. What comes meanwhile is kept for it.';

create or replace function mutirao.drop_webhook(actor int, webhook int) returns void
language plpgsql security definer as $$
declare
  w mutirao.webhook := mutirao.webhook_for(actor, webhook);
begin
  delete from mutirao.webhook x where x.id = w.id;
end $$;
comment on function mutirao.drop_webhook(int, int) is 'Takes a webhook away, with what it has still to send.';

create or replace function mutirao.try_webhook(actor int, webhook int) returns bigint
language plpgsql security definer as $$
declare
  w mutirao.webhook := mutirao.webhook_for(actor, webhook);
  made bigint;
begin
  insert into mutirao.delivery (webhook, made_at, due_at) values (w.id, mutirao.now(), mutirao.now()) returning id into made;
  return made;
end $$;
comment on function mutirao.try_webhook(int, int) is 'Sends a webhook a message that says nothing. Answers the number of the delivery.';

create or replace function mutirao.retry_deliveries(actor int, webhook int, delivery bigint default null) returns bigint
language plpgsql security definer as $$
declare
  w mutirao.webhook := mutirao.webhook_for(actor, webhook);
  again bigint;
begin
  -- The number of tries goes on, for each has its own; and what is on its way stays there.
  update mutirao.delivery d set status = 'waiting', ended_at = null, made_at = mutirao.now(), due_at = case when not w.paused then mutirao.now() end
  where d.webhook = w.id and (d.id = retry_deliveries.delivery or retry_deliveries.delivery is null and d.status = 'given_up')
    and not (d.status = 'waiting' and d.tries > 0 and d.error is null and d.due_at > mutirao.now());
  get diagnostics again = row_count;
  return again;
end $$;
comment on function mutirao.retry_deliveries(int, int, bigint) is 'Sends again what a webhook has given up, or one delivery whatever became of it, unless it is just being sent. Answers how many.';

------------------------------------------------------------------------------------------------------------------ sending

create or replace function mutirao.delivery_content(message bigint) returns jsonb
language sql stable
return coalesce((
  select jsonb_build_object('id', m.id, 'kind', m.kind, 'person', p.name, 'sender', m.sender, 'instance', m.instance, 'job', m.job, 'task', t.name, 'flow', f.name, 'text', m.text, 'note', m.note, 'at', m.at)
  from mutirao.message m join mutirao.person p on p.id = m.person left join mutirao.task t on t.id = m.task
  left join (select i.id, i.flow from mutirao.instance i union all select c.id, c.flow from mutirao.closed c) i on i.id = m.instance left join mutirao.flow f on f.id = i.flow
  where m.id = message), '{"kind": "trial", "text": "This is a trial: nothing has happened."}');

-- Of each webhook only so many at a time, and none of those that keep the sender busy: one that does not answer must not hold up the others.
-- What is on its way has no error until its try has ended.
create or replace function mutirao.take_deliveries(room int, each int, lease interval, busy int[] default '{}', single bigint default null)
returns table (delivery bigint, try int, webhook int, url text, secret bytea, content jsonb)
language plpgsql security definer as $$
#variable_conflict use_column
declare
  at timestamptz := mutirao.now();
begin
  return query
  with having_some as materialized (
    select x.webhook from mutirao.delivery x join mutirao.webhook w on w.id = x.webhook left join mutirao.person p on p.id = w.person
    where x.due_at <= at and x.webhook <> all (busy) and p.disabled_at is null and (take_deliveries.single is null or x.id = take_deliveries.single)
    group by x.webhook order by min(x.due_at) limit room),
  due as (
    select d.id from having_some h cross join lateral (
      select x.id from mutirao.delivery x where x.webhook = h.webhook and x.due_at <= at and (take_deliveries.single is null or x.id = take_deliveries.single)
      order by x.due_at limit each for update skip locked) d
    limit room),
  taken as (
    update mutirao.delivery d set tries = d.tries + 1, due_at = at + lease, error = null from due where d.id = due.id returning d.id, d.tries, d.webhook, d.message)
  select t.id, t.tries, t.webhook, s.url, s.secret, mutirao.delivery_content(t.message)
  from taken t join mutirao_secret.webhook s on s.id = t.webhook order by t.id;
end $$;
comment on function mutirao.take_deliveries(int, int, interval, int[], bigint) is
  'Takes up to `room` deliveries that are due, `each` of a webhook, to be sent within the lease; then others may send them again.';

create or replace function mutirao.pause_after(tries int) returns interval
language sql volatile
return least(interval '5 seconds' * 3 ^ least(tries - 1, 10), interval '3 hours') * (0.75 + random() / 2);
comment on function mutirao.pause_after(int) is 'How long a delivery rests after so many tries: three times as long each time, up to three hours or so, and never all at once.';

create or replace function mutirao.end_delivery(delivery bigint, try int, answer int, error text) returns text
language plpgsql security definer as $$
#variable_conflict use_column
declare
  at timestamptz := mutirao.now();
  outcome text;
begin
  update mutirao.delivery d set answer = end_delivery.answer, error = left(end_delivery.error, 500),
    status = s.status, ended_at = case when s.status <> 'waiting' then at end,
    due_at = case when s.status = 'waiting' and not w.paused then at + mutirao.pause_after(d.tries) end
  from mutirao.webhook w, mutirao.delivery o cross join lateral (select case when end_delivery.error is null then 'sent' when at >= o.made_at + interval '1 day' then 'given_up' else 'waiting' end as status) s
  where d.id = end_delivery.delivery and d.tries = end_delivery.try and d.status = 'waiting' and w.id = d.webhook and o.id = d.id
  returning d.status into outcome;
  return outcome;
end $$;
comment on function mutirao.end_delivery(bigint, int, int, text) is
  'How a try went: without an error it was received; otherwise it is tried again for a day, then given up. Null: somebody else has it by now.';
