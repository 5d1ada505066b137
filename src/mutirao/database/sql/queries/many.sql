-- What is done by the clock, or to many instances at once.

-- put_schedule: lets a clock start a flow each time a cron pattern says so
select from mutirao.put_schedule(%s, %s, %s, %s::jsonb, %s, %s, %s, %s, %s, %s)

-- pause_schedule: lets a schedule start nothing
select from mutirao.pause_schedule(%s)

-- resume_schedule: lets it go on
select from mutirao.resume_schedule(%s)

-- drop_schedule: takes it away
select mutirao.drop_schedule(%s)

-- schedules: all of them, or the one of a name; those that fire next first
select s.name, f.name as flow, s.cron, s.zone, s.state, s.priority, s.missed, s.overlap, s.time_to, s.paused, s.next_at, s.last_at, s.last_instance, s.runs, s.problem,
  s.made_by, s.made_at
from mutirao.schedule s join mutirao.flow f on f.id = s.flow
where %(name)s::text is null or s.name = %(name)s order by s.next_at, s.name

-- cron_times: when a cron pattern fires next
select * from mutirao.cron_times(%s, %s, count => %s)

-- make_batch: has something done to all instances that a filter chooses
select mutirao.make_batch(%s, %s::jsonb, %s::jsonb, %s, %s)

-- count_batch: to how many instances a batch would do it now
select mutirao.count_batch(%s, %s::jsonb, %s::jsonb)

-- count_batch_within: the same, or to how many at least
select total, is_exact from mutirao.count_batch_within(%s, %s, %s::jsonb, %s::jsonb)

-- step_batch: takes a batch one step further
select mutirao.step_batch(%s)

-- stop_batch: stops a batch where it is
select mutirao.stop_batch(%s, %s)

-- resume_batch: takes up a batch where it was left
select mutirao.resume_batch(%s, %s)

-- batches: the newest batches, or one
select b.id, b.kind, f.name as flow, b.filter, b.arguments, b.status, b.total, b.done, b.skipped, b.refused, b.made_by, b.reason, b.made_at, b.ended_at, b.note
from mutirao.batch b left join mutirao.flow f on f.id = b.flow
where %(id)s::bigint is null or b.id = %(id)s
order by b.id desc limit %(limit)s

-- batch_refusals: the instances to which a batch could not be done
select instance, code, message from mutirao.batch_refusal where batch = %s order by instance limit %s

-- migrate_flow: moves instances of a pinned flow to another version
select mutirao.migrate_flow(%s, %s, %s, %s::jsonb, %s::jsonb, %s::jsonb, %s, %s)

-- preview_migration: what that would do to a page of them
select instance, version, outcome, why, fires, removes, moves from mutirao.preview_migration(%s, %s, %s, %s::jsonb, %s::jsonb, %s::jsonb, %s, %s)
