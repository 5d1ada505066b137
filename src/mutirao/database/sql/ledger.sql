-- What the migrator needs before the first migration: the schema, and the lists of what has been applied.
create schema if not exists mutirao;
create table if not exists mutirao.migration (
  number     integer primary key,
  name       text not null,
  checksum   text not null,
  applied_at timestamptz not null default clock_timestamp()
);
comment on table mutirao.migration is 'What the migrator has applied; the checksum is the SHA-256 of the file.';
create table if not exists mutirao.program (
  single     boolean primary key default true check (single),
  version    text not null,
  checksum   text not null,
  applied_at timestamptz not null default clock_timestamp()
);
comment on table mutirao.program is 'Whose functions the database has: the version of the program that wrote them, and the SHA-256 of their files.';
