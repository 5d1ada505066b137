-- Batches: what is done to many instances, step by step, and is kept on record. Running workers: notice nothing.

create table mutirao.batch (
  id         bigint generated always as identity primary key,
  kind       text not null,
  flow       int references mutirao.flow,
  filter     jsonb not null,
  arguments  jsonb not null,
  function   text,
  names      text[],
  status     text not null default 'running' check (status in ('running', 'stopped', 'finished', 'failed')),
  after      bigint not null default 0,
  bound      bigint not null,
  busy       bigint[] not null default '{}',
  total      bigint,
  done       bigint not null default 0,
  skipped    bigint not null default 0,
  refused    bigint not null default 0,
  made_by    text not null,
  reason     text,
  made_at    timestamptz not null,
  stepped_at timestamptz not null,
  ended_at   timestamptz,
  note       text
);
comment on table mutirao.batch is 'Something that is done to all instances a filter chooses: who wanted it, why, how far it has come. Never deleted.';
comment on column mutirao.batch.function is 'The compiled `where` of its filter, and in `names` what it takes; the function lives as long as the batch runs.';
comment on column mutirao.batch.after is 'How far it has come: the highest instance it has looked at.';
comment on column mutirao.batch.bound is 'The highest instance when it was made: what starts later is none of its business.';
comment on column mutirao.batch.busy is 'Instances that somebody was writing when their turn came: it comes back to them at the end.';
comment on column mutirao.batch.total is 'How many the filter chose when it was made.';
comment on column mutirao.batch.skipped is 'There was nothing to do: it had ended, or did not fit the filter any more, when its turn came.';
comment on column mutirao.batch.note is 'The error that made it fail, or who stopped it.';

create index batch_running on mutirao.batch (stepped_at) where status = 'running';

create table mutirao.batch_refusal (
  batch    bigint not null references mutirao.batch,
  instance bigint not null,
  code     text not null,
  message  text not null,
  primary key (batch, instance)
);
comment on table mutirao.batch_refusal is 'Instances to which it could not be done, the first thousand of a batch.';

create type mutirao.batch_outcome as (instance bigint, code text, message text);
comment on type mutirao.batch_outcome is 'An instance to which it was not done: refused with this code, or without one, because there was nothing to do.';
