-- From a flow's version to the one function that looks at all its conditions.

create or replace function mutirao.invalid_change() returns boolean
language plpgsql as $$ begin
  raise exception 'a change does not fit its flow';
end $$;
comment on function mutirao.invalid_change() is 'Raised inside a look; mutirao.diagnose then says what is wrong with which row.';

--------------------------------------------------------------------------------------------------- pieces of generated code

create or replace function mutirao.depends_sql(version int, depends jsonb) returns text
language plpgsql stable as $$
declare
  parts jsonb := coalesce(depends -> 'all', depends -> 'any');
  task_id int;
  code int;
begin
  if jsonb_typeof(depends) = 'object' and depends ? 'task' then
    select t.id into task_id from mutirao.task t join mutirao.rule r on r.task = t.id
    where r.version = depends_sql.version and t.name = depends_sql.depends ->> 'task' and t.name <> '_FINAL';
    if task_id is null then
      perform mutirao.refuse('unknown_task', format('a dependency names the task "%s", which the flow does not have', depends ->> 'task'));
    end if;
    code := mutirao.term(task_id, depends ->> 'state');
    if code is null then
      perform mutirao.refuse('flow_invalid', format('a dependency names the state "%s" of task "%s"; a task can be ready, running, succeeded or failed', depends ->> 'state', depends ->> 'task'));
    end if;
    return format('%s = any (x.reached)', code);
  elsif jsonb_typeof(parts) is distinct from 'array' or parts = '[]' then
    perform mutirao.refuse('flow_invalid', format('%s is no dependency: write {"task": …, "state": …}, or {"all": […]} or {"any": […]} with at least one of them', left(depends::text, 100)));
  end if;
  return (
    select '(' || string_agg(mutirao.depends_sql(version, part), case when depends ? 'all' then ' and ' else ' or ' end) || ')'
    from jsonb_array_elements(parts) part
  );
end $$;
comment on function mutirao.depends_sql(int, jsonb) is 'A dependency rule as SQL over the terms an instance has reached.';

create or replace function mutirao.depends_terms(flow int, depends jsonb) returns setof int
language sql stable as $$
  select mutirao.term(t.id, part ->> 'state')
  from jsonb_path_query(depends, 'strict $.** ? (exists (@.task))') part
  join mutirao.task t on t.flow = depends_terms.flow and t.name = part ->> 'task'
$$;

create or replace function mutirao.condition_sql(function text, arguments text[]) returns text
language sql immutable as $$
  select format('%s(%s)', function, coalesce(string_agg(
    case when a.name like 'task\_%' then format('coalesce(x.latest ->> %L, ''not_ready'')', substr(a.name, 6)) else format('s.%I', a.name) end,
    ', ' order by a.position), ''))
  from unnest(arguments) with ordinality a(name, position)
$$;
comment on function mutirao.condition_sql(text, text[]) is 'The call of a compiled condition inside a look.';

create or replace function mutirao.record_sql(version int) returns text
language sql stable as $$
  select coalesce(string_agg(format('%I %s', name, mutirao.sql_type(type)), ', ' order by position), 'nothing int')
  from mutirao.attribute a where a.version = record_sql.version
$$;
comment on function mutirao.record_sql(int) is 'The column list that makes a version''s state typed.';

-- Who migrates has the whole state tested as if it were a change, and writes none.
create or replace function mutirao.size_sql(version int) returns text
language sql stable as $$
  select format('pg_column_size(x.state) <= %s and (pg_column_size(x.change) <= %s or x.kind = ''migrate'') and (x.kind <> ''set'' or not mutirao.trace_is_full(x.instance, %s))',
    f.state_limit, f.change_limit, f.trace_limit)
  from mutirao.version v join mutirao.flow f on f.id = v.flow where v.id = size_sql.version
$$;

-- What reads JSON reads no longer numbers everywhere.
create or replace function mutirao.has_huge_number(value jsonb) returns boolean
language sql immutable parallel safe
return jsonb_path_exists(value, 'strict $.** ? (@.type() == "number" && (@ >= 1e1000 || @ <= -1e1000))');
comment on function mutirao.has_huge_number(jsonb) is 'Whether somewhere in it there is a number of more than a thousand digits.';

-- PostgreSQL knows years that few programs can read. A timestamp is read as it is written, and in UTC: both have a year of four digits.
create or replace function mutirao.is_in_calendar(written text, type text) returns boolean
language sql stable parallel safe
return case type
  when 'date' then written::date between '0001-01-01' and '9999-12-31'
  when 'timestamp' then written::timestamp >= '0001-01-01' and written::timestamp < '10000-01-01'
    and written::timestamptz >= '0001-01-01 00:00:00+00' and written::timestamptz < '10000-01-01 00:00:00+00'
  else true end;
comment on function mutirao.is_in_calendar(text, text) is 'Whether a date or timestamp is in a year from 1 to 9999; values of other types always are.';

-- A null is allowed unless the attribute is required, and then the state has to have it. Words such as today would mean something else tomorrow. What the JSON kind cannot tell (a fraction for an integer, a text that is no date) the record itself refuses.
create or replace function mutirao.valid_sql(version int) returns text
language sql stable as $$
  select format('(x.change is null or %s and (x.change - %L::text[]) = ''{}'' %s)', mutirao.size_sql(valid_sql.version), coalesce(array_agg(name), '{}'),
    coalesce(string_agg(format('and coalesce(jsonb_typeof(x.change -> %L) in (%L, ''null''), true)', name,
      mutirao.json_kind(type)), ' '
    ) filter (where type <> 'json'), '')
      || coalesce(string_agg(format(' and coalesce(x.change ->> %1$L ~ ''^[0-9]'' and mutirao.is_in_calendar(x.change ->> %1$L, %2$L), true)', name, type), '') filter (where type in ('date', 'timestamp')), '')
      || coalesce(string_agg(format(' and coalesce(abs(s.%I) < 1e1000, true)', name), '') filter (where type = 'number'), '')
      || coalesce(string_agg(format(' and not coalesce(mutirao.has_huge_number(x.change -> %L), false)', name), '') filter (where type = 'json'), '')
      || coalesce(string_agg(format(' and coalesce(jsonb_typeof(x.state -> %L) <> ''null'', false)', name), '') filter (where required), '')
      || coalesce(' and (x.kind = ''migrate'' or mutirao.has_files(x.change, ' || quote_literal(array_agg(name) filter (where type = 'file')) || '))', ''))
  from mutirao.attribute a where a.version = valid_sql.version
$$;

-- A contingency starts when a task whose place it takes was aborted. What undoes is never looked at.
create or replace function mutirao.rule_sql(r mutirao.rule) returns text
language sql stable as $$
  select case
    when r.condition is not null then mutirao.condition_sql(r.function, r.arguments)
    when r.depends is not null then mutirao.depends_sql(r.version, r.depends)
    when r.stands_by = 'contingency' then (
      select format('x.reached && %L::int[]', array_agg(mutirao.term(p.task, 'aborted'))) from mutirao.rule p where p.version = r.version and p.contingency = r.task)
    else 'false' end
$$;

------------------------------------------------------------------------------------------------------------- the compiler

create or replace function mutirao.condition_names(version int, out names text[], out types text[])
language sql stable as $$
  select coalesce(array_agg(n.name), '{}'), coalesce(array_agg(n.type), '{}') from (
    select a.name, mutirao.sql_type(a.type) as type from mutirao.attribute a where a.version = condition_names.version
    union all
    select 'task_' || t.name, 'text' from mutirao.rule r join mutirao.task t on t.id = r.task
    where r.version = condition_names.version and t.name not in ('_FINAL', '_EXCPT')) n
$$;
comment on function mutirao.condition_names(int) is 'What a condition of this version may name: attributes, and the states of tasks.';

create or replace function mutirao.compile_rule(version int, task int) returns void
language plpgsql as $$
declare
  r mutirao.rule;
  task_name text;
  n record;
  c mutirao.condition;
begin
  select * into strict r from mutirao.rule x where x.version = compile_rule.version and x.task = compile_rule.task;
  if r.condition is null then return; end if;
  select t.name into task_name from mutirao.task t where t.id = compile_rule.task;
  n := mutirao.condition_names(version);
  c := mutirao.condition_function(
    case task_name when '_FINAL' then 'final condition' else format('condition of task "%s"', task_name) end, r.condition, n.names, n.types);
  update mutirao.rule x set function = c.function, arguments = c.arguments, calm = mutirao.condition_is_calm(c.function) where x.version = compile_rule.version and x.task = compile_rule.task;
end $$;
comment on function mutirao.compile_rule(int, int) is 'Passes one condition through the gate and remembers its function.';

create or replace function mutirao.contingencies(version int, task int) returns setof int
language sql stable as $$
  with recursive chain(task, next) as (
    select r.task, r.contingency from mutirao.rule r where r.version = contingencies.version and r.task = contingencies.task
    union
    select r.task, r.contingency from chain c join mutirao.rule r on r.version = contingencies.version and r.task = c.next)
  select c.task from chain c
$$;
comment on function mutirao.contingencies(int, int) is 'A task, and those that take its place one after another when each has failed.';

create or replace function mutirao.principals(version int, task int) returns int[]
language sql stable as $$
  with recursive chain(task) as (
    select principals.task
    union
    select r.task from chain c join mutirao.rule r on r.version = principals.version and r.contingency = c.task)
  select array_agg(c.task) from chain c
$$;
comment on function mutirao.principals(int, int) is 'A task, and those in whose place it runs.';

-- What the rules of a version name of each other, found once here so that the hot statements read it from one row. A failure is handled
-- where a contingency takes over, whoever depends on it is released, another task depends on it, or waits for it plainly in its condition:
-- task_x = 'failed', or task_x in (…, 'failed', …).
create or replace function mutirao.compile_facts(version int) returns void
language plpgsql as $$
begin
  update mutirao.rule r set ordered = not r.ordered
  where r.version = compile_facts.version and r.ordered <> exists (select from mutirao.ordering_task t where t.task = r.task);
  with rules as (
    select r.*, v.flow, t.name from mutirao.rule r join mutirao.version v on v.id = r.version join mutirao.task t on t.id = r.task
    where r.version = compile_facts.version and r.enabled),
  predecessors as (
    select mutirao.term_task(t.term) as task from rules r, mutirao.depends_terms(r.flow, r.depends) t(term) where r.time_to_wait is not null),
  terms as (
    select t.term from rules r, mutirao.depends_terms(r.flow, r.depends) t(term)
    union select mutirao.term(r.task, 'aborted') from rules r where r.contingency is not null
    union select mutirao.term(p.task, s.state) from predecessors p, unnest(array['running', 'succeeded', 'failed', 'aborted']) s(state)),
  mentions as (
    select r.task as by, r.name as by_name, t.id as task, t.name, r.condition, r.function, r.arguments
    from rules r cross join unnest(r.arguments) a(name) join mutirao.task t on t.flow = r.flow and 'task_' || t.name = a.name),
  heard as (
    select r.task from rules r where r.contingency is not null or r.on_failure = 'release'
    union
    select c.task from rules r, mutirao.depends_terms(r.flow, r.depends) t(term), mutirao.contingencies(compile_facts.version, mutirao.term_task(t.term)) c(task)
    where mutirao.term_state(t.term) = 'failed'
    union
    select m.task from mentions m where m.by <> m.task and m.by_name <> '_FINAL'
      and 'task_' || m.name in (select mutirao.condition_waits_for(m.function, m.arguments, 'failed'))),
  handled as (
    select h.task from heard h where not exists (select from rules r where r.task = h.task and r.on_failure in ('roll_back', 'safe_point'))),
  watched as (
    select t.term from terms t where mutirao.term_state(t.term) in ('ready', 'running')
    union
    select mutirao.term(m.task, s.state) from mentions m, unnest(array['ready', 'running']) s(state) where m.condition ~ '''(synchronizing|ready|running)'''),
  attributes as (
    select a.* from mutirao.attribute a where a.version = compile_facts.version),
  gone as (
    select t.id from mutirao.task t where t.flow = (select x.flow from mutirao.version x where x.id = compile_facts.version)
      and t.name not in ('_FINAL', '_EXCPT') and t.id not in (select r.task from rules r))
  update mutirao.version v set
    terms = coalesce((select array_agg(distinct t.term) from terms t), '{}'),
    handled = coalesce((select array_agg(h.task) from handled h), '{}'),
    named = coalesce((select array_agg(distinct m.task) from mentions m), '{}'),
    watched = coalesce((select array_agg(w.term) from watched w), '{}'),
    waits = coalesce((select array_agg(r.task) from rules r where r.wait is not null), '{}'),
    standing = coalesce((select array_agg(r.task) from rules r where r.contingency is not null or r.stands_by = 'contingency' or r.on_failure = 'release'), '{}'),
    gated = coalesce((select array_agg(r.task) from rules r where r.role is null and (r.ordered or mutirao.is_exclusive(r.class_id))), '{}'),
    alarming = coalesce((select array_agg(r.task) from rules r where r.time_to_wait is not null), '{}'),
    once = coalesce((select array_agg(r.task) from rules r where r.fires = 'once'), '{}'),
    gone = array(select g.id from gone g order by 1),
    searchable = coalesce((select array_agg(a.name) from attributes a where a.searchable or a.type = 'file'), '{}'),
    defaults = coalesce((select jsonb_object_agg(a.name, coalesce(a.default_value, 'null')) from attributes a), '{}')
  where v.id = compile_facts.version;
end $$;

-- Tasks that wait for each other in a circle would wait for ever. One that waits for any of several may well be part of a circle.
-- Whether what a task stands by for can start is that one's matter.
create or replace function mutirao.check_circles(version int) returns void
language plpgsql as $$
declare
  startable int[] := array(select r.task from mutirao.rule r where r.version = check_circles.version and (r.condition is not null or r.stands_by is not null));
  stuck text;
  r mutirao.rule;
  holds boolean;
  found_more boolean;
begin
  loop
    found_more := false;
    stuck := null;
    for r in select x.* from mutirao.rule x where x.version = check_circles.version and x.task <> all (startable) order by x.position loop
      execute format('select %s from (select $1::int[] as reached) x', mutirao.rule_sql(r)) into holds
        using array(select t * 8 + s from unnest(startable) t, generate_series(0, 7) s);
      if holds then
        startable := startable || r.task;
        found_more := true;
      elsif r.enabled then
        stuck := coalesce(stuck || ', ', '') || (select format('"%s"', t.name) from mutirao.task t where t.id = r.task);
      end if;
    end loop;
    exit when not found_more;
  end loop;
  if stuck is not null then
    perform mutirao.refuse('flow_invalid', format('these tasks wait for each other and could never start: %s; one of them needs a condition (when)', stuck));
  end if;
end $$;

-- The function made here is the heart of every look. The state becomes typed once per row (jsonb_to_record is an optimisation
-- fence) and final is tested first. A task that is held is not even asked, since its condition might raise; where it cannot, it is quicker
-- to ask it first: of many conditions few hold, and only for those the list of held tasks is searched.
create or replace function mutirao.compile(version int) returns void
language plpgsql as $$
declare
  v mutirao.version;
  final_sql text;
  fires_sql text;
begin
  perform mutirao.check_circles(version);
  perform mutirao.check_waits(version);
  perform mutirao.compile_facts(version);
  select * into strict v from mutirao.version x where x.id = compile.version;
  select coalesce((
    select format('coalesce(%s, false)', mutirao.rule_sql(r))
    from mutirao.rule r join mutirao.task t on t.id = r.task and t.name = '_FINAL'
    where r.version = compile.version and r.enabled), 'false') into final_sql;
  select coalesce(string_agg(
    format(case when r.calm then 'case when %2$s and %1$s <> all (x.held) then %1$s end' else 'case when %1$s <> all (x.held) and %2$s then %1$s end' end,
      r.task, mutirao.rule_sql(r)), ', ' order by r.position), '')
    into fires_sql
  from mutirao.rule r join mutirao.task t on t.id = r.task and t.name <> '_FINAL'
  where r.version = compile.version and r.enabled and r.stands_by is distinct from 'compensation';
  execute format($sql$
    create or replace function mutirao_rule.look_%s(work mutirao.work[]) returns mutirao.looked[]
    language plpgsql stable as $body$
    begin
      return (
        select array_agg(row(
          case when %s then %s else mutirao.invalid_change() end,
          case when %s then '{}' else array_remove(array[%s]::int[], null) end,
          null)::mutirao.looked)
        from unnest(work) x, lateral jsonb_to_record(x.state) as s(%s));
    end $body$ $sql$,
    version, mutirao.valid_sql(version), final_sql, final_sql, fires_sql, mutirao.record_sql(version));
end $$;
comment on function mutirao.compile(int) is 'Makes mutirao_rule.look_<version>, which looks at all conditions of a version for many instances at once.';
