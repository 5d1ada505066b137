-- Open instances that nobody here gets on with: a third each wait for a person, for a time that is far away, and for a worker that is not there.

insert into mutirao.instance (id, flow, version, status, state, pending, fired, firings, started_at)
select i, f.id, f.version, 'open.running', jsonb_build_object('kind', t.name, 'due', now() + interval '1 year' + i * interval '1 second'), array[t.id], '{}', 1, now()
from generate_series(%(first)s::bigint, %(last)s::bigint) i
join mutirao.flow f on f.name = %(flow)s
join mutirao.task t on t.flow = f.id and t.name = (array['agree', 'sleep', 'compute'])[1 + i %% 3];

insert into mutirao.trace (instance, id, flow, version, kind, fired, status, state, writer, at)
select i.id, i.id, i.flow, i.version, 'start', i.pending, i.status, i.state, 'benchmark', now()
from mutirao.instance i where i.id between %(first)s and %(last)s;

insert into mutirao.job (id, instance, flow, task, status, cause, due_at, by_clock, role, created_at)
select i.id, i.id, i.flow, r.task, case when r.by_clock then 'waiting' else 'ready' end::mutirao.job_status, i.id,
  case when r.by_clock then (i.state ->> 'due')::timestamptz end, r.by_clock, r.role, now()
from mutirao.instance i join mutirao.rule r on r.version = i.version and r.task = i.pending[1] where i.id between %(first)s and %(last)s;
