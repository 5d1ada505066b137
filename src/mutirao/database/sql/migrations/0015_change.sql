-- Live flows change while they run: each version is followed by itself, and views that somebody reads are remade later. Running workers: notice nothing.

alter table mutirao.version add column gone int[] not null default '{}';
comment on column mutirao.version.gone is 'Tasks of the flow that this version does not have, or has disabled: their jobs are removed unless a worker has them.';

-- A definition only ever adds a row and a clock only takes rows that it can lock, so neither waits for the other.
drop function if exists mutirao.look_again_at(mutirao.recheck, int);
drop table mutirao.recheck;

create table mutirao.recheck (
  version   int primary key references mutirao.version on delete cascade,
  flow      int not null,
  after     bigint not null default 0,
  waits_for text[],
  sure      boolean not null default false,
  again     boolean not null default false
);
comment on table mutirao.recheck is 'New versions of live flows, whose open instances the clock still has to look at; `after` is how far it has come.';
comment on column mutirao.recheck.waits_for is 'The transactions that ran when a clock first saw the version: they may still write by the one before.';

insert into mutirao.recheck (version, flow) select f.version, f.id from mutirao.flow f where f.live and f.version is not null;

create table mutirao.stale_view (
  version int primary key references mutirao.version on delete cascade,
  flow    int not null
);
comment on table mutirao.stale_view is 'Versions whose wed_flow could not be made when they were, because somebody was reading it: the clock makes it.';

-- Written as a whole with the other functions. The view changes at the very end of a definition, or its lock would last as long as that is open.
create function mutirao.show_version() returns trigger language plpgsql as $$ begin return null; end $$;

create constraint trigger show after insert on mutirao.version deferrable initially deferred for each row execute function mutirao.show_version();

do $$
declare
  f mutirao.flow;
begin
  for f in select * from mutirao.flow loop
    execute format('drop trigger keep on %I.wed_attr', f.name);
    execute format('create trigger remove instead of delete on %I.wed_attr for each row execute function mutirao.wed_attr_delete(%s)', f.name, f.id);
    execute format('create or replace trigger compile after insert or update or delete on %I.wed_attr for each statement execute function mutirao.wed_attr_done(%s)', f.name, f.id);
  end loop;
end $$;
