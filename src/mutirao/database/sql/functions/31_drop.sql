-- Dropping finished instances by hand, as a batch: recorded, stopped and resumed like any other (23_batch.sql).

create or replace function mutirao.batch_drop(b mutirao.batch, instances bigint[]) returns setof mutirao.batch_outcome
language plpgsql as $$
declare
  kept bigint[] := array(select c.id from mutirao.closed c where c.id = any (instances) and (c.closed_at >= (b.arguments ->> 'closed_before')::timestamptz or mutirao.is_awaited(c.id)));
begin
  perform mutirao.drop_closed(array(select n from unnest(instances) n where n <> all (kept)));
  return query select n, null::text, null::text from unnest(kept) n;
end $$;

create or replace function mutirao.drop_instances(filter jsonb, closed_before timestamptz default null, reason text default null, writer text default session_user) returns bigint
language sql security definer
begin atomic
  select mutirao.new_batch('drop', filter, jsonb_strip_nulls(jsonb_build_object('closed_before', closed_before)), reason, mutirao.signed(writer));
end;
comment on function mutirao.drop_instances(jsonb, timestamptz, text, text) is
  'Drops the finished instances that the filter chooses and that closed before a time, as a batch, which it answers. Open ones stay.';
