-- Queries: attributes whose rows come from another database, when a job that takes them begins.
--
-- The databases are named by whoever may define. Their addresses are secret, and told only to who holds a job that asks one.

create or replace function mutirao.put_source(name text, url text, timeout interval default interval '10 seconds', writer text default session_user) returns void
language plpgsql security definer as $$
begin
  if name is null or name !~ '^[^[:cntrl:]]{1,100}$' or name <> btrim(name) then
    perform mutirao.refuse('wrong_call', 'a database is called by one line of 1 to 100 characters, without spaces around it');
  elsif coalesce(url, '') = '' then
    perform mutirao.refuse('wrong_call', format('database "%s" needs its address, such as postgresql://reader@host/name', name));
  elsif timeout is null or timeout <= interval '0' or timeout > interval '1 hour' then
    perform mutirao.refuse('wrong_call', format('database "%s": a query may take up to an hour, and more than nothing: got %s', name, timeout));
  end if;
  insert into mutirao_secret.source as s (name, url, timeout, made_by, made_at) values (put_source.name, put_source.url, put_source.timeout, mutirao.signed(writer), mutirao.now())
  on conflict on constraint source_pkey do update set url = excluded.url, timeout = excluded.timeout, made_by = excluded.made_by, made_at = excluded.made_at;
end $$;
comment on function mutirao.put_source(text, text, interval, text) is 'Names a database that flows may ask, or puts another in its place. Give the address of a role that may only read.';

-- One that is taken away later changes nothing about the flows that are in place.
create or replace function mutirao.check_source(attribute text, database text) returns void
language plpgsql as $$
declare
  known text[] := array(select s.name from mutirao_secret.source s order by 1);
begin
  if database is not null and database <> all (known) then
    perform mutirao.refuse('unknown_database', format('attribute "%s": there is no database "%s"; %s', attribute, database,
      coalesce('did you mean "' || mutirao.nearest_name(database, known) || '"?', 'name it first, by mutirao database add')));
  end if;
end $$;

create or replace function mutirao.remove_source(name text) returns void
language plpgsql security definer as $$
begin
  delete from mutirao_secret.source s where s.name = remove_source.name;
  if not found then
    perform mutirao.refuse('unknown_database', format('there is no database "%s"', name));
  end if;
end $$;
comment on function mutirao.remove_source(text) is 'Takes the name of a database away. Jobs that would ask it fail.';

create or replace function mutirao.sources(out name text, out url text, out timeout interval, out made_by text, out made_at timestamptz, out flows text[]) returns setof record
language sql stable security definer
begin atomic
  select s.name, s.url, s.timeout, s.made_by, s.made_at,
    array(select distinct f.name from mutirao.flow f join mutirao.attribute a on a.version = f.version where a.query ->> 'database' = s.name order by 1)
  from mutirao_secret.source s order by s.name;
end;
comment on function mutirao.sources() is 'The databases that flows may ask, and which flows do.';

create or replace function mutirao.queries_of(job bigint, attempt bigint, out attribute text, out database text, out expression text, out url text, out timeout interval, out state jsonb)
returns setof record
language sql stable security definer
begin atomic
  select a.name, a.query ->> 'database', a.query ->> 'expression', s.url, s.timeout, i.state
  from mutirao.job j join mutirao.instance i on i.id = j.instance join mutirao.rule r on r.version = i.version and r.task = j.task
  join mutirao.attribute a on a.version = i.version and a.query is not null and (r.inputs is null or a.name = any (r.inputs))
  left join mutirao_secret.source s on s.name = a.query ->> 'database'
  where j.id = queries_of.job and j.attempt = queries_of.attempt and j.status = 'running'
    and not exists (select from mutirao.trace t where t.instance = i.id and t.kind = 'query' and t.attempt = j.attempt)
  order by a.position;
end;
comment on function mutirao.queries_of(bigint, bigint) is 'What must be asked before the work of a job begins, once in each attempt, and where: for who holds it. Parameters are bound from the state.';

-- Written as a set is, so that a settle refuses it as it refuses a set; but told in the trace for what it is.
create or replace function mutirao.fill(job bigint, attempt bigint, change jsonb, writer text default session_user) returns jsonb
language plpgsql security definer as $$
declare
  j mutirao.job;
  i mutirao.instance;
  w mutirao.work;
  stray text;
begin
  select * into j from mutirao.job x where x.id = fill.job and x.attempt = fill.attempt and x.status = 'running';
  if found then
    i := mutirao.lock_instance(j.instance);
    select * into j from mutirao.job x where x.id = fill.job and x.attempt = fill.attempt and x.status = 'running';
  end if;
  if not found then
    perform mutirao.refuse('lease_lost', format('attempt %s of job %s is not the current one', attempt, job));
  end if;
  select k into stray from jsonb_object_keys(change) k
  where not exists (select from mutirao.attribute a where a.version = i.version and a.name = k and a.query is not null) limit 1;
  if stray is not null then
    perform mutirao.refuse('wrong_output', format('attribute "%s" is not read by a query', stray));
  end if;
  w := mutirao.work_of(i, 'set', mutirao.signed(writer), jsonb_build_object('attributes', (select jsonb_agg(k) from jsonb_object_keys(change) k)));
  w.job := j.id;
  w.task := j.task;
  w.attempt := j.attempt;
  w.cause := j.cause;
  w.change := change;
  perform mutirao.write(w);
  update mutirao.trace t set kind = 'query' where t.instance = i.id and t.kind = 'set' and t.attempt = j.attempt;
  return (select t.state from mutirao.trace t where t.instance = i.id and t.id = j.cause) || change;
end $$;
comment on function mutirao.fill(bigint, bigint, jsonb, text) is
  'Writes what queries gave to a job that is about to begin. Answers the state that the job works on.';
