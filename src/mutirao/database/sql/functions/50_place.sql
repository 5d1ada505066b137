-- The order made by hand. Every item has a rank: its number, until somebody moves it in their own list. So what arrives comes last, and the
-- order is one of all items that a person has.

create or replace function mutirao.check_listed(p mutirao.person, job bigint) returns void
language plpgsql as $$
begin
  perform from mutirao.job j where j.id = check_listed.job and mutirao.is_listed(p.id, mutirao.stands_for(p.id), j);
  if not found then
    perform mutirao.refuse('unknown_job', format('work item %s is not in your list', job));
  end if;
end $$;

create or replace function mutirao.rank_of(person int, job bigint) returns numeric
language sql stable
return coalesce((select l.rank from mutirao.place l where l.person = rank_of.person and l.job = rank_of.job), job);

create or replace function mutirao.put_item(person int, job bigint, rank numeric) returns void
language sql as $$
  insert into mutirao.place as l (person, job, rank) values (person, job, rank) on conflict on constraint place_pkey do update set rank = excluded.rank
$$;

-- Between two neighbours there is always room, but it takes a digit more each time: those that were moved between two whole numbers are
-- spread out again when the digits become many.
create or replace function mutirao.spread_out(person int, whole numeric) returns void
language sql as $$
  update mutirao.place l set rank = spread_out.whole + round(x.n::numeric / (x.total + 1), 20)
  from (select y.job, row_number() over (order by y.rank, y.job) as n, count(*) over () as total from mutirao.place y
        where y.person = spread_out.person and y.rank > spread_out.whole and y.rank < spread_out.whole + 1) x
  where l.person = spread_out.person and l.job = x.job
$$;

create or replace function mutirao.move_item(actor int, job bigint, before bigint default null, after bigint default null) returns void
language plpgsql security definer as $$
declare
  p mutirao.person := mutirao.actor(actor);
  other bigint := coalesce(before, after);
  beside numeric;
  beyond numeric;
  rank numeric;
  f mutirao.item_filter;
begin
  if num_nonnulls(before, after) <> 1 or other = job then
    perform mutirao.refuse('wrong_call', 'an item is moved before another one or after it: name one of the two');
  end if;
  perform mutirao.check_listed(p, job);
  perform mutirao.check_listed(p, other);
  f.sort := 'hand';
  f.status := 'all';
  f.descending := before is not null;
  beside := mutirao.rank_of(p.id, other);
  select w.key::numeric into beyond from mutirao.worklist_page(p.id, mutirao.stands_for(p.id), f, beside::text, other, 2) w where w.job <> move_item.job limit 1;
  rank := case when beyond is not null then (beside + beyond) / 2 when before is not null then beside - 1 else beside + 0.5 end;
  perform mutirao.put_item(p.id, job, trim_scale(rank));
  if scale(trim_scale(rank)) > 60 then
    perform mutirao.spread_out(p.id, floor(rank));
  end if;
end $$;
comment on function mutirao.move_item(int, bigint, bigint, bigint) is 'A person moves an item before another one in their list, or after it; nobody else''s list changes.';

create or replace function mutirao.exchange_items(actor int, job bigint, other bigint) returns void
language plpgsql security definer as $$
declare
  p mutirao.person := mutirao.actor(actor);
  mine numeric := mutirao.rank_of(p.id, job);
  theirs numeric := mutirao.rank_of(p.id, other);
begin
  perform mutirao.check_listed(p, job);
  perform mutirao.check_listed(p, other);
  perform mutirao.put_item(p.id, job, theirs);
  perform mutirao.put_item(p.id, other, mine);
end $$;
comment on function mutirao.exchange_items(int, bigint, bigint) is 'Two items of a person''s list change places.';

-- Rows about items that have ended say nothing any more.
create or replace function mutirao.clock_items(room int, out done int, out next_at timestamptz)
language plpgsql as $$
declare
  began timestamptz := mutirao.stopwatch();
begin
  with gone as (
    delete from mutirao.place x where x.ctid = any (array(select y.ctid from mutirao.place y where not exists (select from mutirao.job j where j.id = y.job) limit room for update skip locked)) returning 1)
  select count(*) into done from gone;
  with gone as (
    delete from mutirao.invited x where x.ctid = any (array(select y.ctid from mutirao.invited y where not exists (select from mutirao.job j where j.id = y.job) limit room for update skip locked)) returning 1)
  select done + count(*) into done from gone;
  with gone as (
    delete from mutirao.barred x where x.ctid = any (array(select y.ctid from mutirao.barred y where not exists (select from mutirao.job j where j.id = y.job) limit room for update skip locked)) returning 1)
  select done + count(*) into done from gone;
  if done > 0 then
    next_at := mutirao.now() + mutirao.rest('items', 9 * (mutirao.stopwatch() - began));
  else
    perform mutirao.rest('items', interval '10 minutes');
  end if;
end $$;
comment on function mutirao.clock_items(int) is 'Removes places, invitations and bars of items that have ended.';
