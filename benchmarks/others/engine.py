"""The engines on PostgreSQL that one would pick instead: what each promises, and how its work is seen in its tables."""

from benchmarks.others.foreign import Foreign


class Dbos(Foreign):
    name = "dbos"
    title = "DBOS"
    package = "dbos"
    promise = "each step committed by itself before the next"
    open_work = "select exists (select from dbos.workflow_status where status in ('ENQUEUED', 'PENDING'))"
    tally_query = """
        select (select count(*) from dbos.workflow_status where status = 'SUCCESS'),
          (select count(*) from dbos.operation_outputs)"""
    times_need_crew = False


class Absurd(Foreign):
    name = "absurd"
    title = "Absurd"
    package = "absurd-sdk"
    promise = "each step committed by itself before the next"
    open_work = "select exists (select from absurd.t_bench where state not in ('completed', 'failed', 'cancelled'))"
    tally_query = """
        select (select count(*) from absurd.t_bench where state = 'completed'), (select count(*) from absurd.c_bench)"""


class PgQueuer(Foreign):
    name = "pgqueuer"
    title = "PgQueuer"
    package = "pgqueuer"
    promise = "a job a step; its end is committed after the next is put in, up to 0.1 s later, many together"
    open_work = "select exists (select from pgqueuer)"
    tally_query = """
        select count(*) filter (where entrypoint = 'step_4'), count(*) from pgqueuer_log where status = 'successful'"""


class Procrastinate(Foreign):
    name = "procrastinate"
    title = "Procrastinate"
    package = "procrastinate"
    promise = "a job a step; its end is committed after the next is put in, each by itself"
    open_work = "select exists (select from procrastinate_jobs where status in ('todo', 'doing'))"
    tally_query = """
        select count(*) filter (where task_name = 'step_4'), count(*)
        from procrastinate_jobs where status = 'succeeded'"""
