-- The instances that a person is in charge of. Those that they have to do with in any other way are in 51_sight.

create or replace function mutirao.charged_instances(actor int, is_open boolean default null, before bigint default null, room int default 50)
returns table (id bigint, flow int, version int, status mutirao.instance_status, state jsonb, reasons jsonb, started_at timestamptz, closed_at timestamptz, priority int)
language plpgsql stable security definer as $$
declare
  p mutirao.person := mutirao.actor(actor);
begin
  return query
    select i.* from (select c.instance from mutirao.charge c where c.person = p.id and (before is null or c.instance < before) order by c.instance desc) c
    cross join lateral mutirao.open_or_closed(c.instance, is_open) i
    order by c.instance desc limit least(room, 1000);
end $$;
comment on function mutirao.charged_instances(int, boolean, bigint, int) is 'The instances that a person is in charge of, newest first: open, closed or both, those before a number.';

create or replace function mutirao.open_or_closed(instance bigint, is_open boolean)
returns table (id bigint, flow int, version int, status mutirao.instance_status, state jsonb, reasons jsonb, started_at timestamptz, closed_at timestamptz, priority int)
language sql stable as $$
  select i.id, i.flow, i.version, i.status, i.state, i.reasons, i.started_at, null::timestamptz, i.priority from mutirao.instance i
  where i.id = open_or_closed.instance and open_or_closed.is_open is not false
  union all
  select c.id, c.flow, c.version, c.status, c.state, null, c.started_at, c.closed_at, c.priority from mutirao.closed c
  where c.id = open_or_closed.instance and open_or_closed.is_open is not true
$$;
