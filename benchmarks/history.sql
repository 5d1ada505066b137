-- Finished instances, as if they had run: each with its start and five finishes in the trace.

insert into mutirao.closed (id, flow, version, status, state, fired, reached, firings, priority, started_at, closed_at)
select i, f.id, f.version, 'closed.completed', jsonb_build_object('inst', i, 'k', 5, 'v', 8), '{}', '{}', 5, 0, now() - interval '1 day', now() - interval '1 day'
from mutirao.flow f, generate_series(%(first)s::bigint, %(last)s::bigint) i
where f.name = %(flow)s;

insert into mutirao.trace (instance, id, flow, version, kind, job, task, attempt, cause, fired, status, state, writer, at)
select i, i * 6 + k, f.id, f.version, case k when 0 then 'start' else 'finish' end, i * 5 + k, t.id, i * 5 + k, i * 6 + k - 1,
  array[t.id], 'open.running', jsonb_build_object('inst', i, 'k', k, 'v', k * 2), 'benchmark', now()
from mutirao.flow f, mutirao.task t, generate_series(%(first)s::bigint, %(last)s::bigint) i, generate_series(0, 5) k
where f.name = %(flow)s and t.flow = f.id and t.name = 'step_0';
