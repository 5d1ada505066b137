-- What pgqueuer keeps of a job that has ended is its log: as many copies of it as asked for, with numbers of their own.

insert into pgqueuer_log (created, job_id, status, priority, entrypoint, traceback, aggregated)
select created, job_id + n * 1000000, status, priority, entrypoint, traceback, aggregated
from pgqueuer_log, generate_series(1, %(copies)s) n;
