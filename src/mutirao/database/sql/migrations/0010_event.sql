-- Keys, outside events, and instances that start later. Running workers: nothing, but those that start instances must be of this version.

create table mutirao.key (
  flow     int not null,
  key      text not null,
  instance bigint not null,
  primary key (flow, key)
);
comment on table mutirao.key is 'What a starter calls an instance, open or closed. Whoever starts a key again gets the instance that has it.';

-- Whoever drops an instance drops its keys.
create index key_instance on mutirao.key (instance);

create table mutirao.event (
  flow     int not null,
  event    text not null,
  instance bigint not null,
  at       timestamptz not null,
  primary key (flow, event)
);
comment on table mutirao.event is 'Events that have been written, by the id that their sender gave. The second delivery finds it here and changes nothing.';

create index event_instance on mutirao.event (instance);

-- Apart from the hot table, which would otherwise need an index on a time.
create table mutirao.delayed (
  instance bigint primary key,
  due_at   timestamptz not null
);
comment on table mutirao.delayed is 'Instances that start later. A row stays while its instance is suspended, so that one resumed too early still waits.';

create index delayed_due on mutirao.delayed (due_at);

alter table mutirao.instance drop constraint instance_hold_check;
alter table mutirao.instance add constraint instance_hold_check check (hold in ('suspended', 'cancelled', 'delayed'));

create type mutirao.sent as (n int, key text, event text, instance bigint, outcome text, code text, message text, saw jsonb);
comment on type mutirao.sent is
  'What became of an event. done: written. repeated: an event of this id was written before. not_now: its only_if does not hold; saw has the '
  'values. refused: code and message say why. Only what is done has changed anything.';

create type mutirao.arrival as (n int, k int, key text, event text, change jsonb, instance bigint, version int, leader int);
comment on type mutirao.arrival is
  'An event on its way. k: it is the k-th for its instance in this call, and goes in round k. leader: the first in this call with its id, which alone is tried.';

create type mutirao.predicate as (version int, function text, arguments text[], code text, message text);
comment on type mutirao.predicate is 'An only_if as one version of its flow understands it, or why that cannot.';

create type mutirao.asked as (n int, holds boolean, saw jsonb, error text);

drop function if exists mutirao.start(text, jsonb, int), mutirao.start_many(text, jsonb[], int, text), mutirao.start_instances(text, jsonb[], int, text);
