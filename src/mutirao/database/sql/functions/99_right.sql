-- Who may call what, and how the hot functions are planned. Always the last file.

delete from mutirao.callable;
insert into mutirao.callable (function, level) values
  ('now', 'read'), ('task_ids', 'read'), ('flow_document', 'read'),
  ('start', 'work'), ('start_many', 'work'), ('set', 'work'), ('repair', 'work'), ('cancel', 'work'), ('suspend', 'work'), ('resume', 'work'),
  ('retry', 'work'), ('skip', 'work'), ('roll_back', 'work'), ('start_task', 'work'), ('go_back', 'work'), ('claim', 'work'), ('turn', 'work'), ('complete', 'work'), ('fail', 'work'), ('renew', 'work'),
  ('release', 'work'), ('complete_here', 'work'), ('park_attempt', 'work'), ('take_job', 'work'), ('turn_clock', 'work'),
  ('limit_of', 'read'), ('limit_task', 'define'),
  ('migrate_flow', 'define'), ('preview_migration', 'define'),
  ('make_batch', 'work'), ('count_batch', 'work'), ('count_batch_within', 'work'), ('step_batch', 'work'), ('stop_batch', 'work'), ('resume_batch', 'work'),
  ('why', 'read'), ('task_states', 'read'), ('find_instances', 'read'), ('instance_counts', 'read'), ('latest_row', 'read'), ('exceptions', 'read'), ('announce', 'work'), ('leave', 'work'), ('note_pace', 'work'), ('pace_by_minute', 'read'), ('pace_by_task', 'read'),
  ('send', 'work'), ('send_many', 'work'),
  ('begin_export', 'define'), ('forget_export', 'define'), ('mark_exported', 'define'), ('drop_exported', 'define'),
  ('cron_next', 'read'), ('cron_times', 'read'), ('put_schedule', 'work'), ('pause_schedule', 'work'), ('resume_schedule', 'work'), ('drop_schedule', 'work'),
  ('value_as', 'read'),
  ('flow_number', 'read'), ('searched', 'read'), ('find_value', 'read'), ('find_elsewhere', 'read'), ('erase', 'define'), ('drop_instances', 'define'), ('keep', 'define'), ('limit_size', 'define'),
  ('create_instance', 'work'), ('steer_instance', 'work'), ('preview_undo', 'read'), ('steer_job', 'work'), ('hand_over', 'work'),
  ('worklist', 'read'), ('worklist_counts', 'read'), ('worklist_size', 'read'), ('item_view', 'read'), ('comments', 'read'), ('attachments', 'read'), ('filters', 'read'),
  ('claim_next', 'work'), ('move_item', 'work'), ('exchange_items', 'work'), ('add_comment', 'work'), ('remove_comment', 'work'),
  ('charged_instances', 'read'), ('save_filter', 'work'), ('rename_filter', 'work'), ('drop_filter', 'work'),
  ('select_item', 'work'), ('return_item', 'work'), ('finish_item', 'work'), ('delegate_item', 'work'), ('insert_item', 'work'), ('remove_item', 'work'),
  ('persons', 'read'), ('roles', 'read'), ('add_person', 'define'), ('change_person', 'define'), ('set_away', 'define'), ('disable_person', 'define'), ('enable_person', 'define'),
  ('add_role', 'define'), ('change_role', 'define'), ('remove_role', 'define'), ('put_into_role', 'define'), ('take_out_of_role', 'define'),
  ('library', 'read'), ('put_task_model', 'define'), ('put_application', 'define'), ('put_ordering', 'define'), ('put_class', 'define'), ('drop_class', 'define'), ('classes', 'read'), ('gate_waits', 'read'), ('seen_waits', 'read'), ('exceptional', 'read'), ('count_exceptional', 'read'),
  ('drop_task_model', 'define'), ('drop_application', 'define'), ('drop_ordering', 'define'),
  ('begin_sign_in', 'define'), ('finish_sign_in', 'define'), ('set_password', 'define'), ('first_administrator', 'define'), ('authenticate', 'define'),
  ('sessions', 'define'), ('end_sessions', 'define'), ('add_token', 'define'), ('tokens', 'define'), ('revoke_token', 'define'),
  ('begin_upload', 'work'), ('put_chunk', 'work'), ('upload_state', 'work'), ('seal_upload', 'work'), ('finish_upload', 'work'), ('abandon_upload', 'work'),
  ('may_read_file', 'read'),
  ('extend_deadline', 'work'), ('set_settings', 'define'), ('set_reminders', 'define'), ('read_messages', 'work'), ('unread_messages', 'read'),
  ('webhooks', 'define'), ('put_webhook', 'define'), ('pause_webhook', 'define'), ('drop_webhook', 'define'), ('try_webhook', 'define'), ('retry_deliveries', 'define'), ('webhook_address', 'define'),
  ('take_deliveries', 'define'), ('end_delivery', 'define'),
  ('recall_answer', 'work'), ('keep_answer', 'work'), ('check_see', 'read'), ('seen_among', 'read'), ('check_see_job', 'read'), ('check_see_flow', 'read'), ('startable', 'read'), ('stance', 'read'), ('kin', 'read'),
  ('check_unchanged', 'work'), ('interests', 'read'),
  ('put_source', 'define'), ('remove_source', 'define'), ('sources', 'define'), ('queries_of', 'work'), ('fill', 'work'),
  ('application_of', 'work'), ('note_output', 'work'),
  ('apply_flow', 'define'), ('create_flow', 'define');

create or replace function mutirao.grant_flow(flow text, role name, level text) returns void
language plpgsql as $$
begin
  execute format('revoke all on all tables in schema %I from %I', flow, role);
  execute format('grant usage on schema %I to %I', flow, role);
  execute format('grant select on all tables in schema %I to %I', flow, role);
  if level in ('work', 'define') then
    execute format('grant insert, update on %I.wed_flow to %I', flow, role);
    execute format('grant execute on all functions in schema %I to %I', flow, role);
  end if;
  if level = 'define' then
    execute format('grant insert, update, delete on %I.wed_attr, %I.wed_trig to %I', flow, flow, role);
  end if;
end $$;

create or replace function mutirao.is_owner(role name) returns boolean
language sql stable
return pg_has_role(role, (select n.nspowner from pg_catalog.pg_namespace n where n.nspname = 'mutirao'), 'member');
comment on function mutirao.is_owner(name) is 'Whether a role may do everything already: it owns the engine, is a member of the role that does, or is a superuser.';

create or replace function mutirao.give_rights(role name, level text) returns void
language plpgsql as $$
declare
  levels text[] := array['read', 'work', 'define'];
  allowed regprocedure;
begin
  execute format('grant usage on schema mutirao to %I', role);
  execute format('grant select on all tables in schema mutirao to %I', role);
  execute format('revoke execute on all functions in schema mutirao from %I', role);
  for allowed in
    select p.oid from pg_catalog.pg_proc p join mutirao.callable c on c.function = p.proname
    where p.pronamespace = 'mutirao'::regnamespace and array_position(levels, c.level) <= array_position(levels, give_rights.level)
  loop
    execute format('grant execute on function %s to %I', allowed, role);
  end loop;
  perform mutirao.grant_flow(f.name, role, level) from mutirao.flow f;
end $$;

create or replace function mutirao.give_all_rights() returns void
language sql as $$
  select mutirao.give_rights(g.role, g.level) from mutirao.granted g join pg_roles r on r.rolname = g.role where not mutirao.is_owner(g.role)
$$;
comment on function mutirao.give_all_rights() is 'Gives every role again what it was granted: after an upgrade, and on a server to which a backup was brought.';

create or replace function mutirao.grant_role(role name, level text) returns void
language plpgsql as $$
begin
  if level is null or level not in ('read', 'work', 'define') then
    perform mutirao.refuse('wrong_call', format('there is no level "%s": a role may read, work or define', level));
  elsif not exists (select from pg_catalog.pg_roles r where r.rolname = grant_role.role) then
    perform mutirao.refuse('wrong_call', format('there is no role "%s" in this database', role));
  end if;
  if mutirao.is_owner(role) then
    perform mutirao.refuse('wrong_call', format('role "%s" owns the engine or is a superuser, and may do everything already', role));
  end if;
  insert into mutirao.granted (role, level) values (role, level) on conflict on constraint granted_pkey do update set level = excluded.level;
  perform mutirao.give_rights(role, level);
end $$;
comment on function mutirao.grant_role(name, text) is 'Lets a role read, work or define.';

create or replace function mutirao.revoke_role(role name) returns void
language plpgsql as $$
declare
  schema name;
begin
  delete from mutirao.granted g where g.role = revoke_role.role;
  if not found then
    perform mutirao.refuse('wrong_call', format('role "%s" was granted nothing; those that were: %s', role,
      coalesce((select string_agg(g.role, ', ' order by g.role) from mutirao.granted g), 'none')));
  end if;
  if exists (select from pg_catalog.pg_roles r where r.rolname = revoke_role.role) then
    for schema in select 'mutirao' union all select f.name from mutirao.flow f loop
      execute format('revoke all on all tables in schema %I from %I', schema, role);
      execute format('revoke all on all functions in schema %I from %I', schema, role);
      execute format('revoke all on schema %I from %I', schema, role);
    end loop;
  end if;
end $$;
comment on function mutirao.revoke_role(name) is 'Takes back whatever a role was granted.';

-- What this upgrade has not written is in no file any more. To alter a function is to write it, so this comes before that.
do $$
declare
  gone text;
begin
  select string_agg(p.oid::regprocedure::text, ', ') into gone from pg_catalog.pg_proc p
  where p.pronamespace = 'mutirao'::regnamespace and p.xmin <> (pg_current_xact_id()::text::numeric % 4294967296)::text::xid;
  if gone is not null then
    execute format('drop function %s', gone);  -- in one statement: they may use one another
  end if;
end $$;

-- A definer function must not look where its caller points: only at what PostgreSQL itself brings. Nor must a condition hold in one
-- time zone and not in another, or a date be read in two ways.
--
-- The hot functions keep one plan for each statement: their arrays differ in length from call to call, and planning anew would cost
-- more than it could win. The tables are small when the plan is made and large later, so sequential scans are kept out of it.
do $$
declare
  f record;
begin
  for f in select p.oid::regprocedure as function, p.proname from pg_catalog.pg_proc p where p.pronamespace = 'mutirao'::regnamespace and p.prosecdef loop
    execute format('alter function %s set search_path = pg_catalog, pg_temp', f.function);
    execute format('alter function %s set timezone = %L', f.function, 'UTC');
    execute format('alter function %s set datestyle = iso, ymd', f.function);
    if f.proname = any ('{start,start_many,send,send_many,claim,turn,complete,complete_here,park_attempt,fail,renew,release,turn_clock,step_batch,take_job,create_instance,select_item,return_item,finish_item,delegate_item,authenticate,find_instances,instance_counts,wed_flow_insert,wed_flow_update}') then
      execute format('alter function %s set plan_cache_mode = force_generic_plan', f.function);
      execute format('alter function %s set enable_seqscan = off', f.function);
      execute format('alter function %s set jit = off', f.function);
    end if;
  end loop;
end $$;

-- Nothing is for everybody: PostgreSQL has no default to that effect for one schema alone.
revoke execute on all functions in schema mutirao from public;
select mutirao.give_all_rights();

select mutirao.show_face(f) from mutirao.flow f where f.face < mutirao.newest_face();

-- What the compiler makes is as new as the compiler.
select mutirao.compile(v.id) from mutirao.version v;
