-- How instances stand: open and closed ones, their jobs, their trace. Running workers: none can exist yet.

-------------------------------------------------------------------------------------------------------------- instances

create type mutirao.instance_status as enum (
  'open.notrunning', 'open.running', 'open.notrunning.suspended', 'open.exception', 'open.prepared',
  'closed.completed', 'closed.terminated', 'closed.aborted'
);

create sequence mutirao.instance_id;

-- The hot table: open instances only, and no index but the primary key, so that every write stays on its page (HOT).
create table mutirao.instance (
  id         bigint primary key,
  flow       int not null,
  version    int not null,
  status     mutirao.instance_status not null,
  state      jsonb not null,
  pending    int[] not null default '{}',
  failed     int[] not null default '{}',
  fired      int[] not null default '{}',
  reached    int[] not null default '{}',
  latest     jsonb,
  parked     int not null default 0,
  reasons    jsonb check (reasons <> '[]'),
  hold       text check (hold in ('suspended', 'cancelled')),
  firings    int not null default 0,
  priority   int not null default 0 check (priority between -1000000 and 1000000),
  started_at timestamptz not null
) with (toast_tuple_target = 8160, fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);
comment on column mutirao.instance.pending is 'Tasks with a job that has not ended: answers "already pending?" and "final with others pending?" without touching the jobs.';
comment on column mutirao.instance.failed is 'Tasks whose job has failed for good; it keeps its place.';
comment on column mutirao.instance.fired is 'Tasks that fire once and have.';
comment on column mutirao.instance.reached is 'Terms reached since the start, as mutirao.term(task, state).';
comment on column mutirao.instance.latest is 'Latest states of the tasks that conditions name, by task name.';
comment on column mutirao.instance.parked is 'How many of the pending jobs are parked.';
comment on column mutirao.instance.reasons is 'Why it is an exception: a list of {code, …}; null when it is none. The _EXCPT job exists exactly as long.';

create table mutirao.closed (
  id         bigint primary key,
  flow       int not null,
  version    int not null,
  status     mutirao.instance_status not null,
  state      jsonb not null,
  fired      int[] not null,
  reached    int[] not null,
  latest     jsonb,
  firings    int not null,
  priority   int not null,
  started_at timestamptz not null,
  closed_at  timestamptz not null
);
comment on table mutirao.closed is 'Finished instances, out of the way of the open ones.';

------------------------------------------------------------------------------------------------------------------- jobs

create type mutirao.job_status as enum ('ready', 'waiting', 'held', 'running', 'parked', 'failed');
comment on type mutirao.job_status is
  'ready: may be claimed. waiting: until due_at, for another try. held: its instance is suspended. running: leased to a worker. '
  'parked: done, but its change cannot be written yet. failed: for good, and keeps its place.';

-- One sequence per database: an attempt number names one claim of one job, for ever.
create sequence mutirao.attempt_number;

create sequence mutirao.job_id;

create table mutirao.job (
  id          bigint primary key default nextval('mutirao.job_id'),
  instance    bigint not null,
  flow        int not null,
  task        int not null,
  status      mutirao.job_status not null default 'ready',
  priority    int not null default 0,
  watched     boolean not null default false,
  cause       bigint not null,
  timeout     interval,
  attempt     bigint,
  worker      text,
  lease_until timestamptz,
  deadline_at timestamptz,
  due_at      timestamptz,
  failures    int not null default 0,
  losses      int not null default 0,
  change      jsonb,
  error       jsonb,
  created_at  timestamptz not null,
  unique (instance, task),
  check ((status = 'running') = (lease_until is not null)),
  check ((status = 'waiting') = (due_at is not null))
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
comment on column mutirao.job.cause is 'The trace row whose state fired it: its payload.';
comment on column mutirao.job.attempt is 'The current claim. Whoever names another one is refused: lease_lost.';
comment on column mutirao.job.losses is 'Leases lost in a row. Twenty count as one failure.';
comment on column mutirao.job.change is 'Of a parked job: what it wants to write. Null for a transactional task, which runs again.';

-- What is claimable, in the order in which it is claimed. Claimed jobs leave it, so a claim never steps over running ones.
create index job_ready on mutirao.job (task, priority desc, id) where status = 'ready';

-- What the clock must look at.
create index job_lease on mutirao.job (lease_until) where status = 'running';

create index job_due on mutirao.job (due_at) where status = 'waiting';

------------------------------------------------------------------------------------------------------------------ trace

create sequence mutirao.trace_id;

-- Ids are drawn while the instance is locked, so within an instance they are in the order of the writes.
create table mutirao.trace (
  instance bigint not null,
  id       bigint not null,
  flow     int not null,
  version  int not null,
  kind     text not null,
  job      bigint,
  task     int,
  attempt  bigint,
  cause    bigint,
  fired    int[] not null default '{}',
  status   mutirao.instance_status not null,
  state    jsonb,
  writer   text not null,
  note     jsonb,
  at       timestamptz not null,
  primary key (instance, id)
) with (toast_tuple_target = 8160);
comment on table mutirao.trace is 'What happened, append-only. A row with a state is a write; one without tells of something that wrote none (a retry, a refusal).';
comment on column mutirao.trace.cause is 'The write that fired the job that wrote this.';

-------------------------------------------------------------------------------------------------------------- searching

create table mutirao.search (
  flow     int not null,
  name     text not null,
  value    text not null,
  instance bigint not null,
  primary key (flow, name, value, instance)
);
comment on table mutirao.search is 'Values of attributes declared searchable, of open and closed instances.';

create index search_instance on mutirao.search (instance, name);

create table mutirao.recheck (
  flow  int primary key references mutirao.flow,
  after bigint not null default 0,
  sure  boolean not null default false,
  again boolean not null default false
);
comment on table mutirao.recheck is 'Live flows with a new version, whose open instances the clock still has to look at; `after` is how far it has come.';
