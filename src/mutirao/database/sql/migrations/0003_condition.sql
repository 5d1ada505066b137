-- What the condition gate keeps: its lists, and what its judges hand to one another. Running workers: none can exist yet.

create table mutirao.condition_allow (
  kind text not null check (kind in ('word', 'operator_token', 'node', 'type', 'function', 'operator', 'cast')),
  name text not null,
  primary key (kind, name)
);
comment on table mutirao.condition_allow is
  'All that a condition may hold, by name. Functions and operators are listed with their argument types: substring(text,text) is a '
  'regular expression, substring(text,integer) is not.';

create table mutirao.condition_hint (
  pattern text primary key,
  hint    text not null
);
comment on table mutirao.condition_hint is
  'What to say instead of "not allowed": a LIKE pattern of a refused word, operator or (in capitals) node, and what would be right. '
  'It refuses nothing by itself.';

create type mutirao.condition_token as (kind text, token text, word text, at int, joined boolean);
comment on type mutirao.condition_token is
  'word: the name as PostgreSQL will fold it, of words and quoted names. at: its first character, from 1. joined: no space before it.';

create type mutirao.condition_fault as (code text, at int, what text);
comment on type mutirao.condition_fault is 'Why a condition is refused. at: the character, from 1, where it can be known.';

create type mutirao.condition_node as (id int, parent int, argument int, depth int, kind text, own text, type text);
comment on type mutirao.condition_node is
  'argument: its number among the children of its parent. own: its fields without those of its children. type: of its value, as format_type writes it.';

create type mutirao.condition as (function text, arguments text[]);
comment on type mutirao.condition is 'A compiled condition: its qualified and quoted function, and the attributes it takes, in order.';
