-- Only in databases made for tests: the engine's clock runs `ahead` of the real one.
create table mutirao.test_clock (
  only_row boolean primary key default true check (only_row),
  ahead    interval not null
);
insert into mutirao.test_clock (ahead) values (interval '0');
-- Whoever may call the engine reads its clock.
grant select on mutirao.test_clock to public;

create or replace function mutirao.now() returns timestamptz
language sql volatile parallel safe return clock_timestamp() + (select ahead from mutirao.test_clock);
