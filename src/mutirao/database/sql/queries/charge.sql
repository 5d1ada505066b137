-- Instances as persons see and steer them, and what they are told.

-- check_see: refuses whoever may not see an instance
select mutirao.check_see(%s, %s)

-- seen_among: which of these instances a person may see
select array(select mutirao.seen_among(%s, %s::bigint[]))

-- check_see_job: refuses whoever may not see a job
select mutirao.check_see_job(%s, %s)

-- check_see_flow: refuses whoever may not start a flow
select mutirao.check_see_flow(%s, %s)

-- check_unchanged: refuses whoever has not seen the newest state of an instance
select mutirao.check_unchanged(%s, %s, %s)

-- interests: whose hints concern a person
select persons, roles from mutirao.interests(%s)

-- seen_instance: one instance, for a person who may see it
select i.id, f.name as flow, v.number as version, i.status::text as status, i.state, i.reasons, i.started_at, i.closed_at, i.priority, i.hold,
  (select min(k.key) from mutirao.key k where k.instance = i.id) as key, (select d.due_at from mutirao.delayed d where d.instance = i.id) as due_at,
  n.parent, n.children, s.in_charge, s.may_steer, coalesce(s.revision, 0) as revision
from mutirao.stance(%(actor)s, %(id)s) s, mutirao.kin(%(actor)s, %(id)s) n, (
  select id, flow, version, status, state, reasons, started_at, null::timestamptz as closed_at, priority, hold from mutirao.instance where id = %(id)s
  union all
  select id, flow, version, status, state, null, started_at, closed_at, priority, null from mutirao.closed where id = %(id)s) i
join mutirao.flow f on f.id = i.flow join mutirao.version v on v.id = i.version

-- seen_flows: the flows that a person may start
select f.name, v.number as version, v.description, r.name as creator_role
from mutirao.flow f join mutirao.version v on v.id = f.version left join mutirao.role r on r.id = f.creator_role
where f.id in (select mutirao.startable(%(actor)s)) order by f.name

-- seen_exceptions: a page of the exceptions that a person steers, newest first
select i.id, f.name as flow, v.number as version, i.status::text as status, i.state, i.reasons, i.started_at, null::timestamptz as closed_at, i.priority, i.hold,
  (select min(k.key) from mutirao.key k where k.instance = i.id) as key, n.parent, n.children, s.in_charge, s.may_steer, coalesce(s.revision, 0) as revision, x.since
from mutirao.exceptional(%(actor)s, %(flow)s, %(code)s, %(task)s, %(error)s, %(before)s, %(limit)s) x join mutirao.instance i on i.id = x.instance
join mutirao.flow f on f.id = i.flow join mutirao.version v on v.id = i.version cross join lateral mutirao.stance(%(actor)s, x.instance) s cross join lateral mutirao.kin(%(actor)s, x.instance) n
order by i.id desc

-- count_exceptional: how many exceptions a person steers, up to a thousand
select mutirao.count_exceptional(%s)

-- trace_page: what happened to an instance after a row of its trace, in order
select t.id, t.kind, n.name as task, t.job, t.attempt, t.cause, t.status::text as status, t.state, t.writer, t.note, t.at,
  array(select x.name from unnest(t.fired) with ordinality f(id, o) join mutirao.task x on x.id = f.id order by f.o) as fired
from mutirao.trace t left join mutirao.task n on n.id = t.task
where t.instance = %(instance)s and t.id > %(after)s order by t.id limit %(limit)s

-- trace_lately: the last things that happened to an instance, newest first; of what was written, only that it was
select t.id, t.kind, n.name as task, t.job, t.attempt, t.cause, t.status::text as status, case when t.state is not null then '{}'::jsonb end as state, t.writer, t.note, t.at, '{}'::text[] as fired
from mutirao.trace t left join mutirao.task n on n.id = t.task
where t.instance = %(instance)s order by t.id desc limit %(limit)s

-- listen_people: hears whose worklists and messages have changed
listen mutirao_people

-- preview_undo: what a rollback would undo
select task, times, compensation, is_critical, by_child, is_running from mutirao.preview_undo(%s, %s, %s)

-- charged_instances: those that a person is in charge of
select i.id, f.name as flow, v.number as version, i.status::text as status, i.state, i.reasons, i.started_at, i.closed_at, i.priority,
  (select x.hold from mutirao.instance x where x.id = i.id) as hold,
  (select min(k.key) from mutirao.key k where k.instance = i.id) as key, (select d.due_at from mutirao.delayed d where d.instance = i.id) as due_at,
  n.parent, n.children, (select p.name from mutirao.charge c join mutirao.person p on p.id = c.person where c.instance = i.id) as in_charge
from mutirao.charged_instances(%(actor)s, %(is_open)s, %(before)s, %(limit)s) i join mutirao.flow f on f.id = i.flow join mutirao.version v on v.id = i.version,
  lateral mutirao.kin(%(actor)s, i.id) n order by i.id desc

-- create_instance: a person starts an instance
select mutirao.create_instance(%s, %s, %s::jsonb, %s, %s::jsonb, %s, %s, %s::timestamptz, %s)

-- steer_instance: a person suspends, resumes, cancels, sets, repairs or rolls back an instance, or starts one of its tasks
select mutirao.steer_instance(%s, %s, %s, %s::jsonb, %s, %s)

-- steer_job: a person retries or skips a job
select mutirao.steer_job(%s, %s, %s, %s::jsonb, %s)

-- hand_over: puts somebody else in charge
select mutirao.hand_over(%s, %s, %s, %s)

-- messages: a page of a person's messages, newest first
select m.id, m.kind, m.sender, m.text, m.instance, m.job, t.name as task, m.note, m.at, m.read_at, (
    select f.name from mutirao.flow f where f.id = coalesce((select i.flow from mutirao.instance i where i.id = m.instance), (select c.flow from mutirao.closed c where c.id = m.instance))) as flow
from mutirao.message m left join mutirao.task t on t.id = m.task
where m.person = %(person)s and m.id < %(before)s and (not %(unread)s or m.read_at is null) and (%(kinds)s::text[] is null or m.kind = any (%(kinds)s))
order by m.id desc limit %(limit)s

-- unread_messages: how many a person has not read, up to a thousand
select mutirao.unread_messages(%s)

-- read_messages: marks messages of a person as read; answers how many were not yet
select mutirao.read_messages(%s, %s::bigint[], %s)

-- webhooks: those that an actor may see to, or one of them
select * from mutirao.webhooks(%s, %s)

-- webhook_address: the whole address of a webhook and its secret
select url, secret from mutirao.webhook_address(%s, %s)

-- put_webhook: lets messages be sent on
select mutirao.put_webhook(%s, %s, %s, %s::text[], %s, %s)

-- pause_webhook: lets a webhook send nothing, or go on
select mutirao.pause_webhook(%s, %s, %s)

-- drop_webhook: takes a webhook away
select mutirao.drop_webhook(%s, %s)

-- try_webhook: lets a webhook send a message that says nothing; answers the delivery
select mutirao.try_webhook(%s, %s)

-- retry_deliveries: sends again what was given up
select mutirao.retry_deliveries(%s, %s, %s)

-- deliveries: what became of the messages that a webhook sent on, the newest first
select d.id, d.message, m.kind, d.status, d.tries, d.made_at, d.due_at, d.ended_at, d.answer, d.error
from mutirao.delivery d left join mutirao.message m on m.id = d.message
where d.webhook = %(webhook)s and d.id < %(before)s and (%(status)s::text is null or d.status = %(status)s) order by d.id desc limit %(limit)s

-- take_deliveries: takes what is to be sent now
select delivery, try, webhook, url, secret, content from mutirao.take_deliveries(%s, %s, %s, %s::int[], %s)

-- end_delivery: says how a try went
select mutirao.end_delivery(%s, %s, %s, %s)
