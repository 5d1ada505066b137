-- The condition gate: user-written predicates become functions, or are refused.
--
-- A condition is SQL that a stranger wrote and that the engine's owner will run. It passes four judges, each stricter than it would
-- have to be if the others were perfect:
--
--   1. The words. The text is cut into tokens, and every word must be an attribute, a task or on the list. This comes before the
--      server sees the text, because the server already *runs* things while it only analyses: a literal goes through the input function
--      of its type, and the input function of a composite type runs the CHECKs of its domains, as the engine's owner. EXECUTE would
--      also run a second statement.
--   2. The analysed tree. PostgreSQL parses `create function … return <text>` and resolves every overload, cast and operator. What it
--      kept in pg_proc.prosqlbody is compared with the allow-lists: kinds of node, functions, operators, casts and types. Whatever is
--      not on a list is refused, also what a newer PostgreSQL invents.
--   3. The literals. Where a list cannot tell harm from use (patterns, dates), the value written in the text decides.
--   4. The planner. EXPLAIN must show the function inlined: PostgreSQL inlines only what is no more volatile than it is declared, so
--      this is its own check of volatility. Folding constants and one evaluation over nulls find what would fail in every look.
--
-- Everything happens under the caller's transaction: a refusal is an exception and takes the function with it.

--------------------------------------------------------------------------------------------------- 2. the analysed tree

-- pg_node_tree writes a node as {KIND :field value …}. Braces inside values are escaped and constants are written as bytes, so
-- nothing in a condition's text can look like a node.
create or replace function mutirao.condition_nodes(tree text) returns mutirao.condition_node[]
language plpgsql stable as $$
declare
  nodes mutirao.condition_node[] := '{}';
  children int[] := '{}';
  path int[] := '{}';
  here int;
  piece text;
begin
  for piece in select m[1] from regexp_matches(tree, '\{[^ {}]*|\}|[^{}]+', 'g') m loop
    here := path[cardinality(path)];
    if piece ~ '^\{' then
      if here is not null then children[here] := children[here] + 1; end if;
      nodes := nodes || row(cardinality(nodes) + 1, here, children[here], cardinality(path), substr(piece, 2), '', null)::mutirao.condition_node;
      children := children || 0;
      path := path || cardinality(nodes);
    elsif piece = '}' then
      path := path[: cardinality(path) - 1];
    elsif here is not null then
      nodes[here].own := nodes[here].own || piece;
    end if;
  end loop;
  return array(
    select row(n.id, n.parent, n.argument, n.depth, n.kind, n.own, case
        when n.kind in ('BOOLEXPR', 'NULLTEST', 'BOOLEANTEST', 'SCALARARRAYOPEXPR') then 'boolean'
        when n.kind in ('QUERY', 'TARGETENTRY', 'FROMEXPR', 'CASEWHEN') then 'none'
        else format_type(substring(n.own from ':(?:consttype|paramtype|funcresulttype|opresulttype|resulttype|casetype|coalescetype|minmaxtype|array_typeid|typeId) (\d+)')::oid, null)
      end)::mutirao.condition_node
    from unnest(nodes) n order by n.id);
end $$;
comment on function mutirao.condition_nodes(text) is 'A pg_node_tree as rows, in the order in which it is written.';

create or replace function mutirao.builtin_function(id oid) returns text
language sql stable as $$
  select p.proname || '(' || coalesce((select string_agg(format_type(a.type, null), ',' order by a.n) from unnest(p.proargtypes) with ordinality a(type, n)), '') || ')'
  from pg_proc p where p.oid = id and p.pronamespace = 'pg_catalog'::regnamespace
$$;
comment on function mutirao.builtin_function(oid) is 'A function of PostgreSQL as the list names it, or null when it is anybody else''s.';

create or replace function mutirao.builtin_operator(id oid) returns text
language sql stable as $$
  select o.oprname || '(' || format_type(o.oprleft, null) || ',' || format_type(o.oprright, null) || ')'
  from pg_operator o where o.oid = id and o.oprnamespace = 'pg_catalog'::regnamespace
$$;
comment on function mutirao.builtin_operator(oid) is 'An operator of PostgreSQL as the list names it (- for no left operand), or null when it is anybody else''s.';

create or replace function mutirao.condition_fault_of_tree(fn oid, nodes mutirao.condition_node[], tokens mutirao.condition_token[]) returns mutirao.condition_fault
language sql stable as $$
  with n as (
    select n.*,
      case n.kind
        when 'FUNCEXPR' then coalesce(mutirao.builtin_function(substring(n.own from ':funcid (\d+)')::oid), 'a user''s function')
        when 'COERCEVIAIO' then (select c.type || ' as ' || n.type from unnest(nodes) c where c.parent = n.id)
        else case when n.own ~ ':opno ' then coalesce(mutirao.builtin_operator(substring(n.own from ':opno (\d+)')::oid), 'a user''s operator') end
      end as used,
      case n.kind when 'FUNCEXPR' then 'function' when 'COERCEVIAIO' then 'cast' else case when n.own ~ ':opno ' then 'operator' end end as used_kind
    from unnest(nodes) n),
  -- The fields that a kind on the list may have with a meaning that is not: a query with more than a target, sets, variadic calls.
  faults as (
    select n.id, n.used_kind, n.used, n.own ~ ':funcformat 0' as is_call, rule.* from n cross join lateral (values
      (1, not exists (select from mutirao.condition_allow a where a.kind = 'node' and a.name = n.kind), 'condition_refused',
        coalesce(mutirao.condition_hint(n.kind), format('%s: a part of SQL that is not on the list; compare attributes with and, or, not', lower(n.kind)))),
      (2, n.kind in ('QUERY', 'FROMEXPR', 'TARGETENTRY') and n.own ~ ':(has\w+|\w*[rR]etset|resjunk) true|:(cteList|rtable|fromlist|quals|groupClause|havingQual|sortClause|limitCount|setOperations|rowMarks) [^< ]'
          or n.kind = 'QUERY' and n.id > 1 or n.own ~ ':(funcretset|opretset|funcvariadic|argisrow) true' or n.kind = 'PARAM' and n.own !~ ':paramkind 0 ',
        'condition_refused', 'a query, a set or a row; a condition is one expression over attributes'),
      (3, n.used_kind is not null and not exists (select from mutirao.condition_allow a where a.kind = n.used_kind and a.name = n.used), 'condition_refused',
        case when n.used_kind = 'cast' and n.used ~ 'date|time|interval' then format('the cast of %s: it depends on settings; declare the attribute with the type it is used as', n.used)
             else format('the %s %s is not on the list%s', n.used_kind, n.used,
               case when n.used ~ 'double precision' then '; write ::numeric beside the integer' when n.used ~ '^substring' then '; substring takes positions: substring(a from 1 for 3)'
                 when n.used ~ '^\|\|' then '; || joins texts, so write …::text, or between conditions the word or' else '' end) end),
      (4, n.type is distinct from 'none' and not exists (select from mutirao.condition_allow a where a.kind = 'type' and a.name = n.type), 'condition_refused',
        format('a value of the type %s; text, integer, bigint, numeric, boolean, date, timestamptz, interval and jsonb are allowed', coalesce(n.type, 'unknown'))),
      (5, n.type <> 'boolean' and exists (select from n p where p.id = n.parent and p.kind = 'TARGETENTRY'), 'condition_type', mutirao.boolean_advice(null, n.type)),
      (6, n.depth > 100, 'condition_too_long', 'more than 100 operations inside each other; keep an intermediate result in an attribute')
      ) rule(n, holds, code, what)
    where rule.holds
    union all
    -- Built-ins are never recorded as dependencies, so whatever is here is somebody's own.
    select 0, null, null, true, 0, true, 'condition_refused', format('%s: it belongs to a user, not to PostgreSQL', pg_describe_object(d.refclassid, d.refobjid, d.refobjsubid))
    from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = fn and d.refclassid <> 'pg_namespace'::regclass
    union all
    select 0, null, null, true, 1, true, 'condition_refused', 'PostgreSQL keeps it in a form that cannot be judged; report this with the version of the server'
    where nodes[1].kind is distinct from 'QUERY' or (select count(*) from n where n.kind = 'TARGETENTRY') <> 1
    union all
    -- A numeric division can take a second (65,000 digits); a chain of || holds every attribute several times.
    select 0, null, null, true, 2, true, 'condition_too_long', format('more than %s uses of %s; keep an intermediate result in an attribute', w.most, w.name)
    from (values ('* / % on numeric', 8, '^([*/%]|mod)\(numeric'), ('||', 20, '^\|\|')) w(name, most, pattern)
    where (select count(*) from n where n.used ~ w.pattern) > w.most)
  -- First what its author wrote as a call: round(n) rather than the comparison of floats around it.
  select mutirao.condition_fault(f.code, mutirao.condition_place_of(case f.used_kind when 'cast' then '::' else substring(f.used from '^[^(]+') end, tokens), f.what)
  from faults f order by f.is_call desc, f.n, f.id limit 1
$$;
comment on function mutirao.condition_fault_of_tree(oid, mutirao.condition_node[], mutirao.condition_token[]) is 'The first thing in an analysed condition that is not on the allow-lists.';

--------------------------------------------------------------------------------------------------- 3. the literals

create or replace function mutirao.condition_literal(own text) returns text
language sql stable as $$
  -- A text constant is written as signed bytes, after four bytes of length.
  select convert_from(decode(string_agg(lpad(to_hex(b.byte::int & 255), 2, '0'), '' order by b.n) filter (where b.n > 4), 'hex'), getdatabaseencoding())
  from regexp_split_to_table(substring(own from ':constvalue \d+ \[ (.*) \]'), ' ') with ordinality b(byte, n)
$$;
comment on function mutirao.condition_literal(text) is 'The value of a CONST node of type text, from its fields.';

-- What grows with the product of both sides takes a literal on one: matching a megabyte against a pattern of half a megabyte takes minutes
-- in a loop that no timeout interrupts.
create or replace function mutirao.condition_fault_of_literals(nodes mutirao.condition_node[], tokens mutirao.condition_token[]) returns mutirao.condition_fault
language plpgsql stable as $$
declare
  n record;
  place int;
  pattern text;
begin
  for n in
    select substring(u.used from '^[^(]+') as name, substring(u.used from ',(.*)\)$') as type, c.kind, c.own
    from (select x.*, coalesce(mutirao.builtin_operator(substring(x.own from ':opno (\d+)')::oid), mutirao.builtin_function(substring(x.own from ':funcid (\d+)')::oid)) as used
          from unnest(nodes) x where x.own ~ ':(opno|funcid) ') u
    left join unnest(nodes) c on c.parent = u.id and c.argument = case when u.used ~ '^(<@|extract|date_trunc)' then 1 else 2 end
    where u.used ~ '^(!?~|@>|<@|position|strpos|[blr]trim\(text,|extract|date_trunc)'
  loop
    place := mutirao.condition_place_of(n.name, tokens);
    if n.kind is distinct from 'CONST' then
      return mutirao.condition_fault('condition_refused', place, format('%s with a pattern or part that is not a literal; write it into the condition as a string%s', n.name,
        case when n.name ~ '~' then ', or compare two attributes with starts_with(a, b)' else '' end));
    end if;
    continue when n.name in ('@>', '<@') or n.own ~ ':constisnull true';
    pattern := mutirao.condition_literal(n.own);
    if length(pattern) > 100 then
      return mutirao.condition_fault('condition_too_long', place, format('%s with a pattern of %s characters; 100 are allowed', n.name, length(pattern)));
    end if;
    if n.name in ('extract', 'date_trunc') then
      -- Null in, null out: only with a value does PostgreSQL look whether it has such a field.
      begin
        execute format('select %I(%L, %L::%s)', n.name, pattern, case n.type when 'interval' then '1 day' else '2000-01-01' end, n.type);
      exception when data_exception or feature_not_supported then
        return mutirao.condition_fault('condition_type', place, sqlerrm || '; year, month, day, hour, minute, second and epoch are known');
      end;
    end if;
    continue when n.name !~ '^!?~\*?$';
    if pattern ~ '\\[1-9]|\(\?[^:]|^\*\*\*' then
      return mutirao.condition_fault('condition_refused', place, format('the regular expression %L has a back reference, a look-around or options; they can eat time', pattern));
    elsif (select round(exp(sum(ln(greatest(b[1]::numeric, coalesce(b[2], '0')::numeric, 1))))) from regexp_matches(pattern, '\{(\d+),?(\d+)?\}', 'g') b) > 1000 then
      return mutirao.condition_fault('condition_refused', place, format('the regular expression %L repeats more than 1000 times; use smaller bounds', pattern));
    end if;
    begin
      perform '' ~ pattern;
    exception when invalid_regular_expression then
      return mutirao.condition_fault('condition_syntax', place, sqlerrm);
    end;
  end loop;
  return null;
end $$;
comment on function mutirao.condition_fault_of_literals(mutirao.condition_node[], mutirao.condition_token[]) is 'The first pattern, or other literal, that may eat time.';

create or replace function mutirao.reads_as_date(written text) returns boolean
language plpgsql stable as $$
declare
  type text;
begin
  foreach type in array array['timestamptz', 'timestamp', 'date'] loop
    begin
      execute format('select %L::%s', written, type);
      return true;
    exception when data_exception then null;
    end;
  end loop;
  return false;
end $$;
comment on function mutirao.reads_as_date(text) is 'Whether PostgreSQL would take this string for a date or a time.';

-- 'today' has become a date in the tree and cannot be told from one that was written out. So each string that could be a date but is
-- not in ISO form is replaced by one that is none: if the server then misses a date, it was used as one.
create or replace function mutirao.condition_fault_of_dates(head text, predicate text, tokens mutirao.condition_token[], nodes mutirao.condition_node[]) returns mutirao.condition_fault
language plpgsql as $$
declare
  t mutirao.condition_token;
  written text;
begin
  if not exists (select from unnest(nodes) n where n.kind = 'CONST' and n.type ~ '^(date|timestamp)') then return null; end if;
  if exists (select from unnest(nodes) n where n.kind = 'CONST' and n.type ~ '^(date|timestamp).*\[\]$') then
    return mutirao.condition_fault('condition_refused', null, 'dates inside an array literal; write array[date ''2025-12-31'']');
  end if;
  foreach t in array tokens loop
    continue when t.kind <> 'string';
    written := replace(substr(t.token, 2, length(t.token) - 2), '''''', '''');
    continue when written ~ '^\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?( ?(Z|[+-]\d\d(:?\d\d)?))?)?$' or not mutirao.reads_as_date(written);
    begin
      execute head || overlay(predicate placing '''-''' from t.at for length(t.token));
      raise exception using errcode = 'MU000';  -- takes the trial function away
    exception
      when sqlstate 'MU000' or invalid_text_representation then null;
      when data_exception then
        return mutirao.condition_fault('condition_refused', t.at, format('%L as a date: what it means depends on the day or on settings; write it as ''2025-12-31'' or ''2025-12-31 18:00Z''', written));
    end;
  end loop;
  return null;
end $$;
comment on function mutirao.condition_fault_of_dates(text, text, mutirao.condition_token[], mutirao.condition_node[]) is 'The first string used as a date that is not written in ISO form.';

--------------------------------------------------------------------------------------------------- the server's own words

create or replace function mutirao.condition_place_of_error(head text, predicate text, tokens mutirao.condition_token[], message text) returns int
language plpgsql as $$
declare
  near text := substring(message from '["«„](.*)["»“”]');
  candidate int;
  ends int[];
  again text;
begin
  -- plpgsql cannot ask for the position of an error, but messages quote where they stopped, in every language.
  if near is null then return length(predicate) + 1; end if;
  ends := array(select t.at + length(t.token) from unnest(tokens) t where t.token = near order by t.at);
  foreach candidate in array ends loop
    exit when cardinality(ends) = 1;
    -- The first place where the text up to it fails in the same words; up to an earlier one it merely ends too soon.
    begin
      again := null;
      execute head || left(predicate, candidate - 1);
      raise exception using errcode = 'MU000';
    exception when others then again := sqlerrm;
    end;
    exit when again = message;
  end loop;
  return candidate - length(near);
end $$;
comment on function mutirao.condition_place_of_error(text, text, mutirao.condition_token[], text) is 'The character at which the server stopped reading a condition, or null.';

create or replace function mutirao.condition_fault_of_server(head text, predicate text, tokens mutirao.condition_token[], names text[], state text, message text, detail text)
returns mutirao.condition_fault
language plpgsql as $$
declare
  unknown mutirao.condition_token;
  place int;
begin
  if state = '42601' then
    place := mutirao.condition_place_of_error(head, predicate, tokens, message);
    return mutirao.condition_fault('condition_syntax', place, message || '; ' || mutirao.syntax_advice(tokens, place));
  elsif state = '42703' then
    select t.* into unknown from unnest(tokens) t where t.word <> all (names) and position(t.word in message) > 0 order by length(t.word) desc, t.at limit 1;
    return mutirao.condition_fault('unknown_attribute', unknown.at, mutirao.unknown_name(coalesce(unknown.word, message), names));
  elsif state = '42P13' then
    return mutirao.condition_fault('condition_type', null, mutirao.boolean_advice(predicate, (
      select a.name from mutirao.condition_allow a where a.kind = 'type' and position(a.name in detail) > 0 order by length(a.name) desc limit 1)));
  elsif state like '54%' then
    return mutirao.condition_fault('condition_too_long', null, message || '; keep an intermediate result in an attribute');
  end if;
  return mutirao.condition_fault('condition_type',
    (select min(t.at) from unnest(tokens) t where t.kind = 'word' and message ~ ('\m' || t.word || '\(')
       or t.kind = 'operator' and position(' ' || t.token || ' ' in message) > 0
       or t.word in ('and', 'or', 'not', 'is') and message ~ ('\m' || upper(t.word) || '\M')
       or t.kind = 'string' and position(format('"%s"', substr(t.token, 2, length(t.token) - 2)) in message || detail) > 0
     having count(*) = 1 or bool_and(t.kind = 'string')),  -- of two equal operators, the wrong one may be either
    message || '; ' || mutirao.type_advice(tokens, state, message));
end $$;
comment on function mutirao.condition_fault_of_server(text, text, mutirao.condition_token[], text[], text, text, text) is 'What PostgreSQL said about a condition, as a refusal of ours.';

--------------------------------------------------------------------------------------------------- the gate

create or replace function mutirao.refuse_condition(place text, fault mutirao.condition_fault) returns void
language plpgsql as $$
begin
  if fault.code is not null then
    -- One line, also where the server quotes many.
    perform mutirao.refuse(fault.code, place || coalesce(', character ' || fault.at, '') || ': ' || left(regexp_replace(fault.what, '\s+', ' ', 'g'), 500));
  end if;
end $$;
comment on function mutirao.refuse_condition(text, mutirao.condition_fault) is 'Raises the refusal of a fault, if there is one.';

create or replace function mutirao.try_condition(place text, fn text, names text[], types text[]) returns void
language plpgsql as $$
declare
  -- offset 0 keeps the planner from seeing that all values are null, as they are not in a look.
  probe text := format('select %s(%s) from (select %s offset 0) s', fn,
    (select string_agg(format('s.%I', a.name), ', ' order by a.n) from unnest(names) with ordinality a(name, n)),
    coalesce((select string_agg(format('null::%s as %I', a.type, a.name), ', ' order by a.n) from unnest(names, types) with ordinality a(name, type, n)), '1'));
  line text;
begin
  begin
    for line in execute 'explain (verbose, costs off) ' || probe loop
      if position(split_part(fn, '.', 2) in line) > 0 then
        perform mutirao.refuse_condition(place, mutirao.condition_fault('condition_refused', null, 'PostgreSQL would not inline it, so its parts depend on more than the state; use plain comparisons'));
      end if;
    end loop;
  exception when data_exception or program_limit_exceeded then
    perform mutirao.refuse_condition(place, mutirao.condition_fault('condition_refused', null, format('it would fail for every state: %s', sqlerrm)));
  end;
  begin
    execute probe;
  exception when data_exception or program_limit_exceeded then
    perform mutirao.refuse_condition(place, mutirao.condition_fault('condition_refused', null, format('it fails where all its attributes are null: %s; guard it with case', sqlerrm)));
  end;
end $$;
comment on function mutirao.try_condition(text, text, text[], text[]) is 'Refuses a compiled condition that is not inlined, or that fails when constants are folded or all is null.';

create or replace function mutirao.condition_function(place text, predicate text, names text[], types text[]) returns mutirao.condition
language plpgsql
set search_path = pg_catalog, pg_temp
-- Each of these changes what a text means. A session may have set them otherwise.
set standard_conforming_strings = on
set transform_null_equals = off
set check_function_bodies = on
set quote_all_identifiers = off
set datestyle = 'ISO, YMD'
set intervalstyle = 'postgres'
set timezone = 'UTC'
as $$
declare
  tokens mutirao.condition_token[];
  fault mutirao.condition_fault;
  nodes mutirao.condition_node[];
  used_names text[];
  used_types text[];
  signature text;
  key text;
  head text;
  trial text;
  state text;
  message text;
  detail text;
  made mutirao.condition;
begin
  if predicate is null or predicate ~ '^[ \t\n\r\f]*$' then
    perform mutirao.refuse('condition_syntax', place || ': it is empty; a condition that always holds is true');
  elsif length(predicate) > 4000 then
    perform mutirao.refuse('condition_too_long', format('%s: it has %s characters; 4000 are allowed', place, length(predicate)));
  end if;
  -- Past 63 bytes the server cuts a name off, and would read another than was judged.
  select coalesce(array_agg(a.name order by a.n), '{}'), array_agg(a.type order by a.n) into names, types
  from unnest(names, types) with ordinality a(name, type, n) where octet_length(a.name) <= 63;
  tokens := mutirao.condition_tokens(predicate);
  select coalesce(array_agg(a.name order by a.n), '{}'), array_agg(a.type order by a.n), coalesce(string_agg(format('%I %s', a.name, a.type), ', ' order by a.n), '')
  into used_names, used_types, signature
  from unnest(names, types) with ordinality a(name, type, n)
  where exists (select from unnest(tokens) t where t.word = a.name);

  -- The same condition of two versions is one function: what has its name has been judged.
  key := predicate || e'\n' || signature;
  made := row('mutirao_rule.c_' || md5(key), used_names);
  if to_regproc(made.function) is not null then return made; end if;

  -- The first of both, but where a quote or parenthesis is left open, what follows it is not what its author meant.
  select f.code, f.at, f.what into fault
  from unnest(array[mutirao.condition_fault_of_marks(tokens), mutirao.condition_fault_of_names(tokens, names)]) with ordinality f(code, at, what, n)
  order by f.code <> 'condition_syntax', f.at, f.n limit 1;
  perform mutirao.refuse_condition(place, fault);

  -- Whoever meets another transaction that is making the same one does not wait for it, or two definitions that share conditions in
  -- different order would wait for each other. It makes one of its own.
  if not pg_try_advisory_xact_lock(hashtextextended('mutirao condition ' || key, 0)) then
    made.function := 'mutirao_rule.c_' || md5(key || e'\n' || pg_current_xact_id());
    if to_regproc(made.function) is not null then return made; end if;
  end if;

  head := format('(%s) returns boolean immutable parallel safe return ', signature);
  trial := 'create function ' || made.function || '_trial' || head;
  begin
    execute 'create function ' || made.function || head || predicate;  -- no parentheses around it: with them, "a) or (b" would pass
  exception
    when duplicate_function or unique_violation then
      return made;  -- its maker has committed since we looked
    when insufficient_privilege then
      raise;  -- the operator's to mend, not the author's
    when syntax_error_or_access_rule_violation or data_exception or feature_not_supported or program_limit_exceeded then
      get stacked diagnostics state = returned_sqlstate, message = message_text, detail = pg_exception_detail;
      perform mutirao.refuse_condition(place, mutirao.condition_fault_of_server(trial, predicate, tokens, names, state, message, detail));
  end;

  nodes := mutirao.condition_nodes((select p.prosqlbody::text from pg_proc p where p.oid = to_regproc(made.function)));
  perform mutirao.refuse_condition(place, mutirao.condition_fault_of_tree(to_regproc(made.function), nodes, tokens));
  perform mutirao.refuse_condition(place, mutirao.condition_fault_of_literals(nodes, tokens));
  perform mutirao.refuse_condition(place, mutirao.condition_fault_of_dates(trial, predicate, tokens, nodes));

  -- Arithmetic with time zones is stable, and would not be inlined into anything declared better than it is.
  if exists (
    select from unnest(nodes) n join pg_proc p on p.oid = substring(n.own from ':(?:op)?funcid (\d+)')::oid where p.provolatile <> 'i') then
    execute format('alter function %s stable', made.function);
  end if;
  perform mutirao.try_condition(place, made.function, used_names, used_types);
  return made;
end $$;
comment on function mutirao.condition_function(text, text, text[], text[]) is
  'Compiles a condition into an inlinable function of the attributes it names, or refuses it with one line that begins with `place`.';

--------------------------------------------------------------------------------------------------- what it can do

-- Arithmetic can overflow or divide by zero, a cast or a function can find its argument unfit. A comparison finds nothing unfit.
create or replace function mutirao.condition_is_calm(function text) returns boolean
language sql stable as $$
  select bool_and(
    n.kind in ('QUERY', 'FROMEXPR', 'TARGETENTRY', 'CONST', 'PARAM', 'RELABELTYPE', 'BOOLEXPR', 'NULLTEST', 'BOOLEANTEST', 'ARRAYEXPR', 'COALESCEEXPR')
    or n.kind in ('OPEXPR', 'DISTINCTEXPR', 'SCALARARRAYOPEXPR') and mutirao.builtin_operator(substring(n.own from ':opno (\d+)')::oid) ~ '^(=|<>|<|<=|>|>=)\(')
  from pg_proc p, unnest(mutirao.condition_nodes(p.prosqlbody::text)) n where p.oid = to_regproc(function)
$$;
comment on function mutirao.condition_is_calm(text) is 'Whether a condition only compares, and so raises on no state whatever.';

-- From the top of the tree down through and, or, coalesce: under anything else (not, case) a comparison may mean its opposite.
create or replace function mutirao.condition_waits_for(function text, arguments text[], value text) returns setof text
language sql stable as $$
  with recursive nodes as materialized (
    select n.* from pg_proc p, unnest(mutirao.condition_nodes(p.prosqlbody::text)) n where p.oid = to_regproc(function)),
  plain as (
    select n.id, n.kind, n.own from nodes n where n.parent is null
    union all
    select n.id, n.kind, n.own from plain p join nodes n on n.parent = p.id
    where p.kind in ('QUERY', 'TARGETENTRY', 'COALESCEEXPR') or p.kind = 'BOOLEXPR' and p.own ~ ':boolop (and|or) ')
  select distinct arguments[substring(named.own from ':paramid (\d+)')::int]
  from plain compared join nodes named on named.parent = compared.id and named.kind = 'PARAM'
  join nodes list on list.id = compared.id or list.parent = compared.id and list.kind = 'ARRAYEXPR'
  join nodes literal on literal.parent = list.id and literal.kind = 'CONST' and literal.type = 'text' and literal.own ~ ':constisnull false'
  where mutirao.builtin_operator(substring(compared.own from ':opno (\d+)')::oid) = '=(text,text)' and compared.own !~ ':useOr false'
    and mutirao.condition_literal(literal.own) = value
$$;
comment on function mutirao.condition_waits_for(text, text[], text) is 'The attributes and tasks that a condition asks, plainly, to be this value: x = ''v'', or x in (…, ''v'', …).';

--------------------------------------------------------------------------------------------------- names of attributes

create or replace function mutirao.check_attribute_name(name text) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp as $$
declare
  why text;
begin
  why := case
    when name is null or name !~ '^[a-z][a-z0-9_]{0,47}$' then 'a name is a lowercase letter, then at most 47 lowercase letters, digits and underscores'
    when name like 'task\_%' then 'names that begin with task_ are the states of tasks; choose another'
    when name = 'wid' then 'wid is the instance''s own number; choose another name'
    when name in ('tableoid', 'ctid', 'xmin', 'xmax', 'cmin', 'cmax') then 'every table has a hidden column of that name; choose another'
    -- Those that a column may bear (category C) are refused too: time, values or position can begin something else in a condition.
    -- The words that only newer servers reserve are refused everywhere, so that an upgrade breaks no flow.
    when name in (select k.word from pg_get_keywords() k where k.catcode <> 'U') or name in (
        'json', 'json_array', 'json_arrayagg', 'json_exists', 'json_object', 'json_objectagg', 'json_query', 'json_scalar', 'json_serialize',
        'json_table', 'json_value', 'merge_action', 'system_user')
      then format('SQL reserves this word; choose another, such as %s_', left(name, 47))
  end;
  if why is not null then
    perform mutirao.refuse('attribute_reserved', format('attribute "%s": %s', name, why));
  end if;
end $$;
comment on function mutirao.check_attribute_name(text) is 'Refuses a name that SQL or the engine keeps for itself.';
