-- Messages to persons, webhooks that send them on, deadlines that can be moved. Running workers: notice nothing.

create table mutirao.message (
  id       bigint generated always as identity primary key,
  person   int not null references mutirao.person,
  kind     text not null check (kind in (
    'instance_started', 'instance_ended', 'task_failed', 'deadline', 'exception', 'transferred', 'delegated', 'offered', 'taken', 'in_charge')),
  instance bigint,
  job      bigint,
  task     int,
  sender   text not null,
  text     text not null,
  note     jsonb,
  at       timestamptz not null,
  read_at  timestamptz
);
comment on table mutirao.message is 'Notices to persons, written in the transaction that did what they tell.';
comment on column mutirao.message.sender is 'The instance that it is about: its key, or its number.';
comment on column mutirao.message.read_at is 'When the person marked it as read; null: not yet.';
create index message_person on mutirao.message (person, id desc);
create index message_unread on mutirao.message (person, id) where read_at is null;
create index message_instance on mutirao.message (instance) where instance is not null;
create index message_read on mutirao.message (read_at) where read_at is not null;

create table mutirao.webhook (
  id      int generated always as identity primary key,
  person  int references mutirao.person,
  target  text not null,
  kinds   text[],
  paused  boolean not null default false,
  made_by text not null,
  made_at timestamptz not null
);
comment on table mutirao.webhook is 'Where messages are sent on to, by HTTP.';
comment on column mutirao.webhook.person is 'Whose messages; null: everybody''s.';
comment on column mutirao.webhook.target is 'Scheme and host of its URL. The whole of it is a secret: many carry one in their path.';
comment on column mutirao.webhook.kinds is 'Which kinds of messages; null: all.';

create table mutirao_secret.webhook (
  id     int primary key references mutirao.webhook on delete cascade,
  url    text not null,
  secret bytea not null
);
comment on column mutirao_secret.webhook.secret is 'The key of the signatures.';

create table mutirao.delivery (
  id       bigint generated always as identity primary key,
  webhook  int not null references mutirao.webhook on delete cascade,
  message  bigint references mutirao.message on delete cascade,
  status   text not null default 'waiting' check (status in ('waiting', 'sent', 'given_up')),
  tries    int not null default 0,
  made_at  timestamptz not null,
  due_at   timestamptz,
  ended_at timestamptz,
  answer   int,
  error    text,
  check ((status = 'waiting') = (ended_at is null))
);
comment on table mutirao.delivery is 'Messages on their way to webhooks. A message that is null is a trial.';
comment on column mutirao.delivery.due_at is 'When it is sent, or sent again if whoever sends it at the moment is heard of no more. Null: it has ended, or its webhook is paused.';
comment on column mutirao.delivery.error is 'What was wrong with the last try; null while one is under way.';
comment on column mutirao.delivery.answer is 'The HTTP status of the last answer.';
create index delivery_due on mutirao.delivery (due_at, webhook) where due_at is not null;
create index delivery_next on mutirao.delivery (webhook, due_at) where due_at is not null;
create index delivery_webhook on mutirao.delivery (webhook, id desc);
create index delivery_unsent on mutirao.delivery (webhook, status) where status <> 'sent';
create index delivery_message on mutirao.delivery (message);
create index delivery_ended on mutirao.delivery (ended_at) where ended_at is not null;

alter table mutirao.job add column allowed interval;
comment on column mutirao.job.allowed is 'Of a work item with a deadline: how long it was given for, from when it was ready or its deadline was moved.';

alter table mutirao.setting
  add column set_by text,
  add column set_at timestamptz;
insert into mutirao.setting (name, value) values ('keep_messages', '90');

create table mutirao.setting_change (
  id     bigint generated always as identity primary key,
  name   text not null,
  before jsonb not null,
  after  jsonb not null,
  reason text,
  writer text not null,
  at     timestamptz not null
);
comment on table mutirao.setting_change is 'Who set what, when and why.';

create type mutirao.alert as (
  job       bigint,
  holder    int,
  in_charge int,
  heir      int,
  moves     boolean,
  remaining interval
);
comment on type mutirao.alert is 'A deadline that comes near: who has the item, who is in charge, and who gets it if it moves (null: the administrators).';

create table mutirao.realert (
  only_row boolean primary key default true check (only_row),
  after    bigint not null
);
comment on table mutirao.realert is 'The reminders were set anew: the items after this one have still to follow.';
