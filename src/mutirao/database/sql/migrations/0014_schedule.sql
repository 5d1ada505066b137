-- Schedules: flows started by the clock, as cron writes it. Running workers: nothing; their clocks fire none until they are of this version.

create type mutirao.cron as (minutes int[], hours int[], days int[], months int[], weekdays int[], either boolean);
comment on type mutirao.cron is
  'A cron pattern, read. Day 32 is the last of the month. either: it restricts days of the month and of the week, and one of them is enough.';

create table mutirao.schedule (
  name          text primary key,
  flow          int not null references mutirao.flow,
  cron          text not null,
  zone          text not null,
  state         jsonb not null,
  priority      int not null,
  missed        text not null check (missed in ('skip', 'once', 'all')),
  overlap       text not null check (overlap in ('allow', 'skip')),
  time_to       text,
  pattern       mutirao.cron not null,
  paused        boolean not null default false,
  next_at       timestamptz,
  last_at       timestamptz,
  last_instance bigint,
  runs          bigint not null default 0,
  problem       jsonb,
  made_by       text not null,
  made_at       timestamptz not null,
  check (paused = (next_at is null))
) with (fillfactor = 70);
comment on table mutirao.schedule is 'Flows that a clock starts, each time its cron pattern says so.';
comment on column mutirao.schedule.missed is 'What to do about times that no clock came to within a minute: none of them, one start for all, or each.';
comment on column mutirao.schedule.overlap is 'skip: nothing is started while the last instance is open.';
comment on column mutirao.schedule.time_to is 'The attribute that receives the time which a start stands for.';
comment on column mutirao.schedule.problem is 'Why the last time started nothing: {code, message, due_at}; null when all is well.';

create index schedule_next on mutirao.schedule (next_at);

create type mutirao.firing as (schedule text, flow int, priority int, state jsonb, due_at timestamptz, instance bigint, problem jsonb);
comment on type mutirao.firing is 'One time of one schedule, and what became of it.';
