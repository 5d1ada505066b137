-- Applications: what a worker must know to run the executable of a job.

create or replace function mutirao.application_of(job bigint, attempt bigint, out document jsonb, out inputs text[], out outputs text[], out attributes jsonb)
returns setof record
language sql stable security definer
begin atomic
  select (select jsonb_strip_nulls(jsonb_build_object('name', a.name, 'filename', a.filename, 'size', a.size, 'os', a.os, 'cpu', a.cpu, 'hosts', a.hosts)) from mutirao.application a where a.name = r.application),
    r.inputs, r.outputs,
    (select jsonb_agg(jsonb_build_object('name', a.name, 'type', a.type, 'filename', a.filename) order by a.position) from mutirao.attribute a where a.version = i.version)
  from mutirao.job j join mutirao.instance i on i.id = j.instance join mutirao.rule r on r.version = i.version and r.task = j.task
  where j.id = application_of.job and j.attempt = application_of.attempt and j.status = 'running';
end;
comment on function mutirao.application_of(bigint, bigint) is 'What runs a job, by the version of its instance, and what it is given: for who holds it.';

create or replace function mutirao.note_output(job bigint, attempt bigint, note jsonb, writer text default session_user) returns void
language plpgsql security definer as $$
declare
  j mutirao.job;
begin
  perform from mutirao.instance i where i.id = (select x.instance from mutirao.job x where x.id = note_output.job) for no key update;
  select * into j from mutirao.job x where x.id = note_output.job and x.attempt = note_output.attempt and x.status = 'running';
  if not found then
    perform mutirao.refuse('lease_lost', format('attempt %s of job %s is not the current one', attempt, job));
  end if;
  perform mutirao.note_item(j, 'output', mutirao.signed(writer), mutirao.short_error(note));
end $$;
comment on function mutirao.note_output(bigint, bigint, jsonb, text) is 'Keeps in the trace what the program of a job said, for whoever wants to read it.';
