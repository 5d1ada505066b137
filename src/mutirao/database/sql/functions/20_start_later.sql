-- Instances whose start was put off, and what a clock does when their time has come.

-- One that is suspended meanwhile loses only its time: it starts when it is resumed. The rest are looked at as a start is, except that
-- nothing can be refused any more: if nothing fires by now, because the flow was changed, that is an exception.
create or replace function mutirao.start_due(room int) returns int
language plpgsql as $$
declare
  at timestamptz := mutirao.now();
  due bigint[];
  locked bigint[];
begin
  due := array(select d.instance from mutirao.delayed d where d.due_at <= at order by d.due_at limit room);
  if due = '{}' then return 0; end if;
  select coalesce(array_agg(q.id), '{}') into locked from (
    select i.id from mutirao.instance i where i.id = any (due) order by i.id for no key update skip locked) q;
  if exists (select from mutirao.recheck) then
    perform mutirao.catch_up(locked);
  end if;
  -- A new statement: another clock may have started some of them before we had their locks.
  with mine as (
    delete from mutirao.delayed d where d.instance = any (due) and d.due_at <= at
      and (d.instance = any (locked) or not exists (select from mutirao.instance i where i.id = d.instance)) returning d.instance),
  begun as (
    update mutirao.instance i set started_at = at, hold = null from mine m where i.id = m.instance and i.hold = 'delayed' returning i.id)
  select coalesce(array_agg(b.id), '{}') into locked from begun b;
  perform mutirao.tell_started(array_agg(i.id), f.name) from mutirao.instance i join mutirao.flow f on f.id = i.flow
  where i.id = any (locked) and exists (select from mutirao.charge) group by f.id;
  perform mutirao.write_all(array(select mutirao.work_of(i, 'due', 'clock', null) from mutirao.instance i where i.id = any (locked)));
  return cardinality(locked);
end $$;
comment on function mutirao.start_due(int) is 'Starts what was put off until now. Each is started once, whoever else is at it.';

create or replace function mutirao.clock_starts(room int, out done int, out next_at timestamptz)
language plpgsql as $$
begin
  done := mutirao.start_due(room);
  next_at := (select min(d.due_at) from mutirao.delayed d);
end $$;
