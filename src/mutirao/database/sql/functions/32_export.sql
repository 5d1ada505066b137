-- What an export records, so that a killed one goes on and nothing is dropped that is not safely in a file.

create or replace function mutirao.begin_export(flow text, folder text, ending text, writer text default session_user, out export bigint, out file text)
language plpgsql security definer as $$
begin
  insert into mutirao.export as e (flow, file, begun_at, writer) values (mutirao.flow_number(flow), '', mutirao.now(), mutirao.signed(writer)) returning e.id into export;
  file := format('%s/%s-%s.%s', folder, flow, lpad(export::text, 6, '0'), ending);
  update mutirao.export e set file = begin_export.file where e.id = export;
end $$;
comment on function mutirao.begin_export(text, text, text, text) is 'Says that a file is about to be written, and what it is called. No two files have one name.';

create or replace function mutirao.forget_export(export bigint) returns void
language sql security definer
begin atomic
  delete from mutirao.export e where e.id = forget_export.export and e.written_at is null;
end;
comment on function mutirao.forget_export(bigint) is 'Takes back begin_export: the file was not finished, and is gone.';

-- One that reopened since it was read is not exported: what it is by now stands in no file.
create or replace function mutirao.mark_exported(export bigint, instances bigint[], closed_at timestamptz[]) returns void
language plpgsql security definer as $$
#variable_conflict use_column
begin
  insert into mutirao.exported (flow, status, closed_at, instance, export)
  select c.flow, c.status, c.closed_at, c.id, mark_exported.export
  from unnest(mark_exported.instances, mark_exported.closed_at) x(id, closed_at) join mutirao.closed c on c.id = x.id and c.closed_at = x.closed_at
  on conflict do nothing;
  update mutirao.export e set instances = cardinality(mark_exported.instances), written_at = mutirao.now() where e.id = mark_exported.export;
  update mutirao.retention r set due_at = mutirao.now() from mutirao.export e where e.id = mark_exported.export and r.flow = e.flow and r.action = 'export';
end $$;
comment on function mutirao.mark_exported(bigint, bigint[], timestamptz[]) is 'Says that a file with these finished instances is safely on its disk.';

create or replace function mutirao.drop_exported(flow text, closed_before timestamptz, room int default 500) returns int
language plpgsql security definer as $$
#variable_conflict use_column
declare
  f int := mutirao.flow_number(flow);
  due bigint[];
begin
  due := array(
    select c.id from mutirao.exported e join mutirao.closed c on c.id = e.instance and c.closed_at = e.closed_at and c.status = e.status
    where e.flow = f and e.closed_at < closed_before limit room for update of c skip locked);
  perform mutirao.drop_closed(due);
  return cardinality(due);
end $$;
comment on function mutirao.drop_exported(text, timestamptz, int) is 'Drops some finished instances that are exported; answers how many.';
