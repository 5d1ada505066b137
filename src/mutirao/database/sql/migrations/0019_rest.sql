-- What is done beside the work rests, and looks at a bounded part of all instances at a time. Running workers: notice nothing.

create table mutirao.rest (
  duty  text primary key,
  until timestamptz not null
);
comment on table mutirao.rest is 'Duties of clocks that leave time to the work: until when, by the real clock, no clock takes them up.';

alter table mutirao.batch add column rest_until timestamptz;
comment on column mutirao.batch.rest_until is 'Until when, by the real clock, no clock takes the next step. Whoever steps it by hand does.';

alter table mutirao.recheck add column skipped bigint;
comment on column mutirao.recheck.skipped is 'The first instance that was being written when this pass came to it.';

drop function if exists mutirao.look_again(int);
drop function if exists mutirao.look_again_at(mutirao.recheck, int);
