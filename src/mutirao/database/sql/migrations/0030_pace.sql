-- The pace: what workers have done, minute by minute; jobs that are stuck are found by their task, and exceptions by their flow. Running workers: claims wait while the indexes are built, a second or so a million jobs; they are not counted until they are started again.

-- Workers count by themselves and hand it in now and then, so that no job pays for it: the trace of an hour may have fifty million rows.
create table mutirao.minute_pace (
  minute timestamptz not null,
  task   int not null,
  done   bigint not null,
  failed bigint not null,
  took   bigint[] not null,
  primary key (minute, task)
);
comment on table mutirao.minute_pace is 'What workers did in a minute, task by task; kept for a day. What a worker had not handed in when it was killed is in no count, nor is what people did.';
comment on column mutirao.minute_pace.task is '0: all of them together, so that an hour is sixty rows however many tasks there are.';
comment on column mutirao.minute_pace.done is 'Attempts that went well.';
comment on column mutirao.minute_pace.failed is 'Attempts that failed, whether or not they are tried again.';
comment on column mutirao.minute_pace.took is
  'How many of the done took how long, from the claim to the end. The first counts those of a millisecond at most; from each to the next the time grows by the root of two.';

-- Few ever are, so that to count them costs nothing, and next to nothing to keep it.
create index job_stuck on mutirao.job (task) where status in ('parked', 'failed');

-- Newest first, a page at a time, however many there are; instances that go on as they should are not in it.
create index instance_exception on mutirao.instance (flow, id desc) where status = 'open.exception';
