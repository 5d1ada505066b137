-- As many copies of every finished job and its events as asked for, with numbers of their own. Triggers would write events of
-- their own and wake workers; the copies have those of the jobs they come from.

alter table procrastinate_jobs disable trigger user;

insert into procrastinate_jobs
select (jsonb_populate_record(j, jsonb_build_object('id', j.id + n * 1000000))).*
from procrastinate_jobs j, generate_series(1, %(copies)s) n;

alter table procrastinate_jobs enable trigger user;

insert into procrastinate_events (job_id, type, at)
select job_id + n * 1000000, type, at from procrastinate_events, generate_series(1, %(copies)s) n;

select setval('procrastinate_jobs_id_seq', (select max(id) from procrastinate_jobs));
