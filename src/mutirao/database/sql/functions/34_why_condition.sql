-- Why a condition holds or not: its parts, in its author's words, each with its value and with what it saw.
--
-- A condition is cut where its author wrote and, or, not: at the tokens of the gate, by PostgreSQL's own precedence, outside of
-- parentheses, of case … end and of between … and. Whatever cannot be cut is one part. Every part is then asked of the server
-- itself, so nothing here knows what a comparison means. Only conditions that the gate accepted are cut, so a part holds nothing
-- that it would have refused. The whole is what the compiled function says, as in a look.

create or replace function mutirao.condition_cuts(tokens mutirao.condition_token[], wanted text) returns int[]
language plpgsql immutable as $$
declare
  t mutirao.condition_token;
  n int := 0;
  depth int := 0;      -- of parentheses and of case … end
  betweens int := 0;   -- whose own `and` is still to come
  cuts int[] := '{}';
begin
  foreach t in array tokens loop
    n := n + 1;
    if t.token in ('(', '[') or t.kind = 'word' and t.word = 'case' then
      depth := depth + 1;
    elsif t.token in (')', ']') or t.kind = 'word' and t.word = 'end' then
      depth := depth - 1;
    elsif depth > 0 or t.kind <> 'word' then
      continue;
    elsif t.word = 'between' then
      betweens := betweens + 1;
    elsif t.word = 'and' and betweens > 0 then
      betweens := betweens - 1;
    elsif t.word = wanted then
      cuts := cuts || n;
    end if;
  end loop;
  return cuts;
end $$;
comment on function mutirao.condition_cuts(mutirao.condition_token[], text) is 'Which tokens join the parts of a condition by this word, outside of everything else.';

create or replace function mutirao.is_in_parentheses(tokens mutirao.condition_token[]) returns boolean
language sql immutable as $$
  -- The first one is closed by the last token, and not before.
  select coalesce(tokens[1].token = '(' and bool_and(d.depth > 0 or d.n = cardinality(tokens)), false)
  from (select t.ordinality as n, sum(case when t.token = '(' then 1 when t.token = ')' then -1 else 0 end) over (order by t.ordinality) as depth
        from unnest(tokens) with ordinality t) d
$$;

create or replace function mutirao.condition_tree(predicate text, tokens mutirao.condition_token[]) returns jsonb
language plpgsql immutable as $$
declare
  last mutirao.condition_token;
  joined record;
  cuts int[];
  tree jsonb;
begin
  while mutirao.is_in_parentheses(tokens) loop
    tokens := tokens[2 : cardinality(tokens) - 1];
  end loop;
  last := tokens[cardinality(tokens)];
  tree := jsonb_build_object('kind', 'part', 'text', substr(predicate, tokens[1].at, last.at + length(last.token) - tokens[1].at),
    'names', array(select distinct t.word from unnest(tokens) t where t.kind in ('word', 'quoted')));
  for joined in select * from (values ('any', 'or'), ('all', 'and')) j(kind, word) loop
    cuts := mutirao.condition_cuts(tokens, joined.word);
    if cuts <> '{}' then
      return tree || jsonb_build_object('kind', joined.kind, 'parts', (
        select jsonb_agg(mutirao.condition_tree(predicate, tokens[c.after + 1 : c.before - 1]) order by c.after)
        from unnest(0 || cuts, cuts || (cardinality(tokens) + 1)) c(after, before)));
    end if;
  end loop;
  if tokens[1].kind = 'word' and tokens[1].word = 'not' then
    return tree || jsonb_build_object('kind', 'not', 'parts', jsonb_build_array(mutirao.condition_tree(predicate, tokens[2 :])));
  end if;
  return tree;
end $$;
comment on function mutirao.condition_tree(text, mutirao.condition_token[]) is
  'A condition that the gate has accepted, as a tree: kind (all, any, not or part), its text, the words in it, and its parts.';

--------------------------------------------------------------------------------------------------------------- asking it

create or replace function mutirao.ask(question text, source text, w mutirao.work, out holds boolean, out error text)
language plpgsql stable as $$
begin
  execute format('select %s from %s', question, source) into holds using array[w];
exception when others then
  error := left(sqlerrm, 500);
end $$;
comment on function mutirao.ask(text, text, mutirao.work) is 'What a condition, or a part of one, is on a state; or the error that it raises.';

create or replace function mutirao.value_of(name text, w mutirao.work) returns jsonb
language sql stable
return case when name like 'task\_%' then to_jsonb(coalesce(w.latest ->> substr(name, 6), 'not_ready')) else coalesce(w.state -> name, 'null') end;
comment on function mutirao.value_of(text, mutirao.work) is 'What a condition sees under a name: an attribute, or the latest state of a task.';

create or replace function mutirao.judged_tree(tree jsonb, names text[], source text, w mutirao.work) returns jsonb
language plpgsql stable as $$
declare
  -- `and true`: it is taken for a boolean, as among its neighbours.
  asked record := mutirao.ask(format('(%s) and true', tree ->> 'text'), source, w);
  judged jsonb := jsonb_build_object('kind', tree -> 'kind', 'text', tree -> 'text', 'holds', asked.holds);
begin
  if asked.error is not null then
    judged := judged || jsonb_build_object('error', asked.error);
  end if;
  judged := judged || jsonb_build_object('values', coalesce((
    select jsonb_object_agg(n, mutirao.value_of(n, w)) from unnest(names) n where tree -> 'names' ? n), '{}'));
  if tree ? 'parts' then
    return judged || jsonb_build_object('parts', (
      select jsonb_agg(mutirao.judged_tree(p.part, names, source, w) order by p.n) from jsonb_array_elements(tree -> 'parts') with ordinality p(part, n)));
  end if;
  return judged;
end $$;
comment on function mutirao.judged_tree(jsonb, text[], text, mutirao.work) is 'The tree of a condition with what each part is on this state, and with the values that it saw.';

create or replace function mutirao.task_state(w mutirao.work, task int) returns text
language sql stable
return case when w.kind = 'past' then coalesce(w.latest ->> (select t.name from mutirao.task t where t.id = task_state.task), 'not_ready') else coalesce(
  (select j.status::text from mutirao.job j where j.instance = w.instance and j.task = task_state.task),
  (select case r.kind when 'fail' then 'failed' else 'succeeded' end from mutirao.trace r
   where r.instance = w.instance and r.task = task_state.task and r.kind in ('finish', 'skip', 'fail') order by r.id desc limit 1),
  'not_ready') end;
comment on function mutirao.task_state(mutirao.work, int) is 'How a task stands: as its job does, or as the last one ended.';

-- A part is text. It must be read as the gate read the whole, whatever the session has set.
create or replace function mutirao.why_condition(r mutirao.rule, w mutirao.work) returns jsonb
language plpgsql stable
set search_path = pg_catalog, pg_temp
set standard_conforming_strings = on
set transform_null_equals = off
set datestyle = 'ISO, YMD'
set intervalstyle = 'postgres'
set timezone = 'UTC'
as $$
declare
  rows text := format('unnest($1) x, lateral jsonb_to_record(x.state) as s(%s)', mutirao.record_sql(r.version));
  asked record := mutirao.ask(mutirao.condition_sql(r.function, r.arguments), rows, w);
  columns text;
  tree jsonb;
begin
  select coalesce(string_agg(format('%s as %I',
    case when a.name like 'task\_%' then format('coalesce(x.latest ->> %L, ''not_ready'')', substr(a.name, 6)) else format('s.%I', a.name) end, a.name), ', '), '')
    into columns from unnest(r.arguments) a(name);
  tree := mutirao.judged_tree(mutirao.condition_tree(r.condition, mutirao.condition_tokens(r.condition)), r.arguments,
    format('(select %s from %s offset 0) v', columns, rows), w);
  tree := tree - 'error' || jsonb_build_object('holds', asked.holds);
  return case when asked.error is null then tree else tree || jsonb_build_object('error', asked.error) end;
end $$;
comment on function mutirao.why_condition(mutirao.rule, mutirao.work) is 'Whether the condition of a task holds on this state, part by part.';

create or replace function mutirao.why_depends(version int, depends jsonb, w mutirao.work) returns jsonb
language plpgsql stable as $$
#variable_conflict use_variable
declare
  parts jsonb := coalesce(depends -> 'all', depends -> 'any');
  judged jsonb;
begin
  if depends ? 'task' then
    return (
      select jsonb_build_object('kind', 'term', 'text', format('%s %s', t.name, case depends ->> 'state' when 'ready' then 'is or was ready' when 'running' then 'is or was running' else 'has ' || (depends ->> 'state') end),
        'holds', mutirao.term(t.id, depends ->> 'state') = any (w.reached), 'task', t.name, 'state', depends ->> 'state',
        'values', jsonb_build_object('task_' || t.name, mutirao.task_state(w, t.id)))
      from mutirao.rule r join mutirao.task t on t.id = r.task where r.version = why_depends.version and t.name = depends ->> 'task');
  end if;
  select jsonb_agg(mutirao.why_depends(version, p.part, w) order by p.n) into judged from jsonb_array_elements(parts) with ordinality p(part, n);
  return jsonb_build_object('kind', case when depends ? 'all' then 'all' else 'any' end,
    'text', (select string_agg(case when p.part ? 'parts' then format('(%s)', p.part ->> 'text') else p.part ->> 'text' end, case when depends ? 'all' then ' and ' else ' or ' end order by p.n)
      from jsonb_array_elements(judged) with ordinality p(part, n)),
    'holds', (select case when depends ? 'all' then bool_and((p ->> 'holds')::boolean) else bool_or((p ->> 'holds')::boolean) end from jsonb_array_elements(judged) p),
    'values', (select jsonb_object_agg(v.key, v.value) from jsonb_array_elements(judged) p, jsonb_each(p -> 'values') v), 'parts', judged);
end $$;
comment on function mutirao.why_depends(int, jsonb, mutirao.work) is 'Whether a dependency holds, term by term, in the form of mutirao.why_condition.';

-- In the past, `row` of the note is the row that the moment is about.
create or replace function mutirao.still_to_undo(w mutirao.work) returns table (done bigint, task int, compensation int)
language sql stable as $$
  select d.id, d.task, p.compensation
  from (select coalesce((w.note ->> 'row')::bigint, 9223372036854775807) as row) n
  cross join lateral (
    select coalesce((r.note ->> 'since')::bigint, 0) as since from mutirao.trace r where r.instance = w.instance and r.kind = 'roll_back' and r.id <= n.row order by r.id desc limit 1) o
  join mutirao.trace d on d.instance = w.instance and d.kind = 'finish' and d.cause >= o.since and d.id <= n.row
  join mutirao.rule p on p.version = w.version and p.task = d.task and p.compensation is not null
  where (w.hold = 'undoing' or w.kind = 'now' and exists (select from mutirao.undoing u where u.instance = w.instance))
    and not exists (
      select from mutirao.trace u where u.instance = d.instance and u.id > d.id and u.id <= n.row and u.kind in ('compensate', 'skip') and (u.note ->> 'undoes')::bigint = d.id)
$$;
comment on function mutirao.still_to_undo(mutirao.work) is 'What the rollback of an instance has still to undo: the rows by which jobs ended, their tasks, and what undoes these.';

create or replace function mutirao.why_stand_by(r mutirao.rule, w mutirao.work) returns jsonb
language sql stable
return (
  select jsonb_build_object('kind', 'part', 'text', format(case r.stands_by when 'contingency' then '%s has failed for good' else '%s is to be undone' end, n.names),
    'lacks', format(case r.stands_by when 'contingency' then '%s has not failed for good' else '%s is not to be undone' end, n.names),
    'holds', case r.stands_by when 'contingency' then n.has_failed else exists (select from mutirao.still_to_undo(w) u where u.compensation = r.task) end)
  from (
    select string_agg(t.name, ' or ' order by p.position) as names, bool_or(mutirao.term(p.task, 'aborted') = any (w.reached)) as has_failed
  from mutirao.rule p join mutirao.task t on t.id = p.task where p.version = r.version and r.task in (p.contingency, p.compensation)) n);
comment on function mutirao.why_stand_by(mutirao.rule, mutirao.work) is 'For whom a task stands by, and whether it has come to that.';

create or replace function mutirao.why_rule(r mutirao.rule, w mutirao.work) returns jsonb
language sql stable
return case when r.condition is not null then mutirao.why_condition(r, w) when r.stands_by is not null then mutirao.why_stand_by(r, w) else mutirao.why_depends(r.version, r.depends, w) end;

---------------------------------------------------------------------------------------------------------------- in words

create or replace function mutirao.short_json(value jsonb) returns text
language sql immutable
return case when length(value::text) > 60 then left(value::text, 59) || '…' when jsonb_typeof(value) = 'string' and value #>> '{}' ~ '^\S(.*\S)?$' then value #>> '{}' else value::text end;

create or replace function mutirao.equations(seen jsonb) returns text
language sql immutable
return (select string_agg(format('%s = %s', v.key, mutirao.short_json(v.value)), ', ' order by v.key) from jsonb_each(seen) v);
comment on function mutirao.equations(jsonb) is 'Names and their values, such as amount = 40, paid = true.';

create or replace function mutirao.state_words(state text) returns text
language sql immutable
return case state when 'not_ready' then 'has not fired' when 'succeeded' then 'has succeeded' when 'failed' then 'has failed' else 'is ' || state end;

create or replace function mutirao.part_words(part jsonb) returns text
language sql immutable as $$
  select case
    when part ? 'lacks' and part -> 'holds' = 'false' then part ->> 'lacks'
    when part ->> 'kind' = 'term' then format('%s %s: it %s', part ->> 'task', case part ->> 'state' when 'ready' then 'has not been ready' when 'running' then 'has not run' else 'has not ' || (part ->> 'state') end,
      mutirao.state_words(part -> 'values' ->> ('task_' || (part ->> 'task'))))
    else format(case when part ->> 'kind' in ('all', 'any') then '(%s)' else '%s' end, left(part ->> 'text', 200)) || case
      when part ? 'error' then format(' raises "%s"%s', part ->> 'error', saw.values)
      when part -> 'holds' = 'null' then ' is unknown' || coalesce(' because ' || saw.nulls, saw.values)
      else format(' is %s%s', part ->> 'holds', saw.values) end end
  from (
    select coalesce(' (' || mutirao.equations(part -> 'values') || ')', '') as values,
      (select string_agg(v.key, ' and ' order by v.key) || case count(*) when 1 then ' is null' else ' are null' end from jsonb_each(part -> 'values') v where v.value = 'null') as nulls) saw
$$;
comment on function mutirao.part_words(jsonb) is 'One part of a condition and what it is: amount > 100 is false (amount = 40).';

-- To blame is, of parts that must all hold, each that does not; of alternatives all of them, if they are all that the condition is, and
-- otherwise the alternatives as a whole. A part that raises is to blame only where the condition does: or PostgreSQL knew the answer without it.
create or replace function mutirao.tree_words(tree jsonb) returns text
language sql immutable as $$
  with recursive below as (
    select tree as part, array[]::bigint[] as path
    union all
    select p.part, b.path || p.n
    from below b, jsonb_array_elements(b.part -> 'parts') with ordinality p(part, n)
    where (b.part ->> 'kind' = 'all' or b.part ->> 'kind' = 'any' and b.path = '{}') and p.part -> 'holds' <> 'true' and (tree ? 'error') = (p.part ? 'error')),
  blamed as (
    select b.part, row_number() over (order by b.path) as n
    from below b where not exists (select from below c where c.path[: cardinality(b.path)] = b.path and cardinality(c.path) > cardinality(b.path)))
  select case when tree ->> 'kind' = 'any' then format('none of its %s alternatives holds: ', jsonb_array_length(tree -> 'parts')) else '' end
    || string_agg(mutirao.part_words(b.part), '; ' order by b.n) filter (where b.n <= 3) || case when count(*) > 3 then format('; and %s more', count(*) - 3) else '' end
  from blamed b
$$;
comment on function mutirao.tree_words(jsonb) is 'Why a condition does not hold, in one line.';
