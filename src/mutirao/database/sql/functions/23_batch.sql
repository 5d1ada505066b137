-- Batches: one thing done to all instances that a filter chooses, a few at a time, by whoever is there to do it.
--
-- A batch is a row that says what, to which, and how far it has come. Any process takes it one step further in one short transaction:
-- it locks the row (a second one passes on), picks the next instances by number, locks those that nobody is writing, asks the filter
-- again, acts, and moves the cursor. Killed at any statement, nothing is half done. Instances that were busy are kept in a list and come
-- back at the end. Clocks drive every running batch, so it goes on when whoever made it is gone.
--
-- To add a kind:
--   1. a line in mutirao.batch_kinds: its name; whether it acts on `open` or `closed` instances; how many a step takes at most (a step must
--      stay well below 200 ms); the arguments it takes; the function that makes it, where mutirao.make_batch is not to (or null)
--   2. a function mutirao.batch_<kind>(b mutirao.batch, instances bigint[]) returns setof mutirao.batch_outcome
-- It is given instances that are locked (`for no key update`, in mutirao.closed `for update`), fit the filter and are not being cancelled, and
-- acts on all of them in a few statements. It answers only those it did not act on: refused with a code and a message; without
-- a code because there was nothing to do; or with the code `busy`, to come back to it at the end. It may also raise a refusal, or fail on a value: then its work is undone and it is called again
-- with fewer, until those that it concerns are found. Any other error ends the batch as `failed`; it can be resumed. Who makes batches from SQL of his own
-- calls mutirao.new_batch.
--
-- Its neighbours: which instances a filter chooses (24_batch_filter.sql), how a batch is made, stopped and resumed (25_batch_make.sql), what the
-- kinds do (26_batch_kind.sql).

create or replace function mutirao.batch_kinds() returns table (kind text, acts_on text, most int, takes text[], made_by text)
language sql immutable as $$
  values
    ('cancel',  'open', 200, '{}'::text[], null),
    ('drop',    'closed', 100, '{closed_before}', 'drop_instances'),
    ('suspend', 'open', 200, '{}', null),
    ('resume',  'open', 200, '{}', null),
    ('set',     'open', 200, '{change}', null),
    ('repair',  'open', 50,  '{change}', null),
    ('retry',   'open', 200, '{}', null),
    ('skip',    'open', 50,  '{change}', null),
    ('roll_back', 'open', 20, '{safe_point}', null),
    ('start_task', 'open', 50, '{task}', null),
    ('go_back', 'open', 50,  '{task}', null),
    ('migrate', 'open', 100, '{to,tasks,attributes}', 'migrate_flow'),
    ('look',    'closed', 500, '{version}', 'turn_clock')
$$;

-- Who waits here for an instance would have others wait for what it holds already.
create or replace function mutirao.lock_free(acts_on text, instances bigint[]) returns bigint[]
language plpgsql as $$
declare
  locked bigint[];
begin
  if acts_on = 'open' then
    locked := array(select i.id from mutirao.instance i where i.id = any (instances) order by i.id for no key update skip locked);
    if exists (select from mutirao.recheck) then
      perform mutirao.catch_up(locked);
    end if;
    return locked;
  end if;
  return array(select c.id from mutirao.closed c where c.id = any (instances) order by c.id for update skip locked);
end $$;

-- All of them in one go. Only where that is refused it is taken apart, half by half, until what is refused is found.
create or replace function mutirao.act(b mutirao.batch, instances bigint[]) returns mutirao.batch_outcome[]
language plpgsql as $$
declare
  half int := cardinality(instances) / 2;
  outcomes mutirao.batch_outcome[] := '{}';
begin
  if instances = '{}' then return outcomes; end if;
  begin
    execute format('select coalesce(array_agg(o), ''{}'') from mutirao.batch_%s($1, $2) o', b.kind) into outcomes using b, instances;
    return outcomes;
  exception when others then
    if sqlstate like 'MU%' then
      outcomes := array[row(instances[1], split_part(sqlerrm, ': ', 1), substr(sqlerrm, strpos(sqlerrm, ': ') + 2))::mutirao.batch_outcome];
    elsif left(sqlstate, 2) in ('22', '54') then  -- a value that the server cannot work with, or that is too large for it
      outcomes := array[row(instances[1], 'condition_failed', format('instance %s: %s', instances[1], sqlerrm))::mutirao.batch_outcome];
    else
      raise;
    end if;
  end;
  if half = 0 then return outcomes; end if;
  return mutirao.act(b, instances[:half]) || mutirao.act(b, instances[half + 1:]);
end $$;

create or replace function mutirao.take_step(b mutirao.batch, room int) returns int
language plpgsql as $$
declare
  k record;
  is_scanning boolean := b.after < b.bound and cardinality(b.busy) < 10000;
  next bigint[];
  picked bigint[] := '{}';
  scanned int := 0;
  fit record;
  free bigint[];
  later bigint[];
  outcomes mutirao.batch_outcome[];
  not_done int;
begin
  select x.acts_on, least(room, x.most) as room into k from mutirao.batch_kinds() x where x.kind = b.kind;
  if is_scanning then
    -- As far as it takes to find enough, but where few fit, not for ever.
    while b.after < b.bound and cardinality(picked) < k.room and scanned < 20 * k.room loop
      next := mutirao.next_instances(b, k.acts_on, 2 * k.room);
      fit := mutirao.fit_filter(b, k.acts_on, next);
      -- What it raises on is picked too, to be locked, asked once more and told.
      picked := (picked || array(select n from unnest(fit.fitting || fit.raising) n order by n))[:k.room];
      b.after := case
        when cardinality(picked) = k.room then picked[k.room]
        when cardinality(next) < 2 * k.room then b.bound
        else next[cardinality(next)] end;
      scanned := scanned + cardinality(next);
    end loop;
    next := picked;
  else
    next := b.busy[:k.room];
    b.busy := b.busy[k.room + 1:];
  end if;
  free := mutirao.lock_free(k.acts_on, next);
  -- A new statement, and so a new snapshot: from here on everything about these instances is ours.
  b.busy := b.busy || mutirao.fit_plainly(b, k.acts_on, array(select n from unnest(next) n where n <> all (free)));
  fit := mutirao.fit_filter(b, k.acts_on, free);
  outcomes := mutirao.act(b, fit.fitting) || array(
    select row(r, 'condition_failed', 'the `where` of the filter raises an error on its state')::mutirao.batch_outcome from unnest(fit.raising) r);
  later := array(select o.instance from unnest(outcomes) o where o.code = 'busy');
  if later <> '{}' then
    b.busy := b.busy || later;
    fit.fitting := array(select n from unnest(fit.fitting) n where n <> all (later));
    free := array(select n from unnest(free) n where n <> all (later));
    outcomes := array(select o from unnest(outcomes) o where o.code is distinct from 'busy');
  end if;
  not_done := (select count(*) from unnest(outcomes) o where o.code is not null);
  insert into mutirao.batch_refusal (batch, instance, code, message)
  select b.id, o.instance, o.code, o.message from unnest(outcomes) o where o.code is not null order by o.instance limit greatest(1000 - b.refused, 0)
  on conflict do nothing;
  update mutirao.batch x set after = b.after, busy = b.busy, stepped_at = mutirao.now(), refused = x.refused + not_done,
    done = x.done + cardinality(fit.fitting) + cardinality(fit.raising) - cardinality(outcomes),
    skipped = x.skipped + cardinality(outcomes) - not_done + cardinality(free) - cardinality(fit.fitting) - cardinality(fit.raising)
  where x.id = b.id;
  if b.after >= b.bound and b.busy = '{}' then
    perform mutirao.end_batch(b, 'finished', null);
  end if;
  return cardinality(free);
end $$;

create or replace function mutirao.step_batch(batch bigint, room int default 200) returns int
language plpgsql security definer as $$
declare
  b mutirao.batch;
begin
  select * into b from mutirao.batch x where x.id = step_batch.batch and x.status = 'running' for update skip locked;
  if not found then return null; end if;
  return mutirao.take_step(b, greatest(room, 1));
exception
  when deadlock_detected or serialization_failure or lock_not_available or operator_intervention or insufficient_resources then
    raise;  -- it may well go better next time
  when others then
    perform mutirao.end_batch(b, 'failed', sqlerrm);
    return 0;
end $$;
comment on function mutirao.step_batch(bigint, int) is
  'Takes a running batch one step further, in one short transaction. Answers to how many instances it came; null when it is not running, or another is at it.';

-- Not at full speed: a batch is there to be done, not to be in the way. One that nobody asked for rests nine times as long as a step took.
create or replace function mutirao.clock_batches(room int, out done int, out next_at timestamptz)
language plpgsql as $$
declare
  began timestamptz := mutirao.stopwatch();
  b record;
begin
  select x.id, k.made_by = 'turn_clock' as rests into b from mutirao.batch x join mutirao.batch_kinds() k on k.kind = x.kind
  where x.status = 'running' and coalesce(x.rest_until <= began, true) order by x.stepped_at limit 1 for update of x skip locked;
  done := coalesce(mutirao.step_batch(b.id, room), 0);
  if b.rests then
    update mutirao.batch x set rest_until = mutirao.stopwatch() + 9 * (mutirao.stopwatch() - began) where x.id = b.id;
  end if;
  next_at := mutirao.now() + (select min(greatest(x.rest_until - mutirao.stopwatch(), interval '50 milliseconds')) from mutirao.batch x where x.status = 'running');
end $$;
