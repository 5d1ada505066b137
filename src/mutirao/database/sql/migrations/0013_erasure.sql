-- What was erased on demand is on record, though not what it was. Running workers: notice nothing.

create table mutirao.erasure (
  id         bigint generated always as identity primary key,
  instance   bigint not null,
  flow       int not null references mutirao.flow,
  how        text not null check (how in ('blank', 'drop')),
  attributes text[] not null,
  reason     text,
  writer     text not null,
  at         timestamptz not null
);
comment on table mutirao.erasure is 'Instances of which something was erased: who did it, when and why, never what it was.';
