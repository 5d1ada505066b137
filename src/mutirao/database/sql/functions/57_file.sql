-- The file store: content in chunks, each content once; how it comes in, and who may give and read it. Its uses are in 58_file_use.sql.
--
-- An upload has a number, its chunks are kept under it, and when it is finished it becomes the file of that number: nothing is moved. Where the
-- same content is there already, the upload's own chunks are discarded.
--
-- A file that no instance refers to can be referred to for a day. An hour later it goes: so whoever was let in by the check of a write has
-- long committed, or is gone, and neither has to lock anything against the other.

create or replace function mutirao.chunk_size() returns int
language sql immutable parallel safe return 262144;

create or replace function mutirao.file_grace() returns interval
language sql immutable parallel safe return interval '1 day';

create or replace function mutirao.file_limit() returns bigint
language sql stable return (select (s.value #>> '{}')::bigint from mutirao.setting s where s.name = 'file_limit');

create or replace function mutirao.refuse_size(bytes bigint) returns void
language sql as $$
  select mutirao.refuse('file_too_large', format('the file has %s bytes or more, and %s are allowed', bytes, mutirao.file_limit()))
$$;

-- What a person has sent and no instance has yet. Each counts for a chunk at least, so that empty ones come to an end, too.
create or replace function mutirao.unused_bytes(person int) returns numeric
language sql stable
return (
  select coalesce(sum(greatest(mutirao.chunk_size(), case when u.finished_at is not null then f.size
    else coalesce(u.size, (select (max(c.number) + 1)::bigint * mutirao.chunk_size() from mutirao.chunk c where c.file = u.id)) end)), 0)
  from mutirao.upload u left join mutirao.file f on f.id = u.file
  where u.person = unused_bytes.person and (u.finished_at is null or f.unused_at is not null));

create or replace function mutirao.check_unused(person int, more bigint) returns void
language plpgsql as $$
declare
  most bigint := (select (s.value #>> '{}')::bigint from mutirao.setting s where s.name = 'unused_limit');
  had numeric := mutirao.unused_bytes(person);
begin
  if had + more > most then
    perform mutirao.refuse('too_many', format('%s bytes of yours wait to be used, and %s are allowed (the setting unused_limit): use or abandon some; what is not used goes after a day', had, most));
  end if;
end $$;
comment on function mutirao.check_unused(int, bigint) is 'Refuses so many more bytes of a person who has too many that no instance has yet.';

------------------------------------------------------------------------------------------------------------------ uploads

create or replace function mutirao.is_file_name(name text) returns boolean
language sql immutable
return coalesce(name ~ '^[^/\\[:cntrl:]]+$' and octet_length(name) <= 255 and name not in ('.', '..'), false);

create or replace function mutirao.is_media(media text) returns boolean
language sql immutable
return coalesce(media ~ '^[!-.0-~]+/[ -.0-~]+$' and length(media) <= 200, false);

create or replace function mutirao.begin_upload(name text, media text default 'application/octet-stream', size bigint default null, sha256 text default null, actor int default null) returns bigint
language plpgsql security definer as $$
declare
  made bigint;
begin
  if not mutirao.is_file_name(name) then
    perform mutirao.refuse('wrong_type', 'a file is called by a plain name of at most 255 bytes, without slashes and control characters');
  elsif not mutirao.is_media(media) then
    perform mutirao.refuse('wrong_type', format('"%s" is no media type: write one such as text/plain', left(media, 100)));
  elsif size < 0 or sha256 !~ '^[0-9a-f]{64}$' then
    perform mutirao.refuse('wrong_type', 'a size is a number of bytes, and a sha256 has 64 lowercase hexadecimal digits');
  elsif size > mutirao.file_limit() then
    perform mutirao.refuse_size(size);
  end if;
  if actor is not null then
    perform mutirao.actor(actor);
    perform mutirao.lock_person(actor);
    perform mutirao.check_unused(actor, greatest(mutirao.chunk_size(), size));
  end if;
  insert into mutirao.upload (id, name, media, size, sha256, person, begun_at) values (nextval('mutirao.file_id'), name, media, size, sha256, actor, mutirao.now()) returning id into made;
  perform pg_notify('mutirao', 'clock');
  return made;
end $$;
comment on function mutirao.begin_upload(text, text, bigint, text, int) is
  'Begins an upload and answers its number. Size and sha256, where they are known, are held against what comes. With an actor, only that person may go on with it.';

create or replace function mutirao.upload_of(upload bigint, actor int, alone boolean default false) returns mutirao.upload
language plpgsql as $$
declare
  u mutirao.upload;
begin
  if alone then
    select * into u from mutirao.upload x where x.id = upload_of.upload and (actor is null or x.person = actor) for update;
  else
    select * into u from mutirao.upload x where x.id = upload_of.upload and (actor is null or x.person = actor) for share;
  end if;
  if not found then
    perform mutirao.refuse('unknown_upload', format('there is no upload %s: one that is not finished within a day is removed', upload));
  end if;
  return u;
end $$;
comment on function mutirao.upload_of(bigint, int, boolean) is 'An upload, for whoever began it. It cannot be sealed meanwhile; alone, it takes no other chunk either.';

create or replace function mutirao.put_chunk(upload bigint, number int, content bytea, actor int default null) returns void
language plpgsql security definer as $$
declare
  breaks boolean := exists (select from mutirao.upload x where x.id = put_chunk.upload and x.sealed_at is not null);
  u mutirao.upload := mutirao.upload_of(upload, actor, breaks);
  until bigint := number::bigint * mutirao.chunk_size() + octet_length(content);
begin
  if u.finished_at is not null or u.sealed_at is not null and not breaks then
    perform mutirao.refuse('wrong_call', format('upload %s takes no more chunks: it is %s', upload, case when u.finished_at is null then 'being finished' else 'finished' end));
  elsif number is null or number < 0 or coalesce(octet_length(content), 0) not between 1 and mutirao.chunk_size() then
    perform mutirao.refuse('wrong_call', format('a chunk has a number from 0 on and from 1 to %s bytes: got number %s and %s bytes', mutirao.chunk_size(), number, octet_length(content)));
  elsif until > mutirao.file_limit() then
    perform mutirao.refuse_size(until);
  elsif until > u.size then
    perform mutirao.refuse('file_mismatch', format('upload %s was to have %s bytes, and chunk %s goes to byte %s', upload, u.size, number, until));
  end if;
  if u.person is not null and u.size is null and number % 16 = 15 then  -- what was announced is counted already
    perform mutirao.check_unused(u.person, octet_length(content));
  end if;
  if breaks then
    update mutirao.upload x set sealed_at = null where x.id = u.id;
  end if;
  insert into mutirao.chunk as c (file, number, content, put_at) values (upload, number, content, mutirao.now())
  on conflict on constraint chunk_pkey do update set content = excluded.content, put_at = excluded.put_at where c.content <> excluded.content;
end $$;
comment on function mutirao.put_chunk(bigint, int, bytea, int) is
  'Puts one chunk of an upload, in any order; all but the last have 262,144 bytes. The same again changes nothing, another content takes its place.';

create or replace function mutirao.upload_state(upload bigint, actor int default null, out name text, out media text, out size bigint, out sha256 text, out finished boolean, out received bigint, out missing int[])
language plpgsql security definer as $$
declare
  u mutirao.upload := mutirao.upload_of(upload, actor);
  most int;
begin
  name := u.name;
  media := u.media;
  size := u.size;
  sha256 := u.sha256;
  finished := u.finished_at is not null;
  select coalesce(sum(octet_length(c.content)), 0), max(c.number) into received, most from mutirao.chunk c where c.file = u.id;
  if u.size is not null then
    most := (u.size + mutirao.chunk_size() - 1) / mutirao.chunk_size() - 1;
  end if;
  missing := case when finished then '{}' else array(select n from generate_series(0, most) n except select c.number from mutirao.chunk c where c.file = u.id order by 1) end;
end $$;
comment on function mutirao.upload_state(bigint, int) is 'How far an upload has come: for whoever resumes it, which chunks are missing, as far as can be told.';

-- A seal says what content was read. Any chunk that comes breaks it: so nothing is left behind by whoever begins to finish an upload and dies.
create or replace function mutirao.seal_upload(upload bigint, actor int default null) returns timestamptz
language plpgsql security definer as $$
declare
  u mutirao.upload := mutirao.upload_of(upload, actor, true);
begin
  if u.finished_at is not null then return null; end if;
  update mutirao.upload x set sealed_at = coalesce(x.sealed_at, mutirao.now()) where x.id = u.id returning x.sealed_at into u.sealed_at;
  return u.sealed_at;
end $$;
comment on function mutirao.seal_upload(bigint, int) is 'Seals an upload, so that its content can be read and checked. Answers the seal, which the next chunk breaks; null: it was finished before.';

-- PostgreSQL has no way to hash what does not fit into one value, so the caller tells the hash of what it has sent, or has read back.
create or replace function mutirao.finish_upload(upload bigint, sha256 text, seal timestamptz, actor int default null, out name text, out media text, out size bigint, out of_content text)
language plpgsql security definer as $$
declare
  u mutirao.upload := mutirao.upload_of(upload, actor, true);
  had record;
  kept bigint;
begin
  name := u.name;
  media := u.media;
  if u.finished_at is null then
    select count(*) as chunks, coalesce(max(c.number), -1) as last, coalesce(sum(octet_length(c.content)), 0) as bytes into had from mutirao.chunk c where c.file = u.id;
    if u.sealed_at is null or seal is null or u.sealed_at <> seal then
      perform mutirao.refuse('wrong_call', format('upload %s has not this seal: chunks have come since it was read, so finish it again', upload));
    elsif had.chunks <> had.last + 1
      or exists (select from mutirao.chunk c where c.file = u.id and c.number < had.last and octet_length(c.content) <> mutirao.chunk_size())
    then
      perform mutirao.refuse('upload_incomplete', format('upload %s has %s chunks up to number %s: each must be there, and all but the last have %s bytes', upload, had.chunks, had.last, mutirao.chunk_size()));
    elsif had.bytes < u.size then
      perform mutirao.refuse('upload_incomplete', format('upload %s has %s bytes of %s', upload, had.bytes, u.size));
    elsif finish_upload.sha256 is null or finish_upload.sha256 <> u.sha256 then
      perform mutirao.refuse('file_mismatch', format('upload %s was to have the content %s, and has %s', upload, u.sha256, finish_upload.sha256));
    end if;
    -- Whoever stores the same content at this moment is waited for, and then it is there.
    insert into mutirao.file as f (id, sha256, size, stored_at, unused_at) values (u.id, finish_upload.sha256, had.bytes, mutirao.now(), mutirao.now())
    on conflict on constraint file_sha256_key do update set unused_at = case when f.unused_at is not null then excluded.unused_at end
    returning id into kept;
    if kept <> u.id then
      insert into mutirao.discarded (file) values (u.id);
    end if;
    update mutirao.upload x set finished_at = mutirao.now(), file = kept where x.id = u.id;
  end if;
  select f.size, f.sha256 into size, of_content from mutirao.file f where f.id = coalesce(kept, u.file);
end $$;
comment on function mutirao.finish_upload(bigint, text, timestamptz, int) is
  'Makes a file of an upload whose content had this sha256 when it was sealed, or finds the one that is there. Finished once more, it answers the same.';

create or replace function mutirao.abandon_upload(upload bigint, actor int default null) returns void
language plpgsql security definer as $$
declare
  u mutirao.upload := mutirao.upload_of(upload, actor, true);
begin
  perform mutirao.discard_uploads(array[u.id]);
end $$;
comment on function mutirao.abandon_upload(bigint, int) is 'Removes an upload that will not be finished. A file that came of it stays.';

create or replace function mutirao.discard_uploads(uploads bigint[]) returns void
language sql as $$
  with gone as (delete from mutirao.upload u where u.id = any (uploads) returning u.id, u.finished_at)
  insert into mutirao.discarded (file) select g.id from gone g where g.finished_at is null on conflict do nothing;
  select pg_notify('mutirao', 'clock');
$$;

------------------------------------------------------------------------------------------------------------------- values

create or replace function mutirao.file_problem(value jsonb) returns text
language sql stable
return case
  when not coalesce(value ->> 'sha256' ~ '^[0-9a-f]{64}$' and mutirao.is_file_name(value ->> 'name') and mutirao.is_media(value ->> 'media') and jsonb_typeof(value -> 'size') = 'number', false)
    then 'wrong_type'
  when not exists (
    select from mutirao.file f where f.sha256 = value ->> 'sha256' and f.size = (value ->> 'size')::numeric 
      and (coalesce(f.unused_at > mutirao.now() - mutirao.file_grace(), true) or exists (select from mutirao.file_use u where u.file = f.id)))
    then 'unknown_file' end;
comment on function mutirao.file_problem(jsonb) is 'What is wrong with the value of a file attribute, as a code; null: nothing.';

-- Asked by the look of every version that has files, of every change.
create or replace function mutirao.has_files(change jsonb, names text[]) returns boolean
language sql stable
return not exists (
  select from unnest(names) n where jsonb_typeof(change -> n) = 'object' and mutirao.file_problem(change -> n) is not null);

create or replace function mutirao.file_problem_words(attribute text, value jsonb) returns jsonb
language sql stable
return case mutirao.file_problem(value)
  when 'wrong_type' then jsonb_build_object('code', 'wrong_type', 'attribute', attribute, 'error',
    format('attribute "%s" is a file: {"sha256": …, "name": …, "size": …, "media": …} as the file store answers; it cannot be %s', attribute, left(value::text, 100)))
  when 'unknown_file' then jsonb_build_object('code', 'unknown_file', 'attribute', attribute, 'error',
    format('attribute "%s": the file store has no content %s of %s bytes: upload it first, and use it within a day', attribute, value ->> 'sha256', value ->> 'size')) end;

-- Who knows a hash does not thereby have the file: persons refer to what they have uploaded themselves, or what the instance has already.
create or replace function mutirao.check_files_of(person int, flow_version int, instance bigint, change jsonb) returns void
language plpgsql as $$
declare
  stray record;
begin
  select a.name, change -> a.name ->> 'sha256' as sha256 into stray
  from mutirao.attribute a left join mutirao.file f on f.sha256 = change -> a.name ->> 'sha256'
  where a.version = flow_version and a.type = 'file' and jsonb_typeof(change -> a.name) = 'object'
    and not exists (select from mutirao.upload u where u.file = f.id and u.person = check_files_of.person)
    and not exists (select from mutirao.file_use u where u.file = f.id and u.instance = check_files_of.instance) limit 1;
  if found then
    perform mutirao.refuse('unknown_file', format('attribute "%s": you have not uploaded the content %s within the last day', stray.name, coalesce(left(stray.sha256, 64), 'that is named')));
  end if;
end $$;
comment on function mutirao.check_files_of(int, int, bigint, jsonb) is 'Refuses a state or a change by a person with a file that is not theirs to give.';

create or replace function mutirao.check_given_files(person int, instance bigint, change jsonb) returns void
language sql as $$
  select mutirao.check_files_of(check_given_files.person, i.version, i.id, change) from mutirao.instance i where i.id = check_given_files.instance
$$;

create or replace function mutirao.may_read_file(actor int, sha256 text, instance bigint) returns boolean
language sql stable security definer
return exists (select from mutirao.person p where p.id = actor and p.disabled_at is null)
  and exists (select from mutirao.file f join mutirao.file_use u on u.file = f.id where f.sha256 = may_read_file.sha256 and u.instance = may_read_file.instance)
  and mutirao.may_see(actor, instance);
comment on function mutirao.may_read_file(int, text, bigint) is 'Whether a person may read a file as one of this instance: the instance refers to it or once did, and they may see the instance.';
