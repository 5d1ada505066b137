-- Persons, roles, signing in, settings.

-- persons: those whom an actor asks for, by name
select * from mutirao.persons(%(actor)s, %(named)s, %(numbered)s, %(search)s, %(role)s, %(is_here)s, %(is_disabled)s, %(after)s, %(room)s)

-- person_number: the number of the person of that name
select id from mutirao.person where name = %s

-- person_names: names to guess from what was meant by a wrong one
select name from mutirao.person where disabled_at is null order by name limit 500

-- add_person: adds a person in some roles, and answers the number
select mutirao.add_person(%s, %s, %s, %s, %s, %s)

-- change_person: changes name, full name or e-mail
select mutirao.change_person(%s, %s, %s::jsonb, %s, %s)

-- set_away: says from when until when a person is away
select mutirao.set_away(%s, %s, coalesce(%s::timestamptz, case when %s then mutirao.now() end), %s, %s, %s, %s)

-- disable_person: ends what a person may do
select mutirao.disable_person(%s, %s, %s, %s)

-- enable_person: lets a person sign in again
select mutirao.enable_person(%s, %s, %s, %s)

-- roles: those that an actor asks for, by name
select * from mutirao.roles(%(actor)s, %(named)s, %(numbered)s)

-- role_uses: where the newest versions of flows name a role, or any
select r.name as role, f.name as flow, null as task from mutirao.role r join mutirao.flow f on f.creator_role = r.id where %(role)s::text is null or r.name = %(role)s
union all
select r.name, f.name, t.name from mutirao.role r join mutirao.rule x on x.role = r.id join mutirao.flow f on f.version = x.version join mutirao.task t on t.id = x.task
where %(role)s::text is null or r.name = %(role)s
order by flow, task nulls first, role

-- add_role: adds a role, and answers its number
select mutirao.add_role(%s, %s, %s, %s)

-- change_role: changes name or description
select mutirao.change_role(%s, %s, %s::jsonb, %s, %s)

-- remove_role: removes a role that nothing uses
select mutirao.remove_role(%s, %s, %s, %s)

-- put_into_role: puts persons into a role
select mutirao.put_into_role(%s, %s, %s, %s)

-- take_out_of_role: takes persons out of a role
select mutirao.take_out_of_role(%s, %s, %s, %s)

-- begin_sign_in: counts an attempt, and answers the hash to verify or until when to wait
select person, hash, wait_until from mutirao.begin_sign_in(%s, %s)

-- finish_sign_in: begins a session
select mutirao.finish_sign_in(%s, %s, %s, %s, %s, %s, %s, %s)

-- set_password: replaces a password's hash and ends sessions
select mutirao.set_password(%s, %s, %s, %s, %s)

-- has_administrator: whether somebody is an administrator, and enabled
select exists (
  select from mutirao.role r join mutirao.member m on m.role = r.id join mutirao.person p on p.id = m.person and p.disabled_at is null
  where r.name = 'administrator')

-- first_administrator: makes an administrator if there is none
select mutirao.first_administrator(%s, %s, %s)

-- authenticate: who has a session or token
select person, name, roles, is_administrator, session, token from mutirao.authenticate(%s, %s)

-- sessions: where a person is signed in
select * from mutirao.sessions(%s, %s)

-- end_sessions: signs a person out
select mutirao.end_sessions(%s, %s, %s, %s)

-- add_token: lets a program act as a person
select mutirao.add_token(%s, %s, %s, %s, %s, %s)

-- tokens: those of a person
select * from mutirao.tokens(%s, %s)

-- revoke_token: ends one
select mutirao.revoke_token(%s, %s, %s)

-- settings: what holds for the whole engine
select s.name, s.value, s.set_by, s.set_at from mutirao.setting s order by s.name

-- setting_changes: who set what, the newest first
select c.id, c.name, c.before, c.after, c.reason, c.writer, c.at from mutirao.setting_change c where c.id < %s order by c.id desc limit %s

-- set_settings: sets some of it
select mutirao.set_settings(%s, %s::jsonb, %s, %s)

-- recall_answer: what a request of this key was answered
select status, headers, content from mutirao.recall_answer(%s, %s, %s, %s)

-- keep_answer: keeps what it was answered
select mutirao.keep_answer(%s, %s, %s, %s, %s, %s, %s)
