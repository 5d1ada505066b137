-- How much room each of the engine's tables takes, the largest first.
select c.relname, greatest(c.reltuples, 0)::bigint, pg_total_relation_size(c.oid)
from pg_class c
where c.relnamespace = to_regnamespace('mutirao') and c.relkind in ('r', 'p')
order by 3 desc, 1
