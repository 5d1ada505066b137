-- Settings: what administrators decide for the whole engine. Whoever adds one adds its row by a migration and its check here.

create or replace function mutirao.is_number_between(value jsonb, fewest numeric, most numeric) returns boolean
language sql immutable
return jsonb_typeof(value) = 'number' and (value #>> '{}')::numeric between fewest and most;

-- What is wrong with a value; null: nothing.
create or replace function mutirao.setting_fault(name text, value jsonb) returns text
language sql immutable
return case name
  when 'reminders' then case when coalesce(jsonb_typeof(value), '') <> 'array' or jsonb_array_length(value) > 20 or exists (
      select from jsonb_array_elements(value) h where not mutirao.is_number_between(h, 0.01, 8760))
    then 'up to twenty numbers of hours, each from 0.01 to 8760, such as [48, 24, 12, 6, 1]' end
  when 'transfer' then case when not mutirao.is_number_between(value, 0, 8760) then 'one of the reminders, or 0 for the deadline itself' end
  when 'session_idle_hours' then case when not mutirao.is_number_between(value, 0.1, 8760) then 'a number of hours from 0.1 to 8760' end
  when 'session_hours' then case when not mutirao.is_number_between(value, 0.1, 87600) then 'a number of hours from 0.1 to 87600' end
  when 'file_limit' then case when not mutirao.is_number_between(value, 1, 1099511627776) or (value #>> '{}')::numeric % 1 <> 0 then 'a number of bytes from 1 to 1099511627776' end
  when 'unused_limit' then case when not mutirao.is_number_between(value, 1, 1125899906842624) or (value #>> '{}')::numeric % 1 <> 0 then 'a number of bytes from 1 to 1125899906842624' end
  when 'keep_messages' then case when not mutirao.is_number_between(value, 0, 36500) then 'a number of days from 0 to 36500' end
end;
comment on function mutirao.setting_fault(text, jsonb) is 'What a setting should be, if this value is not that.';

create or replace function mutirao.set_settings(actor int, changes jsonb, reason text default null, writer text default session_user) returns void
language plpgsql security definer as $$
declare
  signature text := mutirao.check_administrator(actor, writer);
  bad record;
begin
  if coalesce(jsonb_typeof(changes), '') <> 'object' then
    perform mutirao.refuse('wrong_call', 'settings are an object of names and values, such as {"transfer": 12}');
  end if;
  perform mutirao.note(reason);
  perform from mutirao.setting s where changes ? s.name order by s.name for update;
  select e.key, e.value, s.name, mutirao.setting_fault(e.key, e.value) as fault into bad from jsonb_each(changes) e left join mutirao.setting s on s.name = e.key
  where s.name is null or mutirao.setting_fault(e.key, e.value) is not null order by e.key limit 1;
  if found and bad.name is null then
    perform mutirao.refuse('unknown_setting', format('there is no setting "%s"; those there are: %s', bad.key, (select string_agg(s.name, ', ' order by s.name) from mutirao.setting s)));
  elsif found then
    perform mutirao.refuse('wrong_call', format('the setting "%s" is %s: it cannot be %s', bad.key, bad.fault, left(bad.value::text, 100)));
  end if;
  insert into mutirao.setting_change (name, before, after, reason, writer, at)
  select s.name, s.value, changes -> s.name, set_settings.reason, signature, mutirao.now() from mutirao.setting s where changes ? s.name and s.value <> changes -> s.name;
  update mutirao.setting s set value = changes -> s.name, set_by = signature, set_at = mutirao.now() where changes ? s.name and s.value <> changes -> s.name;
  perform mutirao.check_transfer();
  if changes ?| array['reminders', 'transfer'] then
    insert into mutirao.realert (after) values (0) on conflict (only_row) do update set after = 0;
    perform pg_notify('mutirao', 'clock');
  end if;
end $$;
comment on function mutirao.set_settings(int, jsonb, text, text) is 'An administrator sets what holds for the whole engine: all of it, or nothing if one value is wrong.';

create or replace function mutirao.check_transfer() returns void
language plpgsql as $$
declare
  reminders jsonb := (select s.value from mutirao.setting s where s.name = 'reminders');
  transfer jsonb := (select s.value from mutirao.setting s where s.name = 'transfer');
begin
  if transfer <> '0' and not reminders @> transfer then
    perform mutirao.refuse('wrong_call', format('items move to the person in charge at one of the reminders, %s, or at 0: it cannot be %s; set both together', reminders, transfer));
  end if;
end $$;

create or replace function mutirao.set_reminders(actor int, hours numeric[], transfer numeric, reason text default null, writer text default session_user) returns void
language sql security definer begin atomic
  select mutirao.set_settings(actor, jsonb_build_object('reminders', to_jsonb(hours), 'transfer', transfer), reason, writer);
end;
comment on function mutirao.set_reminders(int, numeric[], numeric, text, text) is
  'An administrator sets how many hours before its deadline an item is reminded of, and at which of them it moves to the person in charge.';
