-- Files, queries and applications.

-- begin_upload: begins an upload and answers its number
select mutirao.begin_upload(%s, %s, %s, %s, %s)

-- put_chunk: puts one chunk of an upload
select mutirao.put_chunk(%s, %s, %b, %s)

-- upload_state: how far an upload has come
select %s::bigint as id, s.* from mutirao.upload_state(%s, %s) s

-- seal_upload: seals an upload; answers the seal, null if it is finished
select mutirao.seal_upload(%s, %s)

-- finish_upload: makes a file of an upload
select f.of_content, f.name, f.size, f.media from mutirao.finish_upload(%s, %s, %s, %s) f

-- abandon_upload: removes an upload
select mutirao.abandon_upload(%s, %s)

-- upload_chunk: one chunk of an upload
select c.content from mutirao.chunk c where c.file = %s and c.number = %s

-- read_chunk: some bytes of one chunk of a file
select substr(c.content, %s, %s) from mutirao.file f join mutirao.chunk c on c.file = f.id where f.sha256 = %s and c.number = %s

-- file_size: how many bytes a file has
select f.size from mutirao.file f where f.sha256 = %s

-- may_read_file: whether a person may read a file as one of an instance
select mutirao.may_read_file(%s, %s, %s)

-- file_name: what an instance calls a file that it has now
select v.value ->> 'name'
from (select state from mutirao.instance where id = %(instance)s union all select state from mutirao.closed where id = %(instance)s) i, jsonb_each(i.state) v
where v.value ->> 'sha256' = %(sha256)s order by v.key limit 1

-- file_limit: how many bytes a file may have
select (s.value #>> '{}')::bigint from mutirao.setting s where s.name = 'file_limit'

-- put_source: names a database that flows may ask
select mutirao.put_source(%s, %s, %s, %s)

-- remove_source: takes the name of a database away
select mutirao.remove_source(%s)

-- sources: the databases that flows may ask
select name, url, timeout, made_by, made_at, flows from mutirao.sources()

-- queries_of: what must be asked before a job begins
select attribute, database, expression, url, timeout, state from mutirao.queries_of(%s, %s)

-- fill: writes what queries gave to a job that is about to begin
select mutirao.fill(%s, %s, %s::jsonb, %s)::text

-- asking_tasks: those of these tasks that have something to ask before their jobs begin, in any version
select distinct r.task from mutirao.rule r join mutirao.attribute a on a.version = r.version
where r.task = any (%s) and a.query is not null and (r.inputs is null or a.name = any (r.inputs))

-- application_tasks: tasks that applications do, in any version of their flow
select distinct t.id, f.id, f.name, t.name, jsonb_strip_nulls(jsonb_build_object('name', a.name, 'filename', a.filename, 'size', a.size, 'os', a.os, 'cpu', a.cpu, 'hosts', a.hosts))
from mutirao.rule r join mutirao.application a on a.name = r.application join mutirao.task t on t.id = r.task join mutirao.flow f on f.id = t.flow
where r.role is null and r.enabled order by 1

-- application_of: what runs a job, and what it is given
select document, inputs, outputs, attributes from mutirao.application_of(%s, %s)

-- note_output: keeps what the program of a job said
select mutirao.note_output(%s, %s, %s::jsonb, %s)
