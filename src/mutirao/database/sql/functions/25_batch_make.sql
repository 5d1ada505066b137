-- Making batches, stopping them and taking them up again.

create or replace function mutirao.check_arguments(kind text, flow int, takes text[], arguments jsonb) returns void
language plpgsql as $$
declare
  odd text;
begin
  if jsonb_typeof(arguments) is distinct from 'object' then
    perform mutirao.refuse('wrong_call', format('the arguments of a batch are a JSON object such as {"change": {"stage": "late"}}: they cannot be %s', left(arguments::text, 100)));
  end if;
  select k into odd from jsonb_object_keys(arguments) k where k <> all (takes) limit 1;
  if odd is not null then
    perform mutirao.refuse('wrong_call', format('a batch of kind "%s" takes no "%s"%s', kind, odd, case when takes <> '{}' then ', but ' || array_to_string(takes, ', ') else '' end));
  elsif kind = 'set' and coalesce(arguments -> 'change', '{}') = '{}' then
    perform mutirao.refuse('wrong_call', 'nothing to set: give {"change": {attribute: value, …}}');
  elsif 'task' = any (takes) and jsonb_typeof(arguments -> 'task') is distinct from 'string' then
    perform mutirao.refuse('wrong_call', format('a batch of kind "%s" needs the name of a task: give {"task": …}', kind));
  elsif jsonb_typeof(arguments -> 'change') <> 'object' then
    perform mutirao.refuse('wrong_type', format('a change is a JSON object of attributes and their values: it cannot be %s', left(arguments ->> 'change', 100)));
  end if;
  select k into odd from jsonb_object_keys(arguments -> 'change') k
  where flow is not null and not exists (select from mutirao.attribute a join mutirao.version v on v.id = a.version where v.flow = check_arguments.flow and a.name = k) limit 1;
  if odd is not null then
    perform mutirao.refuse('unknown_attribute', format('flow "%s" has no attribute "%s"', (select f.name from mutirao.flow f where f.id = flow), odd));
  end if;
end $$;

-- The row as it would be, without a number.
create or replace function mutirao.draft_batch(kind text, filter jsonb, arguments jsonb, reason text, writer text) returns mutirao.batch
language plpgsql as $$
declare
  k record;
  b mutirao.batch;
begin
  select * into k from mutirao.batch_kinds() x where x.kind = draft_batch.kind;
  if not found then
    perform mutirao.refuse('wrong_call', format('there is no batch of kind "%s": there are %s', kind, (select string_agg(x.kind, ', ') from mutirao.batch_kinds() x where x.made_by is null)));
  end if;
  b.kind := kind;
  b.filter := jsonb_strip_nulls(filter);
  b.arguments := coalesce(arguments, '{}');
  b.flow := mutirao.check_filter(b.filter);
  perform mutirao.check_arguments(kind, b.flow, k.takes, b.arguments);
  b.bound := greatest((select max(i.id) from mutirao.instance i), (select max(c.id) from mutirao.closed c), 0);
  b.made_by := writer;
  b.reason := reason;
  b.made_at := mutirao.now();
  return b;
end $$;

create or replace function mutirao.new_batch(kind text, filter jsonb, arguments jsonb, reason text, writer text) returns bigint
language plpgsql as $$
declare
  b mutirao.batch := mutirao.draft_batch(kind, filter, arguments, reason, writer);
  c mutirao.condition;
begin
  insert into mutirao.batch (kind, flow, filter, arguments, bound, made_by, reason, made_at, stepped_at)
  values (b.kind, b.flow, b.filter, b.arguments, b.bound, b.made_by, b.reason, b.made_at, b.made_at) returning * into b;
  c := mutirao.compile_where(b);
  b.function := c.function;
  b.names := c.arguments;
  update mutirao.batch x set function = b.function, names = b.names,
    total = (select (mutirao.count_fitting(b, k.acts_on)).total from mutirao.batch_kinds() k where k.kind = b.kind)
  where x.id = b.id;
  perform pg_notify('mutirao', 'clock');
  return b.id;
end $$;
comment on function mutirao.new_batch(text, jsonb, jsonb, text, text) is 'Makes a batch of any kind. The writer is signed already.';

create or replace function mutirao.refuse_made_otherwise(kind text) returns void
language sql as $$
  select mutirao.refuse('wrong_call', format('a batch of kind "%s" is made by mutirao.%s', k.kind, k.made_by))
  from mutirao.batch_kinds() k where k.kind = refuse_made_otherwise.kind and k.made_by is not null
$$;

create or replace function mutirao.make_batch(kind text, filter jsonb, arguments jsonb default '{}', reason text default null, writer text default session_user) returns bigint
language plpgsql security definer as $$
begin
  perform mutirao.refuse_made_otherwise(kind);
  return mutirao.new_batch(kind, filter, arguments, reason, mutirao.signed(writer));
end $$;
comment on function mutirao.make_batch(text, jsonb, jsonb, text, text) is 'Has something done to all instances that the filter chooses, in the background. Answers the batch.';

create or replace function mutirao.count_batch_within(patience interval, kind text, filter jsonb, arguments jsonb default '{}', out total bigint, out is_exact boolean)
language plpgsql security definer as $$
declare
  b mutirao.batch := mutirao.draft_batch(kind, filter, arguments, null, null);
  c mutirao.condition := mutirao.compile_where(b);
begin
  b.function := c.function;
  b.names := c.arguments;
  select x.total, x.is_exact into total, is_exact from mutirao.batch_kinds() k cross join lateral mutirao.count_fitting(b, k.acts_on, patience) x where k.kind = b.kind;
  perform mutirao.drop_where(b);
end $$;
comment on function mutirao.count_batch_within(interval, text, jsonb, jsonb) is 'To how many instances a batch would do it now; or, if that takes longer, to how many at least. Nothing is made.';

create or replace function mutirao.count_batch(kind text, filter jsonb, arguments jsonb default '{}') returns bigint
language sql security definer
return (mutirao.count_batch_within(null, kind, filter, arguments)).total;
comment on function mutirao.count_batch(text, jsonb, jsonb) is 'To how many instances a batch would do it now. Nothing is made.';

create or replace function mutirao.lock_batch(batch bigint) returns mutirao.batch
language plpgsql as $$
declare
  b mutirao.batch;
begin
  select * into b from mutirao.batch x where x.id = lock_batch.batch for update;
  if not found then
    perform mutirao.refuse('unknown_batch', format('there is no batch %s', batch));
  end if;
  return b;
end $$;

-- A batch that only who defines can make is only theirs to stop and to take up. Clocks drive it whatever role they have (23_batch.sql).
create or replace function mutirao.check_level(b mutirao.batch) returns void
language plpgsql stable as $$
declare
  needed text := (select c.level from mutirao.batch_kinds() k join mutirao.callable c on c.function = k.made_by where k.kind = b.kind);
begin
  if needed = 'define' and not mutirao.is_owner(session_user)
    and not exists (select from mutirao.granted g where g.level = 'define' and pg_has_role(session_user, g.role, 'usage')) then
    raise insufficient_privilege using message = format('batch %s is of kind "%s", which is for roles that may define: "%s" may not', b.id, b.kind, session_user);
  end if;
end $$;

create or replace function mutirao.stop_batch(batch bigint, writer text default session_user) returns void
language plpgsql security definer as $$
declare
  b mutirao.batch := mutirao.lock_batch(batch);
begin
  perform mutirao.check_level(b);
  if b.status <> 'running' then
    perform mutirao.refuse('wrong_call', format('batch %s is %s: only a running one is stopped', batch, b.status));
  end if;
  perform mutirao.end_batch(b, 'stopped', 'stopped by ' || mutirao.signed(writer));
end $$;
comment on function mutirao.stop_batch(bigint, text) is 'Stops a batch where it is: what is done stays done. resume_batch takes it up again.';

create or replace function mutirao.resume_batch(batch bigint, writer text default session_user) returns void
language plpgsql security definer as $$
declare
  b mutirao.batch := mutirao.lock_batch(batch);
  c mutirao.condition;
begin
  perform mutirao.check_level(b);
  if b.status not in ('stopped', 'failed') then
    perform mutirao.refuse('wrong_call', format('batch %s is %s: only one that was stopped or has failed is resumed', batch, b.status));
  end if;
  c := mutirao.compile_where(b);
  update mutirao.batch x set status = 'running', ended_at = null, note = 'resumed by ' || mutirao.signed(writer), function = c.function, names = c.arguments,
    stepped_at = mutirao.now()
  where x.id = b.id;
  perform pg_notify('mutirao', 'clock');
end $$;
comment on function mutirao.resume_batch(bigint, text) is 'Takes up a batch that was stopped or has failed, where it was left.';

create or replace function mutirao.end_batch(b mutirao.batch, status text, note text) returns void
language plpgsql as $$
begin
  update mutirao.batch x set status = end_batch.status, note = coalesce(end_batch.note, x.note), ended_at = mutirao.now(), function = null, names = null
  where x.id = b.id and x.status = 'running';
  perform mutirao.drop_where(b);
end $$;
