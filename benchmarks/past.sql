-- Finished instances of the worklist's flows, as people leave them: each with its key, its customer, who was in charge, and its trace.
-- One in twenty is person_1's; the others are spread over all persons. Closed over the last year, a few undone or cancelled.

create temporary table past as
select i, f.id as flow, f.version, t.id as task, case when i %% 20 = 0 then first.id else 2 + (i * 7919 %% 9999)::int end as person,
  now() - interval '1 year' * (%(all)s - i) / %(all)s as at, jsonb_build_object('customer', format('customer %%s', i * 7 %% 2000), 'n', i, 'done', 'yes') as state
from generate_series(%(first)s::bigint, %(last)s::bigint) i join mutirao.flow f on f.name = 'flow_' || i %% 20
join lateral (select min(x.id) as id from mutirao.task x where x.flow = f.id and x.name like 'task%%') t on true
cross join (select id from mutirao.person where name = 'person_1') first;

insert into mutirao.closed (id, flow, version, status, state, fired, reached, firings, priority, started_at, closed_at)
select i, flow, version, case when i %% 200 = 0 then 'closed.aborted' when i %% 200 = 1 then 'closed.terminated' else 'closed.completed' end::mutirao.instance_status,
  state, '{}', '{}', 1, 0, at, at + interval '3 hours' from past;

insert into mutirao.trace (instance, id, flow, version, kind, job, task, attempt, cause, fired, status, state, writer, at)
select i, i * 2 + k, flow, version, case k when 0 then 'start' else 'finish' end, i, case when k = 1 then task end, case when k = 1 then i end, i * 2, case when k = 0 then array[task] else '{}' end,
  case when k = 1 then 'closed.completed' else 'open.running' end::mutirao.instance_status, state, 'person_1', at + k * interval '3 hours'
from past, generate_series(0, 1) k;

insert into mutirao.search (flow, name, value, instance) select flow, 'customer', state ->> 'customer', i from past;
insert into mutirao.key (flow, key, instance) select flow, format('old %%s', i), i from past;
insert into mutirao.charge (instance, person, ended) select i, person, true from past;
insert into mutirao.participation (instance, person) select i, person from past;
drop table past;
