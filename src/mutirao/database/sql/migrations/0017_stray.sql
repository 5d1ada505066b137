-- Jobs that outlive their task in a migration are kept in mind. Running workers: notice nothing.

create table mutirao.stray (
  job      bigint primary key,
  instance bigint not null
);
comment on table mutirao.stray is 'Jobs that ran when their instance was migrated to a version without their task: one that comes back without a result is removed.';

create index stray_instance on mutirao.stray (instance);

drop function if exists mutirao.migrated_jobs(mutirao.batch, int, bigint[]);
drop function if exists mutirao.migrate_work(mutirao.batch, mutirao.version, bigint[]);
drop function if exists mutirao.clashing(mutirao.batch, int, bigint[]);
drop function if exists mutirao.move_jobs(mutirao.batch, mutirao.version, bigint[]);
