-- Creations over HTTP that are asked for twice. The answer is written in the transaction that made the thing: there is one exactly where the
-- other is, whenever the server dies.

create or replace function mutirao.recall_answer(actor int, key text, route text, body bytea, out status int, out headers jsonb, out content bytea)
language plpgsql security definer as $$
declare
  kept mutirao_secret.answer;
begin
  if not pg_try_advisory_xact_lock(hashtextextended(format('mutirao.answer %s %s', actor, key), 0)) then
    perform mutirao.refuse('key_under_way', format('the request with the key "%s" is still under way: ask again for its answer', left(key, 100)));
  end if;
  delete from mutirao_secret.answer a where a.person = actor and a.key = recall_answer.key and a.at <= mutirao.now() - interval '24 hours';
  select * into kept from mutirao_secret.answer a where a.person = actor and a.key = recall_answer.key;
  if kept.route <> route or kept.body <> body then
    perform mutirao.refuse('key_reused', format('the key "%s" was used for another request, %s at %s: a new request needs a new key', left(key, 100), kept.route, to_char(kept.at, 'YYYY-MM-DD HH24:MI:SS TZ')));
  elsif kept.key is not null and kept.content is null then
    perform mutirao.refuse('shown_once', format('the request with the key "%s" was done at %s; its answer held a secret, which is shown once, or was erased', left(key, 100), to_char(kept.at, 'YYYY-MM-DD HH24:MI:SS TZ')));
  end if;
  status := kept.status;
  headers := kept.headers;
  content := kept.content;
end $$;
comment on function mutirao.recall_answer(int, text, text, bytea) is
  'What a request of this key was answered; null where it is the first. Until the transaction ends, no other of the key is let in.';

create or replace function mutirao.keep_answer(actor int, key text, route text, body bytea, status int, headers jsonb, content bytea) returns void
language sql security definer
begin atomic
  insert into mutirao_secret.answer (person, key, route, body, status, headers, content, at) values (actor, key, route, body, status, headers, content, mutirao.now());
end;
comment on function mutirao.keep_answer(int, text, text, bytea, int, jsonb, bytea) is 'Keeps an answer for a day; null content: it was a secret.';

create or replace function mutirao.clock_answers(room int, out done int, out next_at timestamptz)
language plpgsql as $$
begin
  delete from mutirao_secret.answer a where (a.person, a.key) in (
    select x.person, x.key from mutirao_secret.answer x where x.at <= mutirao.now() - interval '24 hours' order by x.at limit room for update skip locked);
  get diagnostics done = row_count;
  select min(a.at) + interval '24 hours' into next_at from mutirao_secret.answer a;
end $$;
comment on function mutirao.clock_answers(int) is 'Forgets the answers that are older than a day.';
