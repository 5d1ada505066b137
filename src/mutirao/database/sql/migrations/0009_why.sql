-- Workers say that they are there and which tasks they do; and what `why` answers. Running workers: they go on, unannounced until they are started again.

create table mutirao.worker (
  name       text primary key,
  tasks      int[] not null,
  host       text,
  program    text,
  started_at timestamptz not null,
  seen_at    timestamptz not null,
  stopped_at timestamptz
);
comment on table mutirao.worker is
  'Workers that have announced themselves. Nobody needs to: a job is leased to whoever asks. It tells people whether anybody is there to ask.';
comment on column mutirao.worker.seen_at is 'It says so every ten seconds. Silent for three times as long, it is taken for dead; a day later the clock forgets it.';

create type mutirao.explanation as (task text, answer text, stands text, holds boolean, condition jsonb, job jsonb, fired jsonb);
comment on type mutirao.explanation is
  'Why a task has fired or not. task: null for the instance itself, _FINAL for its final condition. answer: one line for people. stands: the status of its job, '
  'or what keeps it from firing. condition: a tree of {kind, text, holds, values, error, parts}. job: its facts. fired: the row of the trace that fired it last.';
