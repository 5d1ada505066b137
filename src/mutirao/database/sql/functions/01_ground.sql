-- The ground: refusals with stable codes, the one clock, and two small translations.

insert into mutirao.refusal (code, sqlstate, meaning) values
  ('condition_syntax',    'MU101', 'a condition is not one SQL expression'),
  ('unknown_attribute',   'MU102', 'a condition names an attribute or a task that the flow does not have'),
  ('condition_type',      'MU103', 'a condition is not boolean, or compares what cannot be compared'),
  ('condition_refused',   'MU104', 'a condition uses something that is not on the allow-lists'),
  ('condition_too_long',  'MU105', 'a condition is longer, deeper or heavier than the limits'),
  ('attribute_reserved',  'MU106', 'an attribute has a name that it cannot have'),
  ('unknown_task',        'MU120', 'a rule names a task that the flow does not have'),
  ('flow_exists',         'MU121', 'the name is taken by another flow or schema'),
  ('flow_pinned',         'MU122', 'the flow is defined by a program and cannot be changed by SQL'),
  ('flow_live',           'MU123', 'the flow is defined by SQL and cannot be changed by a program'),
  ('flow_invalid',        'MU124', 'the definition of the flow is not whole'),
  ('definition_busy',     'MU220', 'another transaction is changing the flow'),
  ('unknown_flow',        'MU201', 'there is no flow of that name'),
  ('missing_attribute',   'MU202', 'a state lacks a value that its flow requires'),
  ('wrong_type',          'MU203', 'a value is not of its attribute''s type'),
  ('condition_failed',    'MU204', 'a condition raised an error on this state'),
  ('nothing_fires',       'MU205', 'an initial state that is not final and fires nothing'),
  ('final_blocked',       'MU206', 'the state would be final while jobs are pending'),
  ('lease_lost',          'MU207', 'the attempt is no longer the current one'),
  ('unknown_instance',    'MU208', 'there is no such instance'),
  ('instance_closed',     'MU209', 'the instance has ended'),
  ('instance_busy',       'MU210', 'another transaction is writing the instance'),
  ('not_an_exception',    'MU211', 'there is nothing to repair'),
  ('instance_cancelled',  'MU212', 'the instance is being cancelled'),
  ('unknown_job',         'MU213', 'there is no such job'),
  ('job_not_failed',      'MU214', 'the job is neither failed nor waiting for another try'),
  ('job_running',         'MU215', 'a worker has the job'),
  ('not_suspended',       'MU216', 'the instance is not suspended'),
  ('wrong_call',          'MU217', 'the arguments of a call do not fit together'),
  ('attempt_missing',     'MU218', 'UPDATE wed_flow without a job taken'),
  ('wrong_cron',          'MU240', 'a cron pattern cannot be read, or would never fire'),
  ('unknown_zone',        'MU241', 'there is no time zone of that name'),
  ('unknown_schedule',    'MU242', 'there is no schedule of that name'),
  ('changed_meanwhile',   'MU219', 'somebody else wrote the same attributes since they were read'),
  ('unknown_message',     'MU255', 'there is no such message for this person'),
  ('unknown_webhook',     'MU256', 'there is no such webhook'),
  ('unknown_setting',     'MU257', 'there is no such setting'),
  ('wrong_url',           'MU258', 'a webhook cannot be called at this address'),
  ('unknown_version',     'MU230', 'the flow has no version of that number'),
  ('unknown_batch',       'MU231', 'there is no such batch'),
  ('too_large',           'MU260', 'a state, a change or a text is larger than allowed'),
  ('unknown_upload',      'MU290', 'there is no such upload, or it is not this person''s'),
  ('unknown_file',        'MU291', 'the file store has no such content'),
  ('file_too_large',      'MU292', 'a file is larger than allowed'),
  ('file_mismatch',       'MU293', 'a file is not what was announced'),
  ('upload_incomplete',   'MU294', 'chunks of an upload are missing'),
  ('unknown_database',    'MU129', 'there is no database of that name for queries'),
  ('unknown_role',        'MU125', 'a flow names a role that there is not'),
  ('child_circle',        'MU126', 'flows that are each other''s children'),
  ('unknown_model',       'MU127', 'there is no task model of that name'),
  ('unknown_application', 'MU128', 'there is no application of that name'),
  ('in_use',              'MU243', 'something else still uses what should go'),
  ('unknown_ordering',    'MU244', 'there is no ordering of these two flows'),
  ('unknown_person',      'MU270', 'there is no such person'),
  ('person_disabled',     'MU271', 'the person may do nothing at present'),
  ('forbidden',           'MU272', 'this person may not do this'),
  ('not_an_item',         'MU273', 'the job is done by programs, not by people'),
  ('item_taken',          'MU274', 'somebody else holds the work item'),
  ('item_not_held',       'MU275', 'the person does not hold the work item'),
  ('item_not_ready',      'MU276', 'the work item cannot be done at present'),
  ('item_moved',          'MU277', 'the work item was given to somebody else meanwhile'),
  ('not_disconnected',    'MU278', 'the task may not be done away from the engine'),
  ('instance_suspended',  'MU279', 'the instance is interrupted'),
  ('item_finished',       'MU281', 'the person has finished the work item already'),
  ('not_searchable',      'MU295', 'the attribute is not declared searchable'),
  ('too_many',            'MU296', 'there are as many as there may be'),
  ('unknown_filter',      'MU297', 'the person has no saved filter of that name'),
  ('filter_exists',       'MU298', 'the person has a saved filter of that name'),
  ('unknown_comment',     'MU299', 'there is no such comment'),
  ('wrong_output',        'MU280', 'a result writes an attribute that is not among the task''s outputs'),
  ('name_taken',          'MU250', 'there is a person or a role of that name'),
  ('role_used',           'MU251', 'flows or work items need the role'),
  ('wrong_substitute',    'MU252', 'the person cannot stand in for the other'),
  ('unknown_session',     'MU253', 'there is no such session'),
  ('unknown_token',       'MU254', 'there is no such token'),
  ('wrong_credentials',   'MU285', 'name and password do not go together'),
  ('too_many_attempts',   'MU286', 'too many have tried to sign in and failed: there is a time to wait'),
  ('weak_password',       'MU287', 'a password is too short, too long, or the name'),
  ('not_signed_in',       'MU288', 'the session or token is unknown, has ended or was revoked'),
  ('last_administrator',  'MU289', 'no enabled administrator would be left'),
  ('instance_undoing',    'MU221', 'the instance is being rolled back'),
  ('critical_task',       'MU222', 'a task that cannot be undone is in the way of a rollback'),
  ('unknown_safe_point',  'MU223', 'the instance has passed no safe-point of that name'),
  ('job_pending',         'MU224', 'the task has a job already'),
  ('task_not_done',       'MU225', 'the task has not ended yet'),
  ('task_not_started',    'MU227', 'the task cannot start as the state of its instance is'),
  ('unknown_class',       'MU131', 'there is no synchronisation class of that name'),
  ('class_held',          'MU226', 'somebody else holds what excludes this work item'),
  ('key_reused',          'MU247', 'the Idempotency-Key was used for another request'),
  ('key_under_way',       'MU248', 'the request of this Idempotency-Key is not answered yet'),
  ('shown_once',          'MU249', 'the answer to the request of this Idempotency-Key held a secret, or was erased')
on conflict (code) do update set sqlstate = excluded.sqlstate, meaning = excluded.meaning;

create or replace function mutirao.refuse(code text, message text) returns void
language plpgsql as $$
declare
  state text;
begin
  select r.sqlstate into strict state from mutirao.refusal r where r.code = refuse.code;
  raise exception '%: %', code, message using errcode = state;
end $$;
comment on function mutirao.refuse(text, text) is 'Raises the refusal `code: message` with its SQLSTATE.';

-- The only clock that SQL reads. A database made by mutirao.testing replaces this function with one that can be moved.
create or replace function mutirao.now() returns timestamptz
language sql volatile parallel safe return clock_timestamp();

create or replace function mutirao.stopwatch() returns timestamptz
language sql volatile parallel safe return clock_timestamp();
comment on function mutirao.stopwatch() is 'For how long something takes, never for when it is: no test moves it.';

-- Not strict, and nothing in it that is not immutable: or it would not be inlined, and it stands in the hottest statement.
create or replace function mutirao.term(task int, state text) returns int
language sql immutable parallel safe
return task * 8 + case state when 'synchronizing' then 0 when 'ready' then 1 when 'running' then 2 when 'succeeded' then 3 when 'failed' then 4
  when 'aborted' then 5 when 'blocked' then 6 when 'compensated' then 7 end;
comment on function mutirao.term(int, text) is 'A dependency term "this task has reached this state" as one number.';

create or replace function mutirao.term_task(term int) returns int
language sql immutable parallel safe
return term / 8;

create or replace function mutirao.term_state(term int) returns text
language sql immutable parallel safe
return (array['synchronizing', 'ready', 'running', 'succeeded', 'failed', 'aborted', 'blocked', 'compensated'])[term % 8 + 1];

create or replace function mutirao.job_state(status mutirao.job_status, gate text) returns text
language sql immutable parallel safe
return case when gate = 'waits' or gate = 'holds' and status = 'waiting' then 'synchronizing' else status::text end;
comment on function mutirao.job_state(mutirao.job_status, text) is 'How people see a job stand: one that waits to be let through is synchronizing.';

create or replace function mutirao.without(tasks int[], others int[]) returns int[]
language sql immutable
return case when others = '{}' then tasks else array(select t from unnest(tasks) t where t <> all (others)) end;

create or replace function mutirao.sql_type(type text) returns text
language sql immutable strict parallel safe
return case type when 'integer' then 'bigint' when 'number' then 'numeric' when 'timestamp' then 'timestamptz' when 'json' then 'jsonb' when 'file' then 'jsonb' else type end;

create or replace function mutirao.json_kind(type text) returns text
language sql immutable strict parallel safe
return case type when 'integer' then 'number' when 'number' then 'number' when 'boolean' then 'boolean' when 'file' then 'object' else 'string' end;
comment on function mutirao.json_kind(text) is 'What a value of an attribute''s type is in JSON; one of type json may be anything.';
