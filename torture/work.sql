-- What the harness notes beside the engine: effects of transactional tasks, spans of exclusive ones, leases that were taken away.

create schema torture;

create table torture.effect (
  job      bigint not null,
  attempt  bigint not null,
  instance bigint not null,
  task     text not null,
  amount   int not null
);
comment on table torture.effect is 'Nothing is unique here: a doubled effect is to be seen, not refused.';

create table torture.span (
  job      bigint not null,
  attempt  bigint primary key,
  class    text not null,
  begun_at timestamptz not null default clock_timestamp(),
  end_at   timestamptz
);
comment on table torture.span is 'When an attempt of an exclusive task was at work, by the clock of the server.';

create table torture.revoked (
  job     bigint not null,
  attempt bigint primary key,
  at      timestamptz not null default clock_timestamp()
);
comment on table torture.revoked is 'Attempts that were ended while their job went on: a lease was lost, or the job is to be tried again.';

create function torture.note_revoked() returns trigger language plpgsql security definer set search_path = pg_catalog as $$
begin
  insert into torture.revoked (job, attempt) values (old.id, old.attempt);
  return null;
end $$;

create trigger torture_revoked after update on mutirao.job
for each row when (old.attempt is not null and new.attempt is distinct from old.attempt) execute function torture.note_revoked();
