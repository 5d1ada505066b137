-- The first judge of a condition: its words, before the server sees them. 04_condition_gate.sql tells the whole story.

create or replace function mutirao.condition_hint(word text) returns text
language sql stable as $$
  -- The longest pattern is the closest: jsonb_path% before jsonb_%.
  select h.hint from mutirao.condition_hint h where word like h.pattern order by length(h.pattern) desc limit 1
$$;
comment on function mutirao.condition_hint(text) is 'What would be right instead of this refused word, operator or node; null when nothing better is known.';

create or replace function mutirao.nearest_name(wanted text, known text[]) returns text
language plpgsql immutable as $$
declare
  candidate text;
  best text;
  least_edits int := least(greatest(1, length(wanted) / 3) + 1, length(wanted));  -- further away it is another word, not a slip
  above int[];
  current int[];
begin
  foreach candidate in array known loop
    continue when abs(length(candidate) - length(wanted)) >= least_edits;
    -- Levenshtein's distance, one row of the table at a time.
    above := array(select generate_series(0, length(candidate)));
    for i in 1 .. length(wanted) loop
      current := array[i];
      for j in 1 .. length(candidate) loop
        current := current || least(
          current[j] + 1, above[j + 1] + 1,
          above[j] + case when substr(wanted, i, 1) = substr(candidate, j, 1) then 0 else 1 end);
      end loop;
      above := current;
    end loop;
    if above[length(candidate) + 1] < least_edits then
      best := candidate;
      least_edits := above[length(candidate) + 1];
    end if;
  end loop;
  return best;
end $$;
comment on function mutirao.nearest_name(text, text[]) is 'The known name that was probably meant, or null.';

create or replace function mutirao.unknown_name(wanted text, names text[]) returns text
language sql immutable as $$
  select format('there is no %s; %s',
    case when wanted like 'task\_%' then format('task "%s"', substr(wanted, 6, 63)) else format('attribute "%s"', left(wanted, 63)) end,
    case when nearest.name is not null then format('did you mean "%s"?', nearest.name)
         when names = '{}' then 'the flow declares none'
         else 'there is ' || array_to_string(names[1:10], ', ') || case when cardinality(names) > 10 then ', …' else '' end end)
  from (select mutirao.nearest_name(wanted, names) as name) nearest
$$;
comment on function mutirao.unknown_name(text, text[]) is 'Says that a condition names what the flow does not have, and what it has.';

-- One regular expression, of which the longest match counts; its last alternative takes any character, so no text is left over.
-- It must cut strings and quoted names exactly as the server does (the gate sets standard_conforming_strings). Of the rest it need
-- only be stricter: what it does not know is refused.
create or replace function mutirao.condition_tokens(predicate text) returns mutirao.condition_token[]
language sql immutable as $$
  with piece as (
    select m.token, m.n, 1 + coalesce(sum(length(m.token)) over (order by m.n rows between unbounded preceding and 1 preceding), 0)::int as at
    from (
      select r.match[1] as token, r.n
      from regexp_matches(predicate,
        $re$[ \t\n\r\f]+|'(?:[^']|'')*'|"(?:[^"]|"")*"|[A-Za-z_][A-Za-z0-9_]*|[0-9]+\.?[0-9]*|\.[0-9]+|[-+*/<>=~!@#%^&|`?]+|::|.$re$, 'g')
        with ordinality as r(match, n)) m),
  kinds as (
    select p.*, case
      when p.token ~ '^[ \t\n\r\f]' then 'space'
      when p.token ~ '^''.*''$' and length(p.token) > 1 then 'string'
      when p.token ~ '^".*"$' and length(p.token) > 1 then 'quoted'
      when p.token ~ '^[A-Za-z_]' then 'word'
      when p.token ~ '^\.?[0-9]' then 'number'
      when p.token ~ '^[-+*/<>=~!@#%^&|`?]' then 'operator'
      when p.token in ('(', ')', '[', ']', ',', '::') then 'punctuation'
      else 'other' end as kind
    from piece p),
  spaced as (
    select k.*, coalesce(lag(k.kind) over (order by k.n), 'space') <> 'space' as joined from kinds k)
  select coalesce(array_agg(row(s.kind, s.token,
      -- "C": the lower case of I is ı in a Turkish database, but not for the server's lexer.
      case s.kind when 'word' then lower(s.token collate "C") when 'quoted' then replace(substr(s.token, 2, length(s.token) - 2), '""', '"') end,
      s.at, s.joined)::mutirao.condition_token order by s.n), '{}')
  from spaced s where s.kind <> 'space'
$$;
comment on function mutirao.condition_tokens(text) is 'The text of a condition, cut as the server would cut it, without spaces.';

create or replace function mutirao.condition_fault(code text, at int, what text) returns mutirao.condition_fault
language sql immutable return row(code, at, what)::mutirao.condition_fault;

create or replace function mutirao.condition_place_of(name text, tokens mutirao.condition_token[]) returns int
language sql immutable as $$
  -- The tree keeps no positions (PostgreSQL 17 stopped writing them), so a place is only known when one token can be meant.
  select min(t.at) from unnest(tokens) t
  where name = any (case t.word
    when 'like' then array['~~', '!~~'] when 'ilike' then array['~~*', '!~~*'] when 'trim' then array['btrim', 'ltrim', 'rtrim'] when 'cast' then array['::']
    else array[coalesce(t.word, t.token)] end)
  having count(*) = 1
$$;
comment on function mutirao.condition_place_of(text, mutirao.condition_token[]) is 'Where the function, operator or cast stands in the text, if it stands there once.';

create or replace function mutirao.condition_fault_of_marks(tokens mutirao.condition_token[]) returns mutirao.condition_fault
language sql stable as $$
  with step as (
    select t.*, case when t.token in ('(', '[') then 1 when t.token in (')', ']') then -1 else 0 end as step from unnest(tokens) t),
  t as (
    select s.*, sum(s.step) over w as depth, sum(s.step) over () as unclosed,
      lag(s.kind) over w as before_kind,
      case when lead(s.joined) over w then lead(s.kind) over w end as joined_kind,
      case when lead(s.joined) over w then lead(s.token) over w end as joined_token,
      -- "=-1" is an equals sign and a minus: so says the server's lexer, unless one of ~!@#%^&|`? is among them.
      case when s.token ~ '[~!@#%^&|`?]' then s.token else regexp_replace(s.token, '(?!^)[-+]+$', '') end as operator
    from step s
    window w as (order by s.at)),
  faults as (
    select t.at, rule.* from t cross join lateral (values
      (1, t.token = ';', 'condition_refused', 'a second statement (;); a condition is one expression'),
      (2, t.kind = 'operator' and t.token ~ '--|/\*', 'condition_refused', 'a comment; a condition is one expression without comments'),
      (3, t.token = '''', 'condition_syntax', 'a string that is not closed; inside a string, write '' twice'),
      (4, t.token = '"', 'condition_syntax', 'a quoted name that is not closed'),
      (5, t.token = '$', 'condition_refused', 'a parameter or dollar quote ($); name an attribute, and quote strings with '''),
      (6, t.token = '.', 'condition_refused', 'a dot; names have no schema and no fields here, and -> reads a field of json'),
      (7, t.token = ':', 'condition_refused', 'a colon; a condition has neither slices nor variables'),
      (8, t.kind = 'other', 'condition_refused', format('the character "%s" outside a string; a condition is plain SQL', t.token)),
      -- The server makes one string of two on two lines, so what was measured here would not be what it reads.
      (9, t.kind = 'string' and t.before_kind = 'string', 'condition_refused', 'two strings side by side; join them with ||'),
      (10, t.word in ('e', 'b', 'x', 'n') and t.joined_kind = 'string' or t.word = 'u' and t.joined_token like '&%',
        'condition_refused', 'a string or name with a prefix (E, B, X, N, U&); write it plainly between quotes'),
      (11, t.kind = 'number' and (t.joined_kind in ('word', 'number') or length(t.token) > 40),
        'condition_refused', 'a number in a form that is not allowed; write at most 40 digits, with a point where needed'),
      (12, t.kind = 'operator' and not exists (select from mutirao.condition_allow a where a.kind = 'operator_token' and a.name = t.operator),
        'condition_refused', format('the operator %s: %s', left(t.token, 20), coalesce(mutirao.condition_hint(t.token), 'it is not on the list; put a space between operators that meet'))),
      (13, t.depth < 0, 'condition_syntax', format('a %s that closes nothing', t.token)),
      (14, t.depth > 50, 'condition_too_long', 'more than 50 parentheses inside each other; keep an intermediate result in an attribute'),
      (15, t.step = 1 and t.depth = 1 and t.unclosed > 0 and t.at = (select max(o.at) from t o where o.step = 1 and o.depth = 1),
        'condition_syntax', format('a %s that is not closed', t.token))
      ) rule(n, holds, code, what)
    where rule.holds)
  select mutirao.condition_fault(f.code, f.at, f.what) from faults f order by f.at, f.n limit 1
$$;
comment on function mutirao.condition_fault_of_marks(mutirao.condition_token[]) is 'The first token that no condition may hold, whatever its attributes are.';

create or replace function mutirao.condition_fault_of_names(tokens mutirao.condition_token[], names text[]) returns mutirao.condition_fault
language plpgsql stable as $$
declare
  t record;
  is_call boolean;
  hint text;
  nearest text;
begin
  -- With pg_temp last in the path, a temporary type of the session is still found where a type is expected. Its input function may run
  -- what the session's user wrote, with the owner's rights, before there is a tree to judge.
  select n.word, n.at into t from unnest(tokens) n join pg_type y on y.typname = n.word and y.typnamespace = pg_my_temp_schema() order by n.at limit 1;
  if found then
    return mutirao.condition_fault('condition_refused', t.at, format('"%s" is also a temporary table or type of this session; drop that first', t.word));
  end if;

  select n.* into t from (
    select n.*, lead(n.token) over w as next,
      lag(n.token) over w = '::' or lag(n.word) over w = 'as' or lead(n.kind) over w = 'string' as is_type
    from unnest(tokens) n window w as (order by n.at)) n
  where n.word is not null and n.word <> all (names) and n.next is distinct from '.'
    and not (n.kind = 'word' and exists (select from mutirao.condition_allow a where a.kind = 'word' and a.name = n.word))
  order by n.at limit 1;
  if not found then return null; end if;

  t.word := left(t.word, 63);
  is_call := t.next is not distinct from '(' and t.is_type is not true;
  hint := case t.kind when 'word' then mutirao.condition_hint(t.word) end;
  nearest := mutirao.nearest_name(t.word, case when is_call then array(select a.name from mutirao.condition_allow a where a.kind = 'word') else names end);
  if hint is not null then
    return mutirao.condition_fault('condition_refused', t.at, format('%s%s: %s', t.word, case when is_call then '()' else '' end, hint));
  elsif is_call then
    return mutirao.condition_fault('condition_refused', t.at, format('the function %s() is not on the list; %s', t.word,
      coalesce('did you mean ' || nearest || '?', 'length, lower, upper, trim, substring, abs, round, extract and jsonb_typeof are')));
  elsif t.is_type then
    return mutirao.condition_fault('condition_refused', t.at, format('the type %s is not on the list; text, integer, bigint, numeric, boolean, date, timestamptz, interval and jsonb are', t.word));
  elsif t.kind = 'word' and nearest is null and exists (select from pg_get_keywords() k where k.word = t.word and k.catcode <> 'U') then
    return mutirao.condition_fault('condition_refused', t.at, format('%s: a word of SQL that a condition has no use for; it compares attributes with and, or, not', t.word));
  end if;
  return mutirao.condition_fault('unknown_attribute', t.at, mutirao.unknown_name(t.word, names));
end $$;
comment on function mutirao.condition_fault_of_names(mutirao.condition_token[], text[]) is 'The first word that is neither a name of this flow nor on the list.';
