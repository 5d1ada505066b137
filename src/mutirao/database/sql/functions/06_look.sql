-- Looking: which tasks fire on a state, whether it is final, and what is wrong with it.

create or replace function mutirao.version_words(version int) returns text
language sql stable as $$
  select case when f.version = v.id then 'the flow' else format('version %s of the flow, which this instance keeps,', v.number) end
  from mutirao.version v join mutirao.flow f on f.id = v.flow where v.id = version_words.version
$$;

-- Only reached when a look has raised: finds out what is wrong with one row, by asking one thing after another.
create or replace function mutirao.diagnose(w mutirao.work) returns jsonb
language plpgsql as $$
declare
  a record;
  r record;
  ignored text;
begin
  if jsonb_typeof(w.change) <> 'object' then
    return jsonb_build_object('code', 'wrong_type', 'error', format('a change is a JSON object of attributes and their values: it cannot be %s', left(w.change::text, 100)));
  end if;
  if mutirao.too_large(w) is not null then
    return mutirao.too_large(w);
  end if;
  for a in
    select k.name, t.type, w.change -> k.name as value
    from jsonb_object_keys(w.change) k(name) left join mutirao.attribute t on t.version = w.version and t.name = k.name
  loop
    if a.type is null then
      return jsonb_build_object('code', 'unknown_attribute', 'attribute', a.name, 'error', format('%s has no attribute "%s"; it has %s', mutirao.version_words(w.version), a.name,
        (select string_agg(x.name, ', ' order by x.position) from mutirao.attribute x where x.version = w.version)));
    end if;
    begin
      if a.type <> 'json' and jsonb_typeof(a.value) not in ('null', mutirao.json_kind(a.type)) or a.type in ('date', 'timestamp') and a.value #>> '{}' !~ '^[0-9]' then
        perform mutirao.invalid_change();
      end if;
      execute format('select (r.v)::text from jsonb_to_record(jsonb_build_object(''v'', $1)) as r(v %s)', mutirao.sql_type(a.type)) into ignored using a.value;
      if not mutirao.is_in_calendar(a.value #>> '{}', a.type) then
        return jsonb_build_object('code', 'wrong_type', 'attribute', a.name, 'error', format('attribute "%s" is a %s in a year from 1 to 9999: it cannot be %s', a.name, a.type, left(a.value::text, 100)));
      end if;
    exception when others then
      return jsonb_build_object('code', 'wrong_type', 'attribute', a.name, 'error', format('attribute "%s" is of type %s: it cannot be %s', a.name, a.type, left(a.value::text, 100)));
    end;
    if mutirao.has_huge_number(a.value) then
      return jsonb_build_object('code', 'wrong_type', 'attribute', a.name, 'error', format('attribute "%s" cannot be a number of more than 1000 digits, nor have one inside', a.name));
    end if;
    if a.type = 'file' and jsonb_typeof(a.value) = 'object' and w.kind <> 'migrate' and mutirao.file_problem(a.value) is not null then
      return mutirao.file_problem_words(a.name, a.value);
    end if;
  end loop;
  for a in select t.name from mutirao.attribute t where t.version = w.version and t.required and coalesce(jsonb_typeof(w.state -> t.name) = 'null', true) order by t.position loop
    return jsonb_build_object('code', case when w.change is null then 'condition_failed' else 'missing_attribute' end, 'attribute', a.name, 'error', format('attribute "%s" is required: give it a value', a.name));
  end loop;
  -- A value that was written under another type. It is nobody's change that is wrong, so it is told like a condition that raised.
  for a in select t.name, t.type, w.state -> t.name as value from mutirao.attribute t where t.version = w.version order by t.position loop
    begin
      execute format('select (r.v)::text from jsonb_to_record(jsonb_build_object(''v'', $1)) as r(v %s)', mutirao.sql_type(a.type)) into ignored using a.value;
    exception when others then
      return jsonb_build_object('code', 'condition_failed', 'attribute', a.name, 'value', a.value, 'error',
        format('attribute "%s" is of type %s, and its value %s is not: give it another one', a.name, a.type, left(a.value::text, 100)));
    end;
  end loop;
  for r in
    select t.name, x.condition, mutirao.rule_sql(x) as sql
    from mutirao.rule x join mutirao.task t on t.id = x.task
    where x.version = w.version and x.enabled and x.task <> all (w.held)
    order by t.name <> '_FINAL', x.position
  loop
    begin
      execute format('select (%s)::text from unnest($1) x, lateral jsonb_to_record(x.state) as s(%s)', r.sql, mutirao.record_sql(w.version)) into ignored using array[w];
    exception when others then
      return jsonb_build_object('code', 'condition_failed', 'task', r.name, 'condition', r.condition, 'error', sqlerrm);
    end;
  end loop;
  return null;
end $$;

create or replace function mutirao.look_version(version int, work mutirao.work[]) returns mutirao.looked[]
language plpgsql as $$
declare
  look text := format('select mutirao_rule.look_%s($1)', version);
  one mutirao.work;
  problem jsonb;
  answer mutirao.looked[];
  answers mutirao.looked[];
begin
  begin
    execute look into answers using work;
    return answers;
  exception when others then
    answers := '{}';
  end;
  -- One bad row must not sink the batch: row by row, each in a subtransaction of its own.
  foreach one in array work loop
    begin
      execute look into answer using array[one];
    exception when others then
      problem := coalesce(mutirao.diagnose(one), jsonb_build_object('code', 'condition_failed', 'error', sqlerrm));
      -- Nothing fires while it is suspended or cancelled, so its conditions are not to say anything.
      answer := array[row(false, '{}', case when one.hold is null or problem ->> 'code' <> 'condition_failed' then problem end)::mutirao.looked];
    end;
    answers := answers || answer;
  end loop;
  return answers;
end $$;

create or replace function mutirao.look_once(work mutirao.work[], versions int[]) returns mutirao.looked[]
language plpgsql as $$
declare
  answers mutirao.looked[] := '{}';
  run record;
begin
  if cardinality(versions) = 1 then
    return mutirao.look_version(versions[1], work);
  end if;
  for run in select x.version, min(x.o)::int as first, max(x.o)::int as last from (select u.version, row_number() over () as o from unnest(work) u) x group by 1 order by 2 loop
    answers := answers || mutirao.look_version(run.version, work[run.first:run.last]);
  end loop;
  return answers;
end $$;
comment on function mutirao.look_once(mutirao.work[], int[]) is 'Looks at all conditions of every row; the rows must be ordered by version, and the answers come in that order.';

create or replace function mutirao.latest_with(latest jsonb, named int[], tasks int[], state text) returns jsonb
language sql stable
return case when tasks && named
  then coalesce(latest, '{}') || (select jsonb_object_agg(t.name, state) from mutirao.task t where t.id = any (tasks) and t.id = any (named))
  else latest end;
comment on function mutirao.latest_with(jsonb, int[], int[], text) is 'The latest states once these tasks have reached this state; kept only for tasks that some condition names.';

create or replace function mutirao.latest_fired(latest jsonb, named int[], tasks int[], gated int[]) returns jsonb
language sql stable
return case when gated = '{}' then mutirao.latest_with(latest, named, tasks, 'ready')
  else mutirao.latest_with(mutirao.latest_with(latest, named, tasks, 'synchronizing'), named, mutirao.without(tasks, gated), 'ready') end;
comment on function mutirao.latest_fired(jsonb, int[], int[], int[]) is 'The latest states once these tasks have fired: they are ready, but for those that must pass the gate.';

create or replace function mutirao.is_watched(task int, gated boolean, watched int[]) returns boolean
language sql immutable
return mutirao.term(task, 'running') = any (watched) or gated and mutirao.term(task, 'ready') = any (watched);
comment on function mutirao.is_watched(int, boolean, int[]) is 'Whether some rule waits for a job of this task to be running, or ready when that is not at once.';

create or replace function mutirao.reached_with(reached int[], terms int[], tasks int[], state text) returns int[]
language sql stable
return case when terms = '{}' or tasks = '{}' then reached
  else reached || array(select mutirao.term(t, state) from unnest(tasks) t intersect select unnest(terms) except select unnest(reached)) end;
comment on function mutirao.reached_with(int[], int[], int[], text) is 'The reached terms once these tasks have reached this state; a term is kept only where some rule names it.';

-- How whoever waits for a task sees that a job of it has ended. A task is as its last contingency: it has succeeded when that has, and not
-- failed as long as one is left. One that releases what depends on it is all that they wait for; but no other was aborted by that.
create or replace function mutirao.ended_as(version int, task int, is_failed boolean, out tasks int[], out state text, out is_released boolean)
language plpgsql stable as $$
declare
  r mutirao.rule;
begin
  select * into r from mutirao.rule x where x.version = ended_as.version and x.task = ended_as.task;
  is_released := is_failed and r.on_failure = 'release';
  state := case when not is_failed then 'succeeded' when r.contingency is not null or is_released then 'aborted' else 'failed' end;
  tasks := case when is_failed and r.contingency is not null then array[task] else mutirao.principals(version, task) end;
end $$;

create or replace function mutirao.reached_by(v mutirao.version, reached int[], task int, is_failed boolean) returns int[]
language plpgsql stable as $$
declare
  e record := mutirao.ended_as(v.id, task, is_failed);
begin
  reached := mutirao.reached_with(reached, v.terms, case when e.is_released then array[task] else e.tasks end, e.state);
  if e.is_released then
    reached := reached || array(
      select t from unnest(v.terms) t where mutirao.term_task(t) = any (e.tasks) and (mutirao.term_task(t) = task or mutirao.term_state(t) <> 'aborted')
      except select unnest(reached));
  end if;
  return reached;
end $$;
comment on function mutirao.reached_by(mutirao.version, int[], int, boolean) is 'The reached terms once a job of a task that has a contingency, is one, or releases others has ended.';

create or replace function mutirao.latest_by(v mutirao.version, latest jsonb, task int, is_failed boolean) returns jsonb
language plpgsql stable as $$
declare
  e record := mutirao.ended_as(v.id, task, is_failed);
begin
  return mutirao.latest_with(latest, v.named, e.tasks, e.state);
end $$;

-- A version may come to name a task whose jobs were no concern of the conditions before it. What was kept of a task that it names no
-- more goes: nobody would keep it right.
create or replace function mutirao.latest_as(instance bigint, latest jsonb, kept int[], named int[]) returns jsonb
language sql stable
return case when kept = named then latest else (
  select jsonb_object_agg(t.name, s.state)
  from mutirao.task t, lateral (select case when t.id = any (kept) then latest ->> t.name else coalesce(
    (select case mutirao.job_state(j.status, j.gate) when 'synchronizing' then 'synchronizing' when 'running' then 'running' when 'parked' then 'running' when 'failed' then 'failed' else 'ready' end
     from mutirao.job j where j.instance = latest_as.instance and j.task = t.id),
    (select 'succeeded' from mutirao.trace r where r.instance = latest_as.instance and r.task = t.id and r.kind in ('finish', 'skip') limit 1)) end) s(state)
  where t.id = any (named) and s.state is not null) end;
comment on function mutirao.latest_as(bigint, jsonb, int[], int[]) is
  'The latest states of an instance that follows a version which names other tasks: what was not kept is found in its jobs and its trace.';

create or replace function mutirao.latest_from(instance bigint, latest jsonb, named int[]) returns jsonb
language sql stable
return coalesce(mutirao.latest_as(instance, null, '{}', named), '{}') || coalesce(latest, '{}');
comment on function mutirao.latest_from(bigint, jsonb, int[]) is 'The latest states, also of these tasks, for whoever asks about tasks that no condition of the flow names.';

-- Firing makes a task ready. Where somebody waits for exactly that, the same look goes on until nothing more fires.
create or replace function mutirao.look(work mutirao.work[], versions int[]) returns mutirao.looked[]
language plpgsql as $$
declare
  answers mutirao.looked[] := mutirao.look_once(work, versions);
  again mutirao.work[];
  more mutirao.looked[];
begin
  if not exists (select from mutirao.version v where v.id = any (versions) and v.watched <> '{}') then
    return answers;
  end if;
  loop
    select array_agg(row(w.n, w.kind, w.instance, w.flow, w.version, w.job, w.task, w.attempt, w.cause, null, w.state,
        w.pending, w.failed, w.fired, mutirao.reached_with(w.reached, v.terms, g.ready, 'ready'), mutirao.latest_with(w.latest, v.named, g.ready, 'ready'),
        w.held || a.fires, w.parked, w.reasons, w.hold, w.firings, w.priority, w.started_at, w.writer, w.note)::mutirao.work order by a.o)
      into again
    from unnest(work) with ordinality w join unnest(answers) with ordinality a(final, fires, problem, o) on a.o = w.ordinality
    join mutirao.version v on v.id = w.version cross join lateral (select mutirao.without(a.fires, v.gated) as ready offset 0) g;
    more := mutirao.look_once(again, versions);
    select array_agg(row(a.final, a.fires || m.fires, coalesce(a.problem, m.problem))::mutirao.looked order by a.o)
      into answers
    from unnest(answers) with ordinality a(final, fires, problem, o) join unnest(more) with ordinality m(final, fires, problem, o) using (o);
    exit when not exists (select from unnest(more) m where m.fires <> '{}');
  end loop;
  return answers;
end $$;
comment on function mutirao.look(mutirao.work[], int[]) is 'Which tasks fire on each row, and whether it is final.';

-- Tasks that can never run any more: what they depend on neither has come about nor can, because of what has failed, or has gone another way.
create or replace function mutirao.blocked_tasks(i mutirao.work) returns int[]
language plpgsql stable as $$
declare
  able int[] := array(select r.task from mutirao.rule r where r.version = i.version and r.task <> all (i.failed)
    and (r.task = any (i.pending) or (r.fires = 'each' or r.task <> all (i.fired))
      and (r.condition is not null or exists (select from mutirao.alarm a where a.instance = i.instance and a.task = r.task))));
  again boolean := true;
  holds boolean;
  r mutirao.rule;
begin
  while again loop
    again := false;
    for r in select x.* from mutirao.rule x where x.version = i.version and x.enabled and x.condition is null and x.stands_by is distinct from 'compensation'
      and x.task <> all (able || i.failed) loop
      execute format('select %s from (select $1::int[] as reached) x', mutirao.rule_sql(r)) into holds using i.reached || array(select t * 8 + s from unnest(able) t, generate_series(0, 7) s);
      if holds then
        able := able || r.task;
        again := true;
      end if;
    end loop;
  end loop;
  return array(select x.task from mutirao.rule x where x.version = i.version and x.stands_by is distinct from 'compensation'
    and (x.task <> all (able || i.fired) or x.task = any (i.failed)));
end $$;
comment on function mutirao.blocked_tasks(mutirao.work) is 'Tasks of an instance that have failed for good, or can never start.';
