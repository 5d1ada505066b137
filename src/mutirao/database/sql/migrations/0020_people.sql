-- People: persons, roles, and work items, which are jobs that people do. Running workers: go on; they never claim a work item.

create table mutirao.person (
  id          int generated always as identity primary key,
  name        text not null unique check (name <> '' and length(name) <= 100),
  full_name   text,
  email       text,
  disabled_at timestamptz,
  away_from   timestamptz,
  away_until  timestamptz,
  substitute  int references mutirao.person,
  seen_at     timestamptz,
  made_by     text not null,
  made_at     timestamptz not null,
  check (substitute <> id),
  check (away_from <= away_until)
);
comment on column mutirao.person.name is 'What they sign in with, and what the trace calls them.';
comment on column mutirao.person.disabled_at is 'Since when they may not sign in and are offered nothing. Persons are not deleted: the trace speaks of them.';
comment on column mutirao.person.away_from is 'From then until away_until, or until they say so, the substitute sees their work as well.';
comment on column mutirao.person.seen_at is 'When they last asked for anything: who was here a short while ago is active.';
create unique index person_name_lower on mutirao.person (lower(name));
create index person_substitute on mutirao.person (substitute) where substitute is not null;

create table mutirao.role (
  id          int generated always as identity primary key,
  name        text not null unique check (name <> '' and length(name) <= 100),
  description text,
  made_at     timestamptz not null
);

create table mutirao.member (
  role   int not null references mutirao.role on delete cascade,
  person int not null references mutirao.person,
  primary key (role, person)
);
create index member_person on mutirao.member (person, role);

insert into mutirao.role (name, description, made_at) values ('administrator', 'May do everything, and sees to persons, roles and flows.', clock_timestamp());

create table mutirao.setting (
  name  text primary key,
  value jsonb not null
);
comment on table mutirao.setting is 'What administrators set for the whole engine. reminders: so many hours before its deadline an item''s holder is reminded; transfer: the one at which it moves to the person in charge.';
insert into mutirao.setting (name, value) values ('reminders', '[48, 24, 12, 6, 1]'), ('transfer', '24');

-- Not to be read by whoever was granted `read` of the engine's tables.
create schema mutirao_secret;

alter table mutirao.flow add column creator_role int references mutirao.role;
comment on column mutirao.flow.creator_role is 'Of persons, only its members and administrators start instances.';

alter table mutirao.attribute
  drop constraint attribute_type_check,
  add constraint attribute_type_check check (type in ('text', 'integer', 'number', 'boolean', 'date', 'timestamp', 'json', 'file')),
  add column query jsonb,
  add column filename text;
comment on column mutirao.attribute.query is 'Its rows are read by this {database, expression} whenever a job begins that has it as an input.';
comment on column mutirao.attribute.filename is 'What the file is called where a program or a person meets it.';

alter table mutirao.rule
  add column role int references mutirao.role,
  add column deadline interval check (deadline > '0'),
  add column offer jsonb,
  add column inputs text[],
  add column outputs text[],
  add column application text,
  add column child text,
  add column model text,
  add column class text,
  add check ((role is null) = (offer is null));
comment on column mutirao.rule.role is 'Its jobs are work items, offered to the members of this role.';
comment on column mutirao.rule.deadline is 'How long after it became ready a work item should be done.';
comment on column mutirao.rule.offer is 'How it is offered: {kind, policy: {kind, task}, disconnected, users}.';
comment on column mutirao.rule.inputs is 'The attributes that whoever does it is given; null: all.';
comment on column mutirao.rule.outputs is 'The attributes that whoever does it may write; null: all.';
comment on column mutirao.rule.child is 'A job of it starts an instance of this flow, and ends when that does.';

-- All null for what workers do, so that a job of theirs is no fatter than it was.
alter table mutirao.job
  add column role int,
  add column person int,
  add column offered_to int,
  add column reserved boolean,
  add column transferred boolean,
  add column finish_by timestamptz,
  add column alert_at timestamptz,
  add column size bigint;
comment on column mutirao.job.role is 'Of a work item: whose members may do it. Workers never claim it.';
comment on column mutirao.job.person is 'Of a work item: who holds it, or held it last.';
comment on column mutirao.job.offered_to is 'Of a work item: the one person who is offered it; null: the whole role.';
comment on column mutirao.job.reserved is 'Of a work item that somebody holds: it is locked, to be done away from the engine.';
comment on column mutirao.job.transferred is 'Of a work item: its deadline came near, so it is the business of the person in charge.';
comment on column mutirao.job.finish_by is 'Of a work item: its deadline.';
comment on column mutirao.job.alert_at is 'Of a work item: when a clock has something to do about its deadline.';
comment on column mutirao.job.size is 'Of a work item: the bytes of its data and of its application.';

drop index mutirao.job_ready;
create index job_ready on mutirao.job (task, priority desc, id) where status = 'ready' and role is null and not by_clock;

-- A worklist is read in one of these orders, role by role. What somebody does already is in none of
-- them. Of a worker's job they ask only the first thing: whether it has a role.
create index item_arrival on mutirao.job (role, (id + 0), id) where role is not null and offered_to is null and status = 'ready';
create index item_priority on mutirao.job (role, priority desc, id) where role is not null and offered_to is null and status = 'ready';
create index item_deadline on mutirao.job (role, finish_by, id) where role is not null and offered_to is null and status = 'ready';
create index item_size on mutirao.job (role, size, id) where role is not null and offered_to is null and status = 'ready';
create index item_offered on mutirao.job (offered_to, (id + 0), id) where offered_to is not null and status <> 'running';
create index item_held on mutirao.job (person, id) where person is not null and status = 'running';
create index item_alert on mutirao.job (alert_at) where alert_at is not null;

-- Numbers of jobs are never used again, so a row whose job has ended says nothing; a clock removes it by and by.
create table mutirao.invited (
  person     int not null references mutirao.person,
  job        bigint not null,
  regardless boolean not null default false,
  primary key (person, job)
);
comment on table mutirao.invited is 'Work items that somebody put into this person''s list as well.';
comment on column mutirao.invited.regardless is 'By an administrator, who knew that a policy excludes them.';
create index invited_job on mutirao.invited (job);

create table mutirao.barred (
  person int not null references mutirao.person,
  job    bigint not null,
  primary key (person, job)
);
comment on table mutirao.barred is 'Work items that are not for this person: taken out of the list, or done by somebody else on principle.';
create index barred_job on mutirao.barred (job);

create table mutirao.rotation (
  task   int primary key references mutirao.task on delete cascade,
  person int not null
);
comment on table mutirao.rotation is 'Who was offered the last item of a task whose items go to each in turn.';

create table mutirao.departure (
  role   int not null references mutirao.role on delete cascade,
  person int not null references mutirao.person,
  at     timestamptz not null,
  primary key (role, person)
);
comment on table mutirao.departure is 'Who was taken out of which role in the last minutes: what they took at that very moment is given back by a clock.';

create table mutirao.charge (
  instance bigint primary key,
  person   int not null references mutirao.person,
  policies jsonb,
  ended    boolean not null default false
);
comment on table mutirao.charge is 'The person in charge of an instance, and the policies that were chosen for its tasks when it was created. It outlives the instance''s end.';
-- Open and closed are apart: whoever is in charge of a hundred thousand that are closed finds the three that are open.
create index charge_person on mutirao.charge (person, ended, instance desc);

create table mutirao.participation (
  instance bigint not null,
  task     int not null default 0,
  person   int not null references mutirao.person,
  job      bigint not null default 0,
  attempt  bigint,
  did      bigint,
  did_at   timestamptz,
  primary key (instance, task, person, job)
);
comment on table mutirao.participation is 'Who has to do with an instance: whoever created it or was in charge (task and job 0), held an item of a task, or did one (did_at).';
comment on column mutirao.participation.attempt is 'By which they held the item last: by it a result that comes too late is told from one that was never asked for.';
comment on column mutirao.participation.did is 'The attempt by which they did it.';
create index participation_job on mutirao.participation (job, person);
create index participation_person on mutirao.participation (person, instance desc);

create table mutirao.attachment (
  id       bigint generated always as identity primary key,
  instance bigint not null,
  job      bigint,
  task     int,
  person   int references mutirao.person,
  kind     text not null check (kind in ('late_result')),
  content  jsonb not null,
  at       timestamptz not null
);
comment on table mutirao.attachment is 'What belongs to an instance but not to its state: a result that came too late.';
create index attachment_instance on mutirao.attachment (instance);

create table mutirao.child (
  job       bigint primary key,
  parent    bigint not null,
  task      int not null,
  instance  bigint unique,
  status    mutirao.instance_status,
  wants     text check (wants in ('cancel', 'suspend', 'resume')),
  rests     boolean not null default false,
  due_at    timestamptz,
  in_charge int references mutirao.person
);
comment on table mutirao.child is 'Jobs that another instance does. A clock starts it, and ends the job when it has ended; the row stays, to tell whose child it was.';
comment on column mutirao.child.status is 'How the instance ended; null: it has not.';
comment on column mutirao.child.wants is 'What is done to the parent, and has still to be done to the child.';
comment on column mutirao.child.in_charge is 'Whom the parent was handed over to, and who has still to be put in charge of the child.';
comment on column mutirao.child.rests is 'It was interrupted because its parent was, and goes on with it.';
comment on column mutirao.child.due_at is 'When a clock has something to do: to start it, to steer it as its parent was, or to end the job. Null: nothing.';
create index child_due on mutirao.child (due_at) where due_at is not null;
create index child_parent on mutirao.child (parent);

drop function if exists
  mutirao.start(text, jsonb, int, text, timestamptz, jsonb), mutirao.start_many(text, jsonb[], int, text, text[], timestamptz, jsonb),
  mutirao.start_instances(text, jsonb[], int, text, text[], jsonb[], timestamptz),
  mutirao.finish_jobs(text, bigint[], bigint[], jsonb[], jsonb[], mutirao.appetite);
