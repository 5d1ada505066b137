-- Who changed what of persons and roles; passwords, sessions and tokens. Running workers: notice nothing.

alter table mutirao.person
  add column signed_out_at timestamptz,
  add column revision int not null default 1,
  add column changes jsonb not null default '{}';
comment on column mutirao.person.signed_out_at is 'When they ended their last session: since then they are not here.';
comment on column mutirao.person.revision is 'Raised by every change, so that a change can name the one it was made for.';
comment on column mutirao.person.changes is 'Of each thing that was changed: {revision, by, at} of its last change.';

create index person_disabled on mutirao.person (disabled_at) where disabled_at is not null;

alter table mutirao.role
  add column revision int not null default 1,
  add column changes jsonb not null default '{}',
  add column removed_at timestamptz;
comment on column mutirao.role.removed_at is 'It was removed, but old versions of flows speak of it. Adding one of its name brings it back.';

insert into mutirao.setting (name, value) values ('session_idle_hours', '12'), ('session_hours', '720');
comment on table mutirao.setting is
  'What administrators set for the whole engine. reminders: so many hours before its deadline an item''s holder is reminded; transfer: the one at which it moves to the person in charge; session_idle_hours: after so many without a request a session has ended; session_hours: and after so many in any case.';

create table mutirao_secret.password (
  person int primary key references mutirao.person,
  hash   text not null,
  set_at timestamptz not null
);
comment on table mutirao_secret.password is 'argon2id, in the form that names its parameters. Who has none cannot sign in.';

create table mutirao_secret.session (
  id      bigint generated always as identity primary key,
  person  int not null references mutirao.person,
  hash    bytea not null unique,
  address text,
  agent   text,
  made_at timestamptz not null,
  seen_at timestamptz not null
);
comment on column mutirao_secret.session.hash is 'SHA-256 of its secret, which only the browser has.';
create index session_person on mutirao_secret.session (person);
create index session_seen on mutirao_secret.session (seen_at);
create index session_made on mutirao_secret.session (made_at);

create table mutirao_secret.token (
  id         bigint generated always as identity primary key,
  person     int not null references mutirao.person,
  name       text not null,
  hash       bytea not null unique,
  made_by    text not null,
  made_at    timestamptz not null,
  expires_at timestamptz,
  used_at    timestamptz,
  unique (person, name)
);
create index token_expires on mutirao_secret.token (expires_at) where expires_at is not null;
comment on table mutirao_secret.token is 'By which programs act as a person.';

create table mutirao_secret.attempt (
  kind  text not null check (kind in ('address', 'both', 'name', 'known')),
  key   bytea not null,
  times timestamptz[] not null,
  at    timestamptz not null,
  primary key (kind, key)
);
comment on table mutirao_secret.attempt is 'When somebody last tried to sign in and did not, by address, by name, and by both; at: the newest. known: when both were right.';
comment on column mutirao_secret.attempt.key is 'SHA-256, for people type passwords where names belong.';
create index attempt_at on mutirao_secret.attempt (at);
