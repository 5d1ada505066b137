-- What a backup cannot carry from one server to another, run at the end of a restore and inside its transaction.
-- Looked for before it is touched: the backup may be older than any of it.
do $$
begin
  -- Roles differ from server to server, so a backup has no grants. Nothing is for everybody, and the roles that are here
  -- get again what `mutirao db grant` gave to those names.
  revoke execute on all functions in schema mutirao from public;
  if to_regclass('mutirao.granted') is not null then
    delete from mutirao.granted g where not exists (select from pg_roles r where r.rolname = g.role);
    perform mutirao.give_all_rights();
  end if;
  -- Nor are numbers used twice: see before_restore.sql.
  if to_regclass('pg_temp.number_in_use') is not null then
    perform setval(format('mutirao.%I', n.name)::regclass, greatest(n.last, s.last_value))
    from pg_temp.number_in_use n join pg_sequences s on s.schemaname = 'mutirao' and s.sequencename = n.name;
  end if;
  -- Transaction numbers of another server mean nothing here, and one of ours could be the same.
  if to_regclass('mutirao.version') is not null then
    update mutirao.version set made_in = '0';
  end if;
end $$;
