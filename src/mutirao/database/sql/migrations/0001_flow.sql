-- What a flow is: its versions, attributes and tasks; and the list of refusals. Running workers: none can exist yet.

-- The migrator has made the schema `mutirao` before this file runs. What the compiler generates (condition and look functions)
-- lives apart, so that `mutirao` holds only what is written by hand.
create schema mutirao_rule;

create table mutirao.refusal (
  code     text primary key,
  sqlstate text not null unique check (sqlstate ~ '^MU[123][0-9]{2}$'),
  meaning  text not null
);
comment on table mutirao.refusal is
  'Every refusal the engine makes. MU1xx: the author of a flow must act; MU2xx: the caller; MU3xx: the operator. Codes never change.';

create table mutirao.flow (
  id         int generated always as identity primary key,
  name       text not null unique check (name ~ '^[a-z][a-z0-9_]{0,47}$'),
  live       boolean not null,
  version    int,
  exception_task int,
  created_at timestamptz not null
);
comment on table mutirao.flow is 'A process definition. Its schema has the same name and holds the views of the SQL face.';
comment on column mutirao.flow.live is 'Defined by SQL: open instances follow the newest version. Otherwise they keep the version they have.';
comment on column mutirao.flow.version is 'The newest version.';
comment on column mutirao.flow.exception_task is 'Its _EXCPT task.';

create table mutirao.version (
  id           int generated always as identity primary key,
  flow         int not null references mutirao.flow,
  number       int not null,
  ends         text not null default 'final' check (ends in ('final', 'quiet')),
  firing_limit int not null default 10000 check (firing_limit > 0),
  description  text,
  fingerprint  text,
  made_in      xid8 not null default pg_current_xact_id(),
  made_by      text not null default session_user,
  made_at      timestamptz not null,
  -- What the compiler found out, so that the hot statements need not look at the rules again.
  handled      int[] not null default '{}',
  terms        int[] not null default '{}',
  named        int[] not null default '{}',
  watched      int[] not null default '{}',
  once         int[] not null default '{}',
  searchable   text[] not null default '{}',
  defaults     jsonb not null default '{}',
  unique (flow, number)
);
comment on column mutirao.version.made_in is 'All definition changes of one transaction make one version: this is how a later statement of it finds the version to change.';
comment on column mutirao.version.handled is 'Tasks whose failure some other task waits for: such a failure blocks neither final nor quiet.';
comment on column mutirao.version.terms is 'The terms that some dependency names, as mutirao.term(task, state): only these are kept as reached.';
comment on column mutirao.version.named is 'Tasks whose latest state a condition names as task_<name>: only these are kept as latest.';
comment on column mutirao.version.once is 'Tasks that fire once.';
comment on column mutirao.version.watched is 'Terms on ready or running that somebody names: only for these does reaching it lock the instance and look.';

create table mutirao.attribute (
  version       int not null references mutirao.version on delete cascade,
  name          text not null,
  position      int not null,
  type          text not null default 'text' check (type in ('text', 'integer', 'number', 'boolean', 'date', 'timestamp', 'json')),
  default_value jsonb,
  searchable    boolean not null default false,
  required      boolean not null default false,
  primary key (version, name)
);

create table mutirao.task (
  id   int generated always as identity primary key,
  flow int not null references mutirao.flow,
  name text not null,
  unique (flow, name)
);
comment on table mutirao.task is
  'The identity of a task, the same in all versions of its flow. Every flow has _FINAL, which stands for its final condition, and _EXCPT, which stands for its exceptions.';

create table mutirao.rule (
  version        int not null references mutirao.version on delete cascade,
  task           int not null references mutirao.task,
  position       int not null,
  condition      text,
  depends        jsonb,
  function       text,
  arguments      text[],
  calm           boolean not null default false,
  trigger_name   text,
  condition_name text,
  enabled        boolean not null default true,
  fires          text not null default 'each' check (fires in ('each', 'once')),
  timeout        interval check (timeout > interval '0'),
  retries        int not null default 3 check (retries >= 0),
  backoff        interval not null default interval '100 milliseconds' check (backoff >= interval '0'),
  priority       int not null default 0 check (priority between -1000000 and 1000000),
  transactional  boolean not null default false,
  description    text,
  primary key (version, task),
  check ((condition is null) <> (depends is null))
);
comment on table mutirao.rule is 'A task as one version of its flow defines it: when it starts and how it is tried.';
comment on column mutirao.rule.function is 'The compiled condition: what mutirao.condition_function answered.';
comment on column mutirao.rule.calm is 'Its condition raises on no state whatever.';
