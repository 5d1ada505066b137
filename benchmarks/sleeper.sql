-- Sleeping instances: each waits for a time that is far away.

insert into mutirao.instance (id, flow, version, status, state, pending, fired, firings, started_at)
select i, f.id, f.version, 'open.running', jsonb_build_object('due', now() + interval '1 year' + i * interval '1 second'), array[t.id], array[t.id], 1, now()
from mutirao.flow f join mutirao.task t on t.flow = f.id and t.name = 'sleep', generate_series(%(first)s::bigint, %(last)s::bigint) i
where f.name = %(flow)s;

insert into mutirao.trace (instance, id, flow, version, kind, fired, status, state, writer, at)
select i.id, i.id, i.flow, i.version, 'start', i.pending, i.status, i.state, 'benchmark', now()
from mutirao.instance i where i.id between %(first)s and %(last)s;

insert into mutirao.job (id, instance, flow, task, status, cause, due_at, by_clock, created_at)
select i.id, i.id, i.flow, i.pending[1], 'waiting', i.id, (i.state ->> 'due')::timestamptz, true, now()
from mutirao.instance i where i.id between %(first)s and %(last)s;
