-- Where instances meet: classes, whose jobs exclude each other, and the order of two flows. Running workers: go on.

create table mutirao.class (
  id          int generated always as identity primary key,
  name        text not null unique check (name <> '' and length(name) <= 100),
  description text,
  conflicts   int[] not null default '{}',
  is_dropped  boolean not null default false,
  made_by     text not null,
  made_at     timestamptz not null,
  constraint class_dropped_excludes_nobody check (not is_dropped or conflicts = '{}')
);
comment on table mutirao.class is 'A synchronisation class: of two jobs whose classes conflict, one waits for the other.';
comment on column mutirao.class.is_dropped is 'Jobs and tasks still have it, and it excludes nobody; one that is made by the same name is the same.';
comment on column mutirao.class.conflicts is 'The classes it conflicts with, in both of them; its own number: its jobs exclude each other.';

create table mutirao.class_trace (
  id        bigint generated always as identity primary key,
  kind      text not null check (kind in ('put', 'drop')),
  name      text not null,
  conflicts text[],
  writer    text not null,
  at        timestamptz not null
);
comment on table mutirao.class_trace is 'Who made, changed and dropped classes, and what they conflicted with then.';

insert into mutirao.class (name, made_by, made_at) select distinct r.class, 'mutirao', now() from mutirao.rule r where r.class is not null;

alter table mutirao.rule
  add column class_id int references mutirao.class,
  add column ordered boolean not null default false;
comment on column mutirao.rule.class is 'What its author calls the class of its jobs; class_id: the one that there is.';
comment on column mutirao.rule.ordered is 'An ordering lists it.';

update mutirao.rule r set class_id = c.id from mutirao.class c where c.name = r.class;

alter table mutirao.version add column gated int[] not null default '{}';
comment on column mutirao.version.gated is
  'Tasks that are ordered, or whose class excludes others: their jobs are not ready as soon as they fire. A work item is: whoever selects it must pass.';

-- All null for a job that nobody excludes.
alter table mutirao.job
  add column class int,
  add column ordered boolean,
  add column gate text check (gate in ('waits', 'holds')),
  add column gate_at timestamptz,
  add column waits_for bigint;
comment on column mutirao.job.gate is
  'waits: it is synchronizing, that is waiting without a time to come. holds: its class, and its place in the order; if it is still waiting, a clock makes it ready, since somebody '
  'waits for that. Kept by a trigger, so that nothing gets by.';
comment on column mutirao.job.gate_at is 'Whose turn it is: when it fired, and a minute earlier for each point of its priority.';
comment on column mutirao.job.waits_for is 'Of a job that waits: the instance that goes first by an ordering; null: it waits for its class, or has not been looked at.';

create index job_gate on mutirao.job (class, gate_at, id) where gate = 'waits' and waits_for is null;
create index job_hold on mutirao.job (class) where gate = 'holds';
create index job_waits_for on mutirao.job (class) where waits_for is not null;
create index job_item_ordered on mutirao.job (task) where role is not null and ordered;
create index job_let_through on mutirao.job (id) where gate = 'holds' and status = 'waiting';

alter table mutirao.ordering
  add column id int generated always as identity unique,
  add column attribute text;
comment on column mutirao.ordering.attribute is 'Only instances whose values of it are equal are ordered; null: all.';

create table mutirao.ordering_task (
  ordering int not null references mutirao.ordering (id) on delete cascade,
  pair     int not null,
  side     int not null check (side in (1, 2)),
  task     int not null references mutirao.task,
  primary key (ordering, pair, side)
);
comment on table mutirao.ordering_task is 'The tasks that an ordering lists.';
create index ordering_task_task on mutirao.ordering_task (task);

create sequence mutirao.stamp_number;

create table mutirao.stamp (
  ordering int not null,
  instance bigint not null,
  key      text not null,
  stamp    bigint not null default nextval('mutirao.stamp_number'),
  changes  int not null default 0,
  primary key (instance, ordering)
);
comment on table mutirao.stamp is 'Open instances that have started a task which an ordering lists, in that order.';
comment on column mutirao.stamp.changes is 'Counted up by whatever may change what its instance owes; when it has closed, the row goes.';

create table mutirao.owed (
  ordering int not null,
  pair     int not null,
  side     int not null,
  key      text not null,
  stamp    bigint not null,
  instance bigint not null,
  task     int not null,
  primary key (ordering, pair, side, key, stamp, instance)
);
comment on table mutirao.owed is 'What stamped instances have still to do: whoever has a later stamp waits with the other task of the pair.';
create index owed_instance on mutirao.owed (instance, task);

create table mutirao.order_wait (
  job      bigint primary key,
  instance bigint not null,
  ordering int not null,
  pair     int not null,
  side     int not null,
  key      text not null,
  stamp    bigint not null
);
comment on table mutirao.order_wait is 'Jobs that wait because others owe their counterpart. All of a side wait for the same: so when something is done, only those are looked at that may go.';
comment on column mutirao.order_wait.stamp is 'That of their instance; the highest number there is: it has none, and waits for whoever has one.';
create index order_wait_turn on mutirao.order_wait (ordering, pair, side, key, stamp, job);
create index order_wait_instance on mutirao.order_wait (instance);

create table mutirao.order_left (
  ordering int not null,
  pair     int not null,
  side     int not null,
  key      text not null,
  primary key (ordering, pair, side, key)
);
comment on table mutirao.order_left is 'What is not owed any more, and more jobs waited for it than are looked at at once, or somebody held them: a clock goes on.';

create table mutirao.wait_circle (
  job       bigint primary key,
  instance  bigint not null,
  looked_at timestamptz not null
);
comment on table mutirao.wait_circle is 'Jobs that wait for others which wait for them, or may come to: a clock looks again whether these can still go on.';

insert into mutirao.ordering_task (ordering, pair, side, task)
select o.id, p.n, s.side, t.id from mutirao.ordering o cross join jsonb_array_elements(o.pairs) with ordinality p(pair, n)
cross join lateral (values (1, o.first, p.pair ->> 0), (2, o.second, p.pair ->> 1)) s(side, flow, task)
join mutirao.flow f on f.name = s.flow join mutirao.task t on t.flow = f.id and t.name = s.task;

update mutirao.rule r set ordered = true where exists (select from mutirao.ordering_task t where t.task = r.task);
update mutirao.version v set gated = g.tasks from (select r.version, array_agg(r.task) as tasks from mutirao.rule r where r.ordered and r.role is null and r.enabled group by 1) g where g.version = v.id;

-- None of these classes conflicts with another yet. Orderings hold for what fires from now on.
update mutirao.job j set class = r.class_id, gate_at = j.created_at - j.priority * interval '1 minute',
  gate = case when j.status = 'running' or j.status = 'ready' and j.role is null then 'holds' end
from mutirao.instance i join mutirao.rule r on r.version = i.version
where i.id = j.instance and r.task = j.task and r.class_id is not null;

alter table mutirao.job
  add constraint job_gate_passed check (role is not null or class is null and ordered is not true or status not in ('ready', 'running') or gate is not distinct from 'holds'),
  add constraint job_gate_left check (gate is distinct from 'holds' or status in ('ready', 'running', 'waiting'));

drop function if exists mutirao.migrated_jobs(mutirao.batch, int, bigint[], bigint[]);
