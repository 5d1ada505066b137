-- Size limits: how large a state, a change, a trace and what is said about them may be.

create or replace function mutirao.limit_size(flow text, state int default null, change int default null, trace int default null) returns void
language plpgsql security definer as $$
declare
  f int := mutirao.flow_number(flow);
begin
  if state <= 0 or change <= 0 or greatest(state, change) > 100000000 then
    perform mutirao.refuse('wrong_call', format('a limit is from 1 byte to 100,000,000: got %s', greatest(state, change)));
  elsif trace <= 0 then
    perform mutirao.refuse('wrong_call', format('a trace is of at least one row: got %s', trace));
  end if;
  perform mutirao.lock_definition(flow);
  update mutirao.flow x set state_limit = coalesce(limit_size.state, x.state_limit), change_limit = coalesce(limit_size.change, x.change_limit),
    trace_limit = coalesce(limit_size.trace, x.trace_limit) where x.id = f;
  perform mutirao.compile(v.id) from mutirao.version v where v.flow = f;
end $$;
comment on function mutirao.limit_size(text, int, int, int) is
  'Sets how many bytes a state and a change of this flow may have, and how many rows a trace; what is null stays. From the next write on.';

-- Only what is set from outside is refused by it: tasks are bounded by how often they may fire, and whoever steers must always be able to.
create or replace function mutirao.trace_is_full(instance bigint, allowed int) returns boolean
language sql stable
return (select count(*) >= allowed from (select from mutirao.trace t where t.instance = trace_is_full.instance limit allowed) t);

-- In bytes as the database holds them, before compression: a little more than as text where there are many short values.
create or replace function mutirao.too_large(w mutirao.work) returns jsonb
language sql stable
return (
  select jsonb_build_object('code', 'too_large', 'error', format('the %s would have %s bytes, and flow "%s" allows %s: keep large things elsewhere and their address in the state, or raise the limit (mutirao flow size)',
    x.what, x.bytes, f.name, x.allowed))
  from mutirao.flow f cross join lateral (values ('change', pg_column_size(w.change), f.change_limit), ('state', pg_column_size(w.state), f.state_limit)) x(what, bytes, allowed)
  where f.id = w.flow and w.change is not null and x.bytes > x.allowed and (x.what = 'state' or w.kind <> 'migrate')
  union all
  select jsonb_build_object('code', 'too_large', 'error', format('the trace has %s rows, as many as flow "%s" allows: keep elsewhere what changes so often, or raise the limit (mutirao flow size)',
    f.trace_limit, f.name))
  from mutirao.flow f where f.id = w.flow and w.kind = 'set' and mutirao.trace_is_full(w.instance, f.trace_limit) limit 1);
comment on function mutirao.too_large(mutirao.work) is 'Says what of a write is larger than its flow allows; null if nothing is.';

-- A failure must be told however long its words are, so they are cut, not refused.
create or replace function mutirao.short_error(error jsonb) returns jsonb
language sql immutable
return case when pg_column_size(error) > 64000 then jsonb_strip_nulls(jsonb_build_object('code', left(error ->> 'code', 100), 'final', error -> 'final',
  'error', format('%s … (cut: it had %s bytes)', left(error ->> 'error', 8000), pg_column_size(error)))) else error end;
