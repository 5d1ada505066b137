-- Worklists: their orders, the places that persons give their items, comments, saved filters. Running workers: nothing.

-- One row comparison finds where a page goes on, forwards and backwards, so every order rises; what has no deadline comes last.
drop index mutirao.item_priority, mutirao.item_deadline, mutirao.item_size;
create index item_priority on mutirao.job (role, (-priority), id) where role is not null and offered_to is null and status = 'ready';
create index item_deadline on mutirao.job (role, (coalesce(finish_by, 'infinity'::timestamptz)), id) where role is not null and offered_to is null and status = 'ready';
create index item_size on mutirao.job (role, (coalesce(size, 0)), id) where role is not null and offered_to is null and status = 'ready';

-- Who searches a worklist types the beginning of a key.
create index key_beginning on mutirao.key (lower(key) text_pattern_ops);

-- Numbers are found however they are written.
update mutirao.search s set value = left(trim_scale((i.state -> s.name)::numeric)::text, 200)
from (select id, state from mutirao.instance union all select id, state from mutirao.closed) i
where i.id = s.instance and s.value ~ '[.][0-9]*0$' and jsonb_typeof(i.state -> s.name) = 'number';

create table mutirao.place (
  person int not null references mutirao.person,
  job    bigint not null,
  rank   numeric not null,
  primary key (person, job)
);
comment on table mutirao.place is 'Where a person has moved an item to, in the order made by hand. An item that was never moved has its own number as its rank.';

create table mutirao.comment (
  id       bigint generated always as identity primary key,
  instance bigint not null,
  job      bigint,
  task     int,
  person   int not null references mutirao.person,
  text     text not null check (text <> '' and length(text) <= 10000),
  at       timestamptz not null
);
comment on table mutirao.comment is 'What persons say about an instance, or about one of its work items.';
create index comment_instance on mutirao.comment (instance, id);
create index comment_job on mutirao.comment (job) where job is not null;

create table mutirao.saved_filter (
  person   int not null references mutirao.person,
  name     text not null check (name <> '' and length(name) <= 100),
  filter   jsonb not null,
  saved_at timestamptz not null,
  primary key (person, name)
);
comment on table mutirao.saved_filter is 'What a person wants to see of the worklist again and again.';

create type mutirao.item_filter as (
  sort text, descending boolean, status text, flow int, tasks int[], role int, instances bigint[], priority int, due_before timestamptz,
  word_tasks int[], word_instances bigint[], key_words text, lookups jsonb
);
comment on type mutirao.item_filter is
  'What is wanted of a worklist, as numbers. A text stands in the names or descriptions of word_tasks, or is the number or begins the key of word_instances; key_words and lookups are beginnings of keys and searchable values that too many instances have to name them all.';

create type mutirao.item_row as (
  job bigint, instance bigint, key text, flow text, task text, description text, kind text, role text, status text, holder text, attempt bigint,
  priority int, arrived_at timestamptz, finish_by timestamptz, size bigint, application text, disconnected boolean, locked boolean, alone boolean,
  instead_of text, comments bigint
);
comment on type mutirao.item_row is
  'A work item as a list shows it. attempt: only for whoever holds it. alone: offered to one person. instead_of: the one who is away, if it is theirs.';
