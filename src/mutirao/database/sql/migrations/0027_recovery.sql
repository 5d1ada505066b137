-- What a failed task does, undoing what was done, and not waiting for ever. Running workers: go on; flows that say nothing of it are as they were.

alter table mutirao.rule
  add column on_failure text not null default 'block' check (on_failure in ('block', 'release', 'roll_back', 'safe_point')),
  add column force boolean not null default false,
  add column contingency int references mutirao.task,
  add column compensation int references mutirao.task,
  add column critical boolean not null default false,
  add column safe_point boolean not null default false,
  add column time_to_wait interval check (time_to_wait > interval '0'),
  add column stands_by text check (stands_by in ('contingency', 'compensation')),
  drop constraint rule_check,
  add constraint rule_check check ((condition is null) <> (depends is null and stands_by is null));
comment on column mutirao.rule.on_failure is
  'When a job of it has failed for good. block: what depends on it. release: whoever waits for it. roll_back: the whole instance. safe_point: back to the last one before it.';
comment on column mutirao.rule.force is 'It is tried until it succeeds.';
comment on column mutirao.rule.contingency is 'The task that takes its place when it has failed for good: whoever waits for it waits for that one.';
comment on column mutirao.rule.compensation is 'The task that undoes it.';
comment on column mutirao.rule.critical is 'It cannot be undone: nothing is rolled back across it.';
comment on column mutirao.rule.safe_point is 'A partial rollback stops where it has ended.';
comment on column mutirao.rule.time_to_wait is 'So long after the first of those it depends on has started, it starts though they have not ended.';
comment on column mutirao.rule.stands_by is 'It has no condition of its own: it starts in the place of another task that failed, or to undo one.';

alter table mutirao.version
  add column standing int[] not null default '{}',
  add column alarming int[] not null default '{}';
comment on column mutirao.version.standing is 'Tasks whose failure is not simply one: they have a contingency, are one, or release what depends on them.';
comment on column mutirao.version.alarming is 'Tasks that wait no longer than so long.';

alter table mutirao.instance drop constraint instance_hold_check;
alter table mutirao.instance add constraint instance_hold_check check (hold in ('suspended', 'cancelled', 'delayed', 'undoing'));

alter table mutirao.job add column undoes bigint;
comment on column mutirao.job.undoes is 'Of a compensation: the row of the trace by which the job ended that it undoes.';

alter type mutirao.entry add attribute undoes bigint;

create table mutirao.undoing (
  instance bigint primary key,
  since    bigint not null,
  begun_at timestamptz not null
);
comment on table mutirao.undoing is 'Instances that are being rolled back.';
comment on column mutirao.undoing.since is 'The row of the trace by which the safe-point ended: what follows it is undone. 0: everything.';

create table mutirao.alarm (
  instance bigint not null,
  task     int not null,
  due_at   timestamptz not null,
  primary key (instance, task)
);
comment on table mutirao.alarm is 'Tasks that start when this time has come, whether or not what they wait for has ended.';
create index alarm_due on mutirao.alarm (due_at);

alter table mutirao.child
  add column undone_by bigint,
  drop constraint child_wants_check,
  add constraint child_wants_check check (wants in ('cancel', 'suspend', 'resume', 'undo'));
comment on column mutirao.child.undone_by is 'The job of the parent that waits for the child to be undone.';
create index child_undone_by on mutirao.child (undone_by) where undone_by is not null;

drop function if exists mutirao.steer_instance(int, bigint, text, jsonb, text), mutirao.define_task(int, int, int, jsonb);
