-- The schema, and who may use it.

-- lock_upgrade: one upgrade of this database at a time, until the transaction ends
select pg_advisory_xact_lock(%s)

-- has_ledger: whether the database has a schema of ours
select exists (
  select from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  where n.nspname = 'mutirao' and c.relname = 'migration')

-- applied_migrations: what made the tables
select number, name, checksum from mutirao.migration order by number

-- applied_functions: whose functions these are
select version, checksum from mutirao.program

-- record_migration: remembers that a migration was applied
insert into mutirao.migration (number, name, checksum) values (%s, %s, %s)

-- record_functions: remembers whose functions were written
insert into mutirao.program (version, checksum) values (%s, %s)
on conflict (single) do update set version = excluded.version, checksum = excluded.checksum, applied_at = excluded.applied_at

-- database_size: of the whole database, in bytes
select pg_database_size(current_database())

-- grant_role: lets a role read, work or define
select mutirao.grant_role(%s::name, %s::text)

-- revoke_role: takes back what a role was granted
select mutirao.revoke_role(%s::name)

-- schemas_of_those: which of these schemas there are
select nspname from pg_catalog.pg_namespace where nspname = any (%s) order by nspname

-- other_tables: the tables outside these schemas and the server's own
select format('%%I.%%I', schemaname, tablename) from pg_catalog.pg_tables
where schemaname <> all (%s) and schemaname <> all ('{pg_catalog,information_schema}') and schemaname !~ '^pg_(toast|temp)' order by 1
