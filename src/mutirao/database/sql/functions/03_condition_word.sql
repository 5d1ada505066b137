-- The first judge of a condition: its words, before the server sees them, and what would be right instead of them.
-- 04_condition_gate.sql tells the whole story.

--------------------------------------------------------------------------------------------------- what would be right

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
  before int[];
  above int[];
  current int[];
begin
  if 'task_' || wanted = any (known) then return 'task_' || wanted; end if;  -- the bare name of a task
  foreach candidate in array known loop
    continue when abs(length(candidate) - length(wanted)) >= least_edits;
    -- The distance of Damerau and Levenshtein, where two neighbours that changed places are one edit: one row of the table at a time.
    above := array(select generate_series(0, length(candidate)));
    for i in 1 .. length(wanted) loop
      current := array[i];
      for j in 1 .. length(candidate) loop
        current := current || least(
          current[j] + 1, above[j + 1] + 1,
          above[j] + case when substr(wanted, i, 1) = substr(candidate, j, 1) then 0 else 1 end,
          case when i > 1 and j > 1 and substr(wanted, i - 1, 2) = reverse(substr(candidate, j - 1, 2)) then before[j - 1] + 1 end);
      end loop;
      before := above;
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

create or replace function mutirao.unknown_name(wanted text, names text[], advice text default null) returns text
language sql immutable as $$
  select format('there is no %s; %s',
    case when wanted like 'task\_%' then format('task "%s"', substr(wanted, 6, 63)) else format('attribute "%s"', left(wanted, 63)) end,
    case when advice is not null then advice
         when nearest.name is not null then format('did you mean "%s"?', nearest.name)
         when names = '{}' then 'the flow declares none'
         else 'there is ' || array_to_string(names[1:10], ', ') || case when cardinality(names) > 10 then ', …' else '' end end)
  from (select mutirao.nearest_name(wanted, names) as name) nearest
$$;
comment on function mutirao.unknown_name(text, text[], text) is
  'Says that a condition names what the flow does not have, and what it has, unless there is better advice.';

create or replace function mutirao.refuse_flow(flow text) returns void
language plpgsql as $$
declare
  names text[] := array(select f.name from mutirao.flow f order by f.name);
begin
  perform mutirao.refuse('unknown_flow', format('there is no flow "%s"%s', flow, coalesce('; did you mean "' || mutirao.nearest_name(flow, names) || '"?',
    '; there is ' || nullif(array_to_string(names[1:10], ', '), '') || case when cardinality(names) > 10 then ', …' else '' end, '')));
end $$;
comment on function mutirao.refuse_flow(text) is 'Refuses a flow that is not there, and says which there is.';

create or replace function mutirao.text_advice(written text) returns text
language sql immutable return format('a text stands in single quotes: ''%s''', left(replace(written, '''', ''''''), 63));
comment on function mutirao.text_advice(text) is 'For what was written in double quotes or in none, and was meant as a text.';

create or replace function mutirao.dot_advice(owner text, member text) returns text
language sql stable as $$
  select coalesce(
    case when owner in ('self', 'state') then 'write ' || left(member, 63) || ' alone'
         when member in ('ready', 'running', 'succeeded', 'failed', 'aborted', 'blocked') then 'write task_' || left(regexp_replace(owner, '^task_', ''), 63) || format(' = ''%s''', member)
         when owner in ('datetime', 'date') then mutirao.condition_hint(member) end,
    mutirao.condition_hint(member || '()'),
    (select format('write %s(…) without it', member) where exists (
      select from mutirao.condition_allow a where a.kind = 'function' and split_part(a.name, '(', 1) = member)),
    'names have no schema and no fields here, and -> reads a field of json')
$$;
comment on function mutirao.dot_advice(text, text) is 'What to write instead of owner.member.';

-- From where it stands, not from the server's words: those may be in any language.
create or replace function mutirao.syntax_advice(tokens mutirao.condition_token[], place int) returns text
language sql stable as $$
  select coalesce(case
    when t.before_word = 'in' and (t.token = '[' or t.kind in ('number', 'string')) then 'a list stands in parentheses: in (1, 2)'
    when t.token = '[' then 'a list is written array[1, 2], or (1, 2) after in'
    when t.before_word = 'in' and t.word is not null
      then format('in takes a list in parentheses; json is asked with %s ? ''a'', a text with %1$s like ''%%a%%''', left(t.token, 63))
    when t.token = ',' and t.before_that = 'between' then 'write between 1 and 2'
    when t.token = ',' and t.joined and t.before_kind = 'number' and t.next_is_joined_number then 'a number has no commas'
    when t.token = ',' then 'a list stands in parentheses after in: in (1, 2)'
    when t.before = ',' then 'the comma before it is one too many'
    when t.kind = 'operator' and t.before_kind = 'operator' then coalesce(
      (select format('write %s without a space', a.name) from mutirao.condition_allow a where a.kind = 'operator_token' and a.name = t.before || t.token),
      mutirao.condition_hint(t.before || t.token))
    when t.is_comparison and t.before_word in ('and', 'or') then 'a comparison has two sides: n > 1 and n < 5'
    when t.is_comparison and t.before_kind in ('word', 'quoted', 'string', 'number') then 'comparisons do not chain: join two with and, or or'
    when t.before_word = 'is' then 'is goes with null, true and false; write ='
    when t.before_word = 'not' and t.before_that = 'is' then 'is not goes with null, true and false; write <>'
    when t.before_kind = 'number' and t.word ~ '^(year|month|week|day|hour|minute|second)s?$' then format('write interval ''%s %s''', left(t.before, 40), t.word)
    when t.word in ('any', 'all') and t.next = '('
      then format('%s takes an array after a comparison; join conditions with %s', t.word, case t.word when 'any' then 'or' else 'and' end)
    when t.token = '(' and t.before_word in ('int', 'integer', 'bigint', 'decimal', 'numeric', 'boolean') then format('a cast is written (…)::%s', t.before_word)
    when t.word = 'when' and t.before is null then 'write the condition alone'
    end, 'a condition is one SQL expression')
  from (values (1)) always left join (
    select n.*, lag(n.token) over w as before, lag(n.kind) over w as before_kind, lag(n.word) over w as before_word, lag(n.word, 2) over w as before_that,
      lead(n.token) over w as next, lead(n.kind) over w = 'number' and lead(n.joined) over w as next_is_joined_number, n.token in ('=', '<>', '!=', '<', '>', '<=', '>=') as is_comparison
    from unnest(tokens) n window w as (order by n.at)) t on t.at = place
$$;
comment on function mutirao.syntax_advice(mutirao.condition_token[], int) is 'What would probably be right where the server stopped reading a condition.';

-- The names of types, operators and of AND, OR, NOT are the same in every language of the server.
create or replace function mutirao.type_advice(tokens mutirao.condition_token[], state text, message text) returns text
language sql stable as $$
  with m as (
    select message ~ '\mboolean\M' as boolean, message ~ '\mjsonb?\M' as json, message ~ '\m(integer|bigint|numeric)\M' as number,
      message ~ '\m(text|unknown)\M' as text, message ~ '\m(date|timestamp)\M' as time,
      (select t.token from unnest(tokens) t where t.kind = 'operator' and position(' ' || t.token || ' ' in message) > 0 order by t.at limit 1) as operator,
      (select t.word from unnest(tokens) t where t.kind = 'word' and message ~ ('\m' || t.word || '\(') order by t.at limit 1) as function)
  select coalesce(case
    when state in ('22007', '22008') then 'write a date as ''2025-12-31'''
    when state = '22P02' and m.boolean then 'a boolean is true or false, and each side of and, or is a comparison of its own'
    when state = '22P02' and m.json then 'compare json as a text with ->>, or ask with ? whether it holds a text'
    when state = '42804' and m.boolean and message ~ '\m(AND|OR|NOT|IS)\M' then 'only a boolean is true or false by itself; compare others, such as with <> 0 or is not null'
    when state = '42804' and exists (select from unnest(tokens) t where t.token = '[') then '-> reads an element of json, substr(…, 1, 1) a character of a text'
    when state <> '42883' then null
    when m.function in ('date', 'timestamp', 'timestamptz') then 'write a date as ''2025-12-31'''
    when m.function is not null then (
      select 'there is ' || string_agg(a.name, ', ' order by a.name) from mutirao.condition_allow a where a.kind = 'function' and split_part(a.name, '(', 1) = m.function)
    when exists (select from unnest(tokens) t where t.kind = 'quoted') then 'a text stands in single quotes, a name in double ones or none'
    when m.operator = '||' then '|| joins texts; between conditions write the word or'
    when m.operator = '+' and m.text then '|| joins texts'
    when m.operator = '~' and m.boolean then 'write the word not'
    when m.boolean and m.number then 'a boolean stands alone, or is compared with true or false'
    when m.time and m.number then 'write a date as ''2025-12-31'''
    when m.json then '->> reads a text of json, and (… ->> ''a'')::integer a number'
    when m.text and m.number then 'a text is compared with a text in single quotes, or cast: (…)::integer'
    end, 'compare values of one type, with a cast where needed')
  from m
$$;
comment on function mutirao.type_advice(mutirao.condition_token[], text, text) is 'What would probably be right where the server cannot use the types of a condition.';

create or replace function mutirao.boolean_advice(predicate text, type text) returns text
language sql immutable as $$
  select case when type is null then 'it is not boolean' else format('it gives %s %s%s', case when type ~ '^[aeiou]' then 'an' else 'a' end, type,
      case type when 'bigint' then ' (integer)' when 'numeric' then ' (number)' when 'jsonb' then ' (json)' when 'timestamp with time zone' then ' (timestamp)' else '' end) end
    || ', and a condition must be true or false; compare it'
    || case when predicate is null or length(predicate) > 40 or predicate !~ '^[A-Za-z(]' or type is null then ''
         when type in ('integer', 'bigint', 'numeric') then format(', such as %s > 0', predicate) else format(', such as %s is not null', predicate) end
$$;
comment on function mutirao.boolean_advice(text, text) is 'Says that a condition is of another type than boolean, with the name that a flow has for it.';

--------------------------------------------------------------------------------------------------- 1. the words

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
      lag(s.kind) over w as before_kind, lag(s.token) over w as before, lag(s.word) over w as before_word,
      lead(s.token) over w as next, lead(s.word) over w as next_word,
      bool_or(s.token = '?') over w as has_asked,
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
      (4, t.token = '"', 'condition_syntax', 'a quoted name that is not closed; a text stands in single quotes, a name needs none'),
      (5, t.token = '$', 'condition_refused', 'a parameter or dollar quote ($); name an attribute, and quote strings with '''),
      (6, t.token = '.', 'condition_refused', case when t.token = '.' then 'a dot; ' || mutirao.dot_advice(t.before_word, t.next_word) end),
      (7, t.token = ':', 'condition_refused', 'a colon; ' || case
        when t.next = '=' then 'equality is written =' when t.has_asked then 'choose with case when … then … else … end'
        else 'a condition has neither slices nor variables; left, right and substr cut a text' end),
      (8, t.kind = 'other', 'condition_refused', format('the character "%s" outside a string; %s', t.token, case
        when t.token in ('‘', '’', '“', '”', '´') then 'a text stands in straight single quotes'
        when t.token in ('{', '}') then 'name the attribute itself, without braces' else 'a condition is plain SQL' end)),
      -- The server makes one string of two on two lines, so what was measured here would not be what it reads.
      (9, t.kind = 'string' and t.before_kind = 'string', 'condition_refused', 'two strings side by side; join them with ||'),
      (10, t.word in ('e', 'b', 'x', 'n', 'f', 'r') and t.joined_kind = 'string' or t.word = 'u' and t.joined_token like '&%',
        'condition_refused', 'a string or name with a prefix (E, B, X, N, U&, f, r); write it plainly between quotes'),
      (11, t.kind = 'number' and (t.joined_kind in ('word', 'number') or length(t.token) > 40),
        'condition_refused', 'a number in a form that is not allowed; write plain digits, at most 40, with a point where needed'),
      (12, t.kind = 'operator' and not exists (select from mutirao.condition_allow a where a.kind = 'operator_token' and a.name = t.operator),
        'condition_refused', case when t.kind = 'operator' then format('the operator %s: %s', left(t.token, 20),
          coalesce(mutirao.condition_hint(t.token), mutirao.condition_hint(t.operator), 'it is not on the list; put a space between operators that meet')) end),
      (13, t.depth < 0, 'condition_syntax', format('a %s that closes nothing', t.token)),
      (14, t.depth > 50, 'condition_too_long', 'more than 50 parentheses inside each other; keep an intermediate result in an attribute'),
      (15, t.step = 1 and t.depth = 1 and t.unclosed > 0 and t.at = (select max(o.at) from t o where o.step = 1 and o.depth = 1),
        'condition_syntax', format('a %s that is not closed', t.token)),
      -- It would pass, and never hold.
      (16, t.kind = 'word' and t.word = 'null' and t.before in ('=', '<>', '!=', '<', '>', '<=', '>='),
        'condition_refused', format('%s null is never true; write %s', t.before,
          case when t.before = '=' then 'is null' when t.before in ('<>', '!=') then 'is not null' else 'is null or is not null' end))
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
  is_infix boolean;
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
    select n.*, lead(n.token) over w as next, lead(n.kind) over w as next_kind, lead(n.joined) over w as next_joined,
      lag(n.token) over w as before, lag(n.kind) over w as before_kind,
      lag(n.token) over w = '::' or lag(n.word) over w = 'as' or lead(n.kind) over w = 'string' as is_type
    from unnest(tokens) n window w as (order by n.at)) n
  where n.word is not null and n.word <> all (names) and n.next is distinct from '.'
    and not (n.kind = 'word' and exists (select from mutirao.condition_allow a where a.kind = 'word' and a.name = n.word))
  order by n.at limit 1;
  if not found then return null; end if;

  t.word := left(t.word, 63);
  is_call := t.next is not distinct from '(' and t.is_type is not true;
  is_infix := t.next_kind = 'string' and t.before_kind <> 'operator' and t.before <> '::';
  hint := case t.kind when 'word' then coalesce(mutirao.condition_hint(t.word), case when is_call or is_infix then mutirao.condition_hint(t.word || '()') end) end;
  nearest := mutirao.nearest_name(t.word, case when is_call then array(select a.name from mutirao.condition_allow a where a.kind = 'word') else names end);
  if hint is not null then
    return mutirao.condition_fault('condition_refused', t.at, format('%s%s: %s', t.word, case when is_call then '()' else '' end, hint));
  elsif is_call then
    return mutirao.condition_fault('condition_refused', t.at, format('the function %s() is not on the list; %s', t.word,
      coalesce('did you mean ' || nearest || '?', 'length, lower, upper, trim, substring, abs, round, extract and jsonb_typeof are')));
  elsif t.is_type then
    return mutirao.condition_fault('condition_refused', t.at, format('the type %s is not on the list; text, integer, bigint, numeric, boolean, date, timestamptz, interval and jsonb are', t.word));
  elsif t.kind = 'word' and nearest is null and exists (select from pg_get_keywords() k where k.word = t.word and k.catcode <> 'U') then
    return mutirao.condition_fault('condition_refused', t.at, format('%s: %s', t.word, coalesce(mutirao.condition_hint(format('"%s"', t.word)),
      'a word of SQL that a condition has no use for; it compares attributes with and, or, not')));
  end if;
  return mutirao.condition_fault('unknown_attribute', t.at, mutirao.unknown_name(t.word, names, case
      when t.kind = 'quoted' and lower(t.word) <> all (names) then mutirao.text_advice(t.word) || coalesce('; or did you mean "' || nearest || '"?', '')
      when t.next_kind = 'quoted' and t.next_joined then mutirao.text_advice('…')
      when t.kind = 'word' then mutirao.condition_hint(format('"%s"', t.word)) end)
    || case when t.kind = 'word' and nearest is null and t.before in ('=', '<>', '!=', '->', '->>', '?') then '; ' || mutirao.text_advice(t.token) else '' end);
end $$;
comment on function mutirao.condition_fault_of_names(mutirao.condition_token[], text[]) is 'The first word that is neither a name of this flow nor on the list.';
