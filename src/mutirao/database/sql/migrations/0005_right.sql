-- Who may call what. Running workers: none can exist yet.

-- What a granted role may call is listed here; all of it is security definer, so a role needs no right on the tables it changes.
create table mutirao.callable (
  function name primary key,
  level    text not null check (level in ('read', 'work', 'define'))
);
comment on table mutirao.callable is 'The least level that may call each public function.';

create table mutirao.granted (
  role  name primary key,
  level text not null check (level in ('read', 'work', 'define'))
);
comment on table mutirao.granted is 'Roles that may use the engine: read sees flows and instances, work also starts and does jobs, define also defines flows.';
