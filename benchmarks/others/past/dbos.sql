-- As many copies of every finished workflow and its steps as asked for, under ids of their own.

insert into dbos.workflow_status
select (jsonb_populate_record(w, jsonb_build_object('workflow_uuid', w.workflow_uuid || '-' || n))).*
from dbos.workflow_status w, generate_series(1, %(copies)s) n;

insert into dbos.operation_outputs
select (jsonb_populate_record(o, jsonb_build_object('workflow_uuid', o.workflow_uuid || '-' || n))).*
from dbos.operation_outputs o, generate_series(1, %(copies)s) n;
