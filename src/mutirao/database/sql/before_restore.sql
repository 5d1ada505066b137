-- Run at the beginning of a restore that replaces another engine, inside its transaction. Numbers are never used twice: a worker that
-- still has a job of the engine that goes must not be taken for one that has a job of the engine that comes.
do $$
begin
  if to_regclass('mutirao.job') is not null then
    lock table mutirao.instance, mutirao.job in access exclusive mode;  -- nobody draws a number from here on
  end if;
end $$;
create temporary table number_in_use on commit drop as
select s.sequencename as name, s.last_value as last from pg_catalog.pg_sequences s where s.schemaname = 'mutirao' and s.last_value is not null;
