-- As many copies of every finished task, its run and its checkpoints as asked for, under ids of their own, made from the old
-- ones and the number of the copy, so that they fit each other.

create function pg_temp.copied(id uuid, n bigint) returns uuid immutable return md5(id::text || n)::uuid;

insert into absurd.t_bench
select (jsonb_populate_record(t, jsonb_build_object('task_id', pg_temp.copied(task_id, n), 'last_attempt_run', pg_temp.copied(last_attempt_run, n)))).*
from absurd.t_bench t, generate_series(1, %(copies)s) n;

insert into absurd.r_bench
select (jsonb_populate_record(r, jsonb_build_object('run_id', pg_temp.copied(run_id, n), 'task_id', pg_temp.copied(task_id, n)))).*
from absurd.r_bench r, generate_series(1, %(copies)s) n;

insert into absurd.c_bench
select (jsonb_populate_record(c, jsonb_build_object('task_id', pg_temp.copied(task_id, n), 'owner_run_id', pg_temp.copied(owner_run_id, n)))).*
from absurd.c_bench c, generate_series(1, %(copies)s) n;
