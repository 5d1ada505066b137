-- The library: what flows share. Task models, applications and orderings. Running workers: nothing.

create table mutirao.task_model (
  name     text primary key check (name <> '' and length(name) <= 100),
  document jsonb not null,
  source   text,
  made_by  text not null,
  made_at  timestamptz not null
);
comment on table mutirao.task_model is 'What tasks have in common. A flow takes it over when it is applied: a later change of the model changes no flow.';
comment on column mutirao.task_model.source is 'As its author wrote it, with the comments.';

create table mutirao.application (
  name      text primary key check (name <> '' and length(name) <= 100),
  filename  text not null check (filename <> ''),
  size      int not null default 0 check (size >= 0),
  os        text,
  cpu       text,
  installer text,
  hosts     text[] not null default '{}',
  source    text,
  made_by   text not null,
  made_at   timestamptz not null
);
comment on table mutirao.application is 'An executable, and where it may run. It is looked up when a job needs it: a change holds from the next job on.';
comment on column mutirao.application.size is 'Of all its files, in kB.';
comment on column mutirao.application.installer is 'For people to read: never run.';

create table mutirao.ordering (
  first   text not null,
  second  text not null,
  pairs   jsonb not null,
  source  text,
  made_by text not null,
  made_at timestamptz not null,
  primary key (first, second)
);
comment on table mutirao.ordering is 'The relative order of two flows: whichever instance comes first does each of these pairs of tasks first.';
comment on column mutirao.ordering.pairs is 'A list of [task of the first, task of the second].';
