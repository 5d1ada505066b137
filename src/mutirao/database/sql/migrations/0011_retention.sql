-- How long finished instances are kept, and what was exported. Running workers: closing waits while the index is built, a second or so a million.

-- What is due is found without a scan. Finished instances come in the order of closed_at, so an insert meets the last page of its run.
create index closed_age on mutirao.closed (flow, status, closed_at);

create table mutirao.retention (
  flow   int not null references mutirao.flow,
  status mutirao.instance_status not null check (status in ('closed.completed', 'closed.terminated', 'closed.aborted')),
  period interval not null check (period >= interval '0'),
  action text not null check (action in ('drop', 'export')),
  due_at timestamptz not null,
  set_by text not null,
  set_at timestamptz not null,
  primary key (flow, status)
);
comment on table mutirao.retention is 'How long finished instances of a flow are kept; those of a flow without a row, for ever.';
comment on column mutirao.retention.action is 'drop: gone when due. export: gone when due and exported; until then they stay.';
comment on column mutirao.retention.due_at is 'Before this time nothing falls due.';

create table mutirao.pace (
  single     boolean primary key default true check (single),
  rest_until timestamptz not null
);
comment on table mutirao.pace is 'One row: whoever drops finished instances locks it, and says until when nobody drops more.';
insert into mutirao.pace (rest_until) values ('-infinity');

create table mutirao.export (
  id         bigint generated always as identity primary key,
  flow       int not null references mutirao.flow,
  file       text not null,
  instances  int,
  begun_at   timestamptz not null,
  written_at timestamptz,
  writer     text not null
);
comment on table mutirao.export is 'Every file that finished instances were exported to. One without written_at was begun and may be half there.';

create table mutirao.exported (
  flow      int not null,
  status    mutirao.instance_status not null,
  closed_at timestamptz not null,
  instance  bigint not null,
  export    bigint not null references mutirao.export,
  primary key (flow, status, closed_at, instance)
);
comment on table mutirao.exported is 'Finished instances that are safely in a file, as they were when they closed at that time: one that reopened is not.';
