-- Tasks that wait for a time in the state, and limits on the jobs of a task. Running workers: go on, and keep the limits.

alter table mutirao.rule
  add column wait text,
  add column by_clock boolean not null default false check (not by_clock or wait is not null),
  add column at_once int check (at_once > 0),
  add column per_second float8 check (per_second > 0 and per_second <= 1000000),
  add column per text,
  add column each int check (each > 0),
  add column slot_by text,
  add check ((per is null) = (each is null));
comment on column mutirao.rule.wait is 'The attribute, a timestamp or a date, before whose time its jobs are not done.';
comment on column mutirao.rule.by_clock is 'Nobody does its jobs: a clock ends them when their time has come.';
comment on column mutirao.rule.at_once is 'So many jobs of it run at once, at most.';
comment on column mutirao.rule.per_second is 'So many jobs of it begin in any second, at most.';
comment on column mutirao.rule.slot_by is 'The attribute `per` of the limit that is in force, whichever version or person set it: a job keeps its value as its slot.';
comment on column mutirao.rule.each is 'So many jobs of it run at once for each value of the attribute `per`, at most.';

alter table mutirao.version add column waits int[] not null default '{}';
comment on column mutirao.version.waits is 'Tasks that wait for a time in the state.';

alter table mutirao.job
  add column by_clock boolean not null default false,
  add column slot text collate "C";
comment on column mutirao.job.slot is
  'Of a task with a limit: the value of the attribute that it is limited by, kept from when it fired; or empty. Null where nothing is limited.';

-- Retries and times that have come are found apart: whoever does the one must not step over a million of the other.
drop index mutirao.job_due;
create index job_due on mutirao.job (due_at) where status = 'waiting' and not by_clock;
create index job_wait on mutirao.job (due_at) where status = 'waiting' and by_clock;

-- Only jobs with a slot are in these, so a task without a limit pays nothing for them.
create index job_slot_ready on mutirao.job (task, slot, priority desc, id) where status = 'ready' and slot is not null;
create index job_slot_running on mutirao.job (task, slot) where status = 'running' and slot is not null;

create table mutirao.throttle (
  task       int primary key references mutirao.task,
  flow       int not null references mutirao.flow,
  at_once    int check (at_once > 0),
  per_second float8 check (per_second > 0 and per_second <= 1000000),
  per        text,
  each       int check (each > 0),
  defined    jsonb,
  served     text collate "C" not null default '',
  recent     int[] not null default array_fill(0, array[21]),
  recent_at  bigint not null default 0,
  look_at    timestamptz,
  put_in     xid8 not null default pg_current_xact_id(),
  slotted    boolean not null,
  slot_after bigint,
  check ((per is null) = (each is null))
) with (fillfactor = 20);
comment on table mutirao.throttle is 'The limits in force, and how far they are used. Who claims jobs of a task with a limit locks its row.';
comment on column mutirao.throttle.defined is 'What the newest version says. A limit set by hand stays in force until that changes.';
comment on column mutirao.throttle.served is 'The value of `per` whose jobs were claimed last: the next in order has its turn.';
comment on column mutirao.throttle.recent is 'How many jobs began in each of the last 21 twentieths of the period for which the rate is counted; recent_at numbers the last.';
comment on column mutirao.throttle.look_at is 'Somebody was refused a job: when a clock should see whether there is room again. Null: nobody waits.';
comment on column mutirao.throttle.put_in is 'Who began before this was committed may still make jobs without a slot, or lease some uncounted.';
comment on column mutirao.throttle.slotted is 'All jobs that there were have a slot. Not before that are any claimed of a task that is limited for each value.';
comment on column mutirao.throttle.slot_after is 'The clock has still to see to jobs beyond this one. Null: nobody is left who may not know of the limit.';
