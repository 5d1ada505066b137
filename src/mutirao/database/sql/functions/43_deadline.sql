-- Deadlines of work items.

-- A reminder that would come no later than the item itself is none.
create or replace function mutirao.reminders(deadline interval) returns interval[]
language sql stable
return array(select make_interval(hours => h::int) from mutirao.setting s, jsonb_array_elements_text(s.value) h
  where s.name = 'reminders' and make_interval(hours => h::int) < deadline order by h::int desc);
comment on function mutirao.reminders(interval) is 'How long before its deadline an item''s holder is reminded, the earliest first.';

create or replace function mutirao.next_alert(at timestamptz, finish_by timestamptz, deadline interval) returns timestamptz
language sql stable
return (select min(a.alert_at) from (select finish_by - r as alert_at from unnest(mutirao.reminders(deadline)) r union all select finish_by) a where a.alert_at > at);
comment on function mutirao.next_alert(timestamptz, timestamptz, interval) is 'When a clock has to see to an item next; null: never again.';
