-- All that a condition may hold, by name: what is not on these lists is refused. 04_condition_gate.sql says how they are used.

delete from mutirao.condition_allow;
delete from mutirao.condition_hint;

insert into mutirao.condition_allow (kind, name)
select 'word', unnest(string_to_array(
  -- logic and comparison
  'and or not is isnull notnull null true false unknown distinct from between symmetric in any some all like ilike case when then else end '
  -- calls with a syntax of their own
  'coalesce nullif greatest least cast as extract position substring for trim leading trailing both array '
  -- fields of extract, and units of an interval
  'year month day hour minute second epoch quarter week dow doy isodow isoyear to '
  -- functions
  'length char_length character_length lower upper btrim ltrim rtrim substr left right starts_with strpos '
  'abs round floor ceil ceiling trunc mod sign date_trunc jsonb_typeof jsonb_array_length '
  -- types
  'text integer int int4 bigint int8 numeric decimal boolean bool date timestamptz timestamp with without time zone interval jsonb', ' '));

insert into mutirao.condition_allow (kind, name)
select 'operator_token', unnest(string_to_array('+ - * / % = <> != < > <= >= || ~ ~* !~ !~* -> ->> #> #>> @> <@ ? ?| ?&', ' '));

insert into mutirao.condition_allow (kind, name)
select 'node', unnest(string_to_array(
  'QUERY TARGETENTRY FROMEXPR CONST PARAM FUNCEXPR OPEXPR DISTINCTEXPR NULLIFEXPR SCALARARRAYOPEXPR BOOLEXPR RELABELTYPE COERCEVIAIO '
  'CASEEXPR CASEWHEN CASETESTEXPR ARRAYEXPR COALESCEEXPR MINMAXEXPR NULLTEST BOOLEANTEST', ' '));

insert into mutirao.condition_allow (kind, name)
select 'type', t || suffix
from unnest(array['text', 'integer', 'bigint', 'numeric', 'boolean', 'date', 'timestamp with time zone', 'jsonb']) t, unnest(array['', '[]']) suffix;

-- Never an attribute's type, but what arithmetic on dates yields.
insert into mutirao.condition_allow (kind, name) values ('type', 'interval'), ('type', 'timestamp without time zone');

insert into mutirao.condition_allow (kind, name)
select 'function', unnest(array[
  'length(text)', 'char_length(text)', 'character_length(text)', 'lower(text)', 'upper(text)', 'starts_with(text,text)',
  'btrim(text)', 'btrim(text,text)', 'ltrim(text)', 'ltrim(text,text)', 'rtrim(text)', 'rtrim(text,text)',
  'substring(text,integer)', 'substring(text,integer,integer)', 'substr(text,integer)', 'substr(text,integer,integer)',
  'left(text,integer)', 'right(text,integer)', 'position(text,text)', 'strpos(text,text)',
  'abs(integer)', 'abs(bigint)', 'abs(numeric)', 'round(numeric)', 'round(numeric,integer)', 'trunc(numeric)', 'trunc(numeric,integer)',
  'floor(numeric)', 'ceil(numeric)', 'ceiling(numeric)', 'sign(numeric)', 'mod(integer,integer)', 'mod(bigint,bigint)', 'mod(numeric,numeric)',
  'extract(text,date)', 'extract(text,interval)', 'extract(text,timestamp with time zone)', 'extract(text,timestamp without time zone)',
  'date_trunc(text,timestamp with time zone)', 'date_trunc(text,timestamp without time zone)', 'date_trunc(text,interval)',
  'jsonb_typeof(jsonb)', 'jsonb_array_length(jsonb)',
  -- casts that are functions, by the name of their result
  'int4(bigint)', 'int4(numeric)', 'int4(boolean)', 'int4(jsonb)', 'int8(integer)', 'int8(numeric)', 'int8(jsonb)',
  'numeric(integer)', 'numeric(bigint)', 'numeric(jsonb)', 'numeric(numeric,integer)', 'bool(integer)', 'bool(jsonb)', 'text(boolean)',
  'date(timestamp with time zone)', 'date(timestamp without time zone)', 'timestamptz(date)', 'timestamptz(timestamp without time zone)',
  'timestamptz(timestamp with time zone,integer)', 'timestamp(date)', 'timestamp(timestamp with time zone)', 'interval(interval,integer)']);

-- Casts through the text form. None reads or writes a date: those forms depend on settings.
insert into mutirao.condition_allow (kind, name)
select 'cast', unnest(array[
  'text as integer', 'text as bigint', 'text as numeric', 'text as boolean', 'text as jsonb',
  'integer as text', 'bigint as text', 'numeric as text', 'jsonb as text']);

insert into mutirao.condition_allow (kind, name)
select 'operator', operator || '(' || operands || ')'
from (values
  (array['=', '<>', '<', '<=', '>', '>='], array[
    'text,text', 'integer,integer', 'bigint,bigint', 'integer,bigint', 'bigint,integer', 'numeric,numeric', 'boolean,boolean', 'jsonb,jsonb',
    'date,date', 'interval,interval', 'timestamp with time zone,timestamp with time zone', 'timestamp without time zone,timestamp without time zone',
    'date,timestamp with time zone', 'timestamp with time zone,date', 'date,timestamp without time zone', 'timestamp without time zone,date',
    'timestamp with time zone,timestamp without time zone', 'timestamp without time zone,timestamp with time zone']),
  (array['+', '-', '*', '/'], array['integer,integer', 'bigint,bigint', 'integer,bigint', 'bigint,integer', 'numeric,numeric']),
  (array['%'], array['integer,integer', 'bigint,bigint', 'numeric,numeric']),
  (array['+', '-'], array['-,integer', '-,bigint', '-,numeric', 'date,integer', 'date,interval', 'interval,interval',
    'timestamp with time zone,interval', 'timestamp without time zone,interval']),
  (array['+'], array['integer,date', 'interval,date', 'interval,timestamp with time zone', 'interval,timestamp without time zone']),
  (array['-'], array['date,date', '-,interval', 'timestamp with time zone,timestamp with time zone',
    'timestamp without time zone,timestamp without time zone']),
  (array['||', '~', '~*', '!~', '!~*', '~~', '~~*', '!~~', '!~~*'], array['text,text']),
  (array['->', '->>'], array['jsonb,text', 'jsonb,integer']),
  (array['#>', '#>>', '?|', '?&'], array['jsonb,text[]']),
  (array['?'], array['jsonb,text']),
  (array['@>', '<@'], array['jsonb,jsonb'])) list(operators, pairs), unnest(operators) operator, unnest(pairs) operands;

-- With parentheses, the name of a function, a method or an infix word that SQL does not have; in double quotes, a name that is no
-- attribute's. The rest are words, operators and (in capitals) nodes.
insert into mutirao.condition_hint (pattern, hint)
select unnest(string_to_array(patterns, ' ')), hint from (values
  ('now age clock_timestamp statement_timestamp transaction_timestamp timeofday current_date current_time current_timestamp localtime localtimestamp SQLVALUEFUNCTION today() utcnow() "today" "yesterday" "tomorrow"',
   'a condition may not read the clock; declare a timestamp attribute and compare with it'),
  ('pg\_% current\_% session_user user system_user set_config version txid\_% inet\_% lo\_% dblink% query_to% table_to% cursor_to% has\_%',
   'a condition may not reach into the server; it compares attributes of its instance'),
  ('select exists values table union insert update delete merge returning lateral into SUBLINK RANGETBLENTRY RANGETBLREF',
   'a subquery or a second statement; a condition compares attributes of its instance alone'),
  ('count sum avg min max every bool_and bool_or array_agg string_agg json%\_agg over filter within grouping row_number rank lag lead AGGREF WINDOWFUNC GROUPINGFUNC',
   'an aggregate; greatest and least compare attributes of one instance'),
  ('random gen_random_uuid uuidv% nextval currval lastval setval', 'a condition must give the same answer for the same state; write the value into an attribute'),
  ('repeat lpad rpad replace translate format concat concat_ws overlay array_fill string_to_array array_to_string regexp\_% split_part md5 sha% encode decode quote\_%',
   'it can eat time or memory; ||, left, right, substring, lower, upper, trim and length are allowed'),
  ('power pow exp factorial sqrt cbrt ln log log10 gcd lcm ^ ** @ |/ ||/', 'it can eat time or memory; + - * / %, abs, round, floor, ceil, mod and sign are allowed'),
  ('generate\_% unnest jsonb_array_elements% jsonb_each% jsonb_object_keys json_to% jsonb_to%', 'it returns a set; jsonb_array_length, ?, ?|, ?& and @> look into json'),
  ('jsonb_path% @? @@ json_query json_value json_exists', 'a path query may run without end; use ->, ->>, #>, #>>, ? or @>'),
  ('json row_to_json to_json to_jsonb json\_% jsonb\_%', 'use jsonb with ->, ->>, #>, #>>, ?, @>, jsonb_typeof and jsonb_array_length'),
  ('date_part', 'use extract(field from value)'),
  ('to_date to_timestamp to_char to_number make\_% timezone at', 'text becomes a date by declaring the attribute so; extract reads its parts'),
  ('char character varchar bpchar name nchar uuid bytea', 'that type has no place in a condition; use text'),
  ('real float float4 float8 double precision money', 'that type is not exact; use numeric'),
  ('smallint int2 oid', 'that type has no place in a condition; use integer or bigint'),
  ('reg% xid cid tid', 'a type that names things of the server; compare text'),
  ('xml% document XMLEXPR', 'a condition may not read XML; store what it needs in attributes'),
  ('collate COLLATEEXPR', 'text is compared by the collation of the database; leave collate out'),
  ('similar escape', 'use like, where the backslash escapes, or ~ with a literal pattern'),
  ('row ROWEXPR ROWCOMPAREEXPR', 'a row; compare attribute by attribute, joined with and'),
  ('operator', 'write the operator itself'),
  ('normalized current of default overlaps treat variadic', 'a condition compares attributes with =, <, in, between, like, is null, and, or, not'),
  ('<< >> ~~ ~~* !~~ !~~* ^@', 'that operator is not on the list; comparison, arithmetic, ||, like, ~ and the jsonb operators are'),
  ('#', 'that operator is not on the list, and a condition has no comments'),
  ('SUBSCRIPTINGREF', 'a subscript; -> and ->> read an element of json'),
  ('FIELDSELECT NAMEDARGEXPR', 'a field; an attribute has none, and -> reads one of json'),
  ('COERCETODOMAIN CONVERTROWTYPEEXPR ARRAYCOERCEEXPR', 'a cast that is not on the list; cast single values to text, integer, bigint, numeric, boolean or jsonb'),
  ('JSON%', 'use jsonb with ->, ->>, #>, #>>, ?, @>, jsonb_typeof and jsonb_array_length'),
  -- what other languages write
  ('== ===', 'equality is written ='),
  ('!== =! =/=', 'unequal is written <>'),
  ('& &&', 'write the word and'),
  ('|', 'write the word or'),
  ('! !!', 'write the word not; unequal is <>'),
  ('=<', 'at most is written <='),
  ('=>', 'at least is written >='),
  ('//', 'write /, which drops the remainder of integers'),
  ('~= =~', 'a pattern is matched with ~, and unequal is <>'),
  ('+= -= *= /=', 'a condition changes nothing; equality is written ='),
  ('`', 'a text stands in single quotes, a name in none'),
  ('"none" "nil" "undefined"', 'write null, as in is null or is not null'),
  ('"isnot"', 'write is not'),
  ('"xor"', 'write <>'),
  ('"lambda"', 'write the condition alone'),
  ('"if" "elif" iif() if()', 'write the condition alone, or choose with case when … then … else … end'),
  ('len()', 'write length(…) for a text, jsonb_array_length(…) for json'),
  ('startswith()', 'write starts_with(…, ''a'')'),
  ('endswith()', 'write … like ''%a'''),
  ('contains() includes() has()', 'write … ? ''a'' for json, … like ''%a%'' for a text'),
  ('match() matches() fullmatch() search()', 'write … ~ ''pattern'''),
  ('equals()', 'write ='),
  ('strip()', 'write trim(…)'),
  ('lstrip()', 'write ltrim(…)'),
  ('rstrip()', 'write rtrim(…)'),
  ('get()', 'write … ->> ''a'''),
  ('str()', 'write …::text'),
  ('ifnull() nvl()', 'write coalesce(…, …)'),
  ('datetime()', 'write a date as ''2025-12-31'', a time as ''2025-12-31 18:00Z'''),
  ('timedelta()', 'write interval ''1 day''')) family(patterns, hint);
