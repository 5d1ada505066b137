-- How many instances there are, for whoever looks at all of them: exact while they are few, an estimate where counting would take long.

-- A sample of a large table is the same pages each time, so that the number does not dance before whoever looks twice.
create or replace function mutirao.instance_tally(room numeric default 4e6, few int default 1000)
returns table (flow int, status mutirao.instance_status, count bigint, is_exact boolean)
language plpgsql stable as $$
declare
  open_size numeric := pg_relation_size('mutirao.instance');
  closed_size numeric := pg_relation_size('mutirao.closed');
  open_part float := case when open_size <= room then 1 else 2 * open_size / room end;
  closed_part float := case when closed_size <= room then 1 else 2 * closed_size / room end;
begin
  return query
    with sampled as materialized (
      select i.flow, i.status, round(count(*) * open_part)::bigint as count from mutirao.instance i tablesample system (100 / open_part) repeatable (0) group by 1, 2)
    select s.flow, s.status, s.count, open_part = 1 from sampled s where open_part = 1 or s.status <> 'open.exception'
    union all  -- exceptions have an index: no sample could be trusted to have met the only one
    select f.id, 'open.exception', case when e.count < 10 * few then e.count else greatest(e.count, coalesce(s.count, 0)) end, e.count < 10 * few
    from mutirao.flow f cross join lateral (
      select count(*) as count from (
        select from mutirao.instance i where i.flow = f.id and i.status = 'open.exception' order by i.id limit 10 * few) x) e
    left join sampled s on s.flow = f.id and s.status = 'open.exception'
    where open_part > 1 and e.count > 0;
  if closed_part = 1 then
    return query select c.flow, c.status, count(*), true from mutirao.closed c group by 1, 2;
    return;
  end if;
  return query
    with sampled as materialized (
      select c.flow, c.status, round(count(*) * closed_part)::bigint as count from mutirao.closed c tablesample system (100 / closed_part) repeatable (0) group by 1, 2)
    select f.id, s.status, case when b.count < few then b.count else greatest(few, coalesce(x.count, 0)) end, b.count < few
    from mutirao.flow f cross join (values ('closed.completed'::mutirao.instance_status), ('closed.terminated'), ('closed.aborted')) s(status)
    cross join lateral (
      select count(*) as count from (select from mutirao.closed c where c.flow = f.id and c.status = s.status limit few) y) b
    left join sampled x on x.flow = f.id and x.status = s.status
    where b.count > 0;
end $$;
comment on function mutirao.instance_tally(numeric, int) is
  'How many instances of each flow have each status. Of a table larger than so many bytes half of that is read as a sample, and only what is few, or an exception, is counted.';

create or replace function mutirao.instance_counts(of_flow text default null)
returns table (flow text, open bigint, exceptions bigint, closed bigint, statuses jsonb, is_exact boolean)
language sql stable security definer as $$
  select f.name, coalesce(sum(t.count) filter (where t.status < 'closed.completed'), 0)::bigint, coalesce(sum(t.count) filter (where t.status = 'open.exception'), 0)::bigint,
    coalesce(sum(t.count) filter (where t.status >= 'closed.completed'), 0)::bigint, coalesce(jsonb_object_agg(t.status, t.count) filter (where t.count > 0), '{}'),
    coalesce(bool_and(t.is_exact), true)
  from mutirao.flow f left join mutirao.instance_tally() t on t.flow = f.id
  where of_flow is null or f.name = of_flow
  group by f.id order by f.name
$$;
comment on function mutirao.instance_counts(text) is
  'How many instances of each flow are open, of these exceptions, and closed; and how many there are of each status. Where they are too many to be counted at once they are estimated, and is_exact is false.';

create or replace function mutirao.latest_row() returns bigint
language sql stable security definer
return (select case when s.is_called then s.last_value else 0 end from mutirao.trace_id s);
comment on function mutirao.latest_row() is 'The newest row of the trace, of whatever instance: another one than before says that something has moved.';
