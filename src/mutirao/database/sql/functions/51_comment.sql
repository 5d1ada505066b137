-- What persons say about an instance or about one of its work items, and what else is kept with it. The operator (no actor) reads all of it.

create or replace function mutirao.add_comment(actor int, instance bigint, text text, job bigint default null) returns bigint
language plpgsql security definer as $$
declare
  p mutirao.person := mutirao.actor(actor);
  j mutirao.job;
  added bigint;
begin
  if job is not null then
    j := mutirao.item(p.id, job);
    instance := coalesce(instance, j.instance);
  end if;
  if instance is null or j.instance <> instance or not mutirao.may_see(p.id, instance) or not mutirao.is_there(instance) then
    perform mutirao.refuse('unknown_instance', format('there is no instance %s', instance));
  elsif coalesce(text, '') !~ '\S' then
    perform mutirao.refuse('wrong_call', 'a comment says something');
  elsif length(text) > 10000 then
    perform mutirao.refuse('too_large', format('a comment has %s characters, and at most 10000 are kept', length(text)));
  end if;
  insert into mutirao.comment (instance, job, task, person, text, at) values (instance, job, j.task, p.id, text, mutirao.now()) returning id into added;
  perform mutirao.hint(array[p.id, j.person, j.offered_to, (select c.person from mutirao.charge c where c.instance = add_comment.instance)], array_remove(array[j.role], null));
  return added;
end $$;
comment on function mutirao.add_comment(int, bigint, text, bigint) is 'A person says something about an instance they may see, open or closed, or about one of its work items.';

create or replace function mutirao.is_there(instance bigint) returns boolean
language sql stable
return exists (select from mutirao.instance i where i.id = is_there.instance) or exists (select from mutirao.closed c where c.id = is_there.instance);

create or replace function mutirao.check_reads(actor int, instance bigint) returns void
language plpgsql stable as $$
begin
  if actor is not null and not mutirao.may_see((mutirao.actor(actor)).id, instance) or not mutirao.is_there(instance) then
    perform mutirao.refuse('unknown_instance', format('there is no instance %s', instance));
  end if;
end $$;
comment on function mutirao.check_reads(int, bigint) is 'Refuses whoever may not see an instance, and one that is not there.';

create or replace function mutirao.comments(actor int, instance bigint, about bigint default null, after bigint default 0, room int default 100)
returns table (id bigint, job bigint, task text, author text, text text, at timestamptz)
language plpgsql stable security definer as $$
#variable_conflict use_column
begin
  perform mutirao.check_reads(actor, comments.instance);
  return query
    select c.id, c.job, t.name, q.name, c.text, c.at
    from mutirao.comment c join mutirao.person q on q.id = c.person left join mutirao.task t on t.id = c.task
    where c.instance = comments.instance and (about is null or c.job = about) and c.id > after
    order by c.id limit least(room, 1000);
end $$;
comment on function mutirao.comments(int, bigint, bigint, bigint, int) is 'What was said about an instance, or only about one of its items, the oldest first; a page after a number.';

create or replace function mutirao.remove_comment(actor int, comment bigint) returns void
language plpgsql security definer as $$
declare
  p mutirao.person := mutirao.actor(actor);
  c mutirao.comment;
begin
  select * into c from mutirao.comment x where x.id = remove_comment.comment;
  if not found or not mutirao.may_see(p.id, c.instance) then
    perform mutirao.refuse('unknown_comment', format('there is no comment %s', comment));
  elsif c.person <> p.id and not mutirao.is_administrator(p.id) then
    perform mutirao.refuse('forbidden', format('only whoever wrote comment %s or an administrator may remove it', comment));
  end if;
  delete from mutirao.comment x where x.id = c.id;
end $$;
comment on function mutirao.remove_comment(int, bigint) is 'Whoever wrote a comment takes it back; administrators remove any.';

create or replace function mutirao.attachments(actor int, instance bigint, about bigint default null, after bigint default 0, room int default 100)
returns table (id bigint, job bigint, kind text, task text, person text, content jsonb, at timestamptz)
language plpgsql stable security definer as $$
#variable_conflict use_column
begin
  perform mutirao.check_reads(actor, attachments.instance);
  return query
    select a.id, a.job, a.kind, t.name, q.name, a.content, a.at
    from mutirao.attachment a left join mutirao.person q on q.id = a.person left join mutirao.task t on t.id = a.task
    where a.instance = attachments.instance and (about is null or a.job = about) and a.id > after
    order by a.id limit least(room, 1000);
end $$;
comment on function mutirao.attachments(int, bigint, bigint, bigint, int) is
  'What is kept with an instance, open or closed, though it is not of its state: results that came too late. Of one item only, if it is named; a page after a number.';
