-- The ground: refusals with stable codes, and the one clock. Running workers: none can exist yet.

-- The migrator has made the schema `mutirao` before this file runs.
-- What the compiler generates (condition and look functions) lives apart, so that `mutirao` holds only what is written by hand.
create schema mutirao_rule;

create table mutirao.refusal (
  code     text primary key,
  sqlstate text not null unique check (sqlstate ~ '^MU[123][0-9]{2}$'),
  meaning  text not null
);
comment on table mutirao.refusal is
  'Every refusal the engine makes. MU1xx: the author of a flow must act; MU2xx: the caller; MU3xx: the operator. Codes never change.';

create function mutirao.refuse(code text, message text) returns void
language plpgsql as $$
declare
  state text;
begin
  select r.sqlstate into strict state from mutirao.refusal r where r.code = refuse.code;
  raise exception '%: %', code, message using errcode = state;
end $$;
comment on function mutirao.refuse(text, text) is 'Raises the refusal `code: message` with its SQLSTATE.';

-- The only clock that SQL reads. A database made by mutirao.testing replaces this function with one that can be moved.
create function mutirao.now() returns timestamptz
language sql volatile parallel safe return clock_timestamp();
