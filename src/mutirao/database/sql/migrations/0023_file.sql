-- Files, kept once by what they contain; and the databases that queries are asked of. Running workers: notice nothing.

create sequence mutirao.file_id;

create table mutirao.file (
  id        bigint primary key,
  sha256    text not null unique check (sha256 ~ '^[0-9a-f]{64}$'),
  size      bigint not null check (size >= 0),
  stored_at timestamptz not null,
  unused_at timestamptz
);
comment on table mutirao.file is 'What is in the file store, each content once. Its name is with whoever uses it.';
comment on column mutirao.file.unused_at is 'Since when no instance refers to it; null: some instance does. After a day it cannot be referred to any more, and goes.';
create index file_unused on mutirao.file (unused_at) where unused_at is not null;

create table mutirao.chunk (
  file    bigint not null,
  number  int not null check (number >= 0),
  content bytea not null check (octet_length(content) between 1 and 262144),
  put_at  timestamptz not null,
  primary key (file, number)
);
comment on table mutirao.chunk is 'The content of files and of uploads, which have numbers from one sequence. All but the last chunk of a file have 262,144 bytes.';
-- Not compressed, so that a part of a chunk is read without the rest; and most files are compressed already.
alter table mutirao.chunk alter column content set storage external;

create table mutirao.upload (
  id          bigint primary key,
  name        text not null,
  media       text not null,
  size        bigint check (size >= 0),
  sha256      text check (sha256 ~ '^[0-9a-f]{64}$'),
  person      int references mutirao.person,
  begun_at    timestamptz not null,
  sealed_at   timestamptz,
  finished_at timestamptz,
  file        bigint
);
comment on table mutirao.upload is 'Files on their way in, chunk by chunk. One that is finished stays for a day: whoever asks again is answered the same.';
comment on column mutirao.upload.size is 'What was said at the beginning, as is sha256; null: nothing was said.';
comment on column mutirao.upload.sealed_at is 'Since when its content is being read to be checked. The next chunk that comes makes it null.';
create index upload_person on mutirao.upload (person) where person is not null;
create index upload_age on mutirao.upload (begun_at);
create index upload_file on mutirao.upload (file, person) where file is not null;

create table mutirao.file_use (
  file     bigint not null,
  instance bigint not null,
  primary key (file, instance)
);
comment on table mutirao.file_use is 'Which files an instance refers to or once did: its trace still shows them.';
create index file_use_instance on mutirao.file_use (instance);

create table mutirao.discarded (
  file bigint primary key
);
comment on table mutirao.discarded is 'Content that nobody can ask for any more; a clock removes its chunks by and by.';

insert into mutirao.setting (name, value) values ('file_limit', '1073741824'), ('unused_limit', '10737418240');

create table mutirao_secret.source (
  name    text primary key check (name <> '' and length(name) <= 100),
  url     text not null,
  timeout interval not null check (timeout > '0'),
  made_by text not null,
  made_at timestamptz not null
);
comment on table mutirao_secret.source is 'The databases that queries of flows may be asked of, by the names that flows call them.';
