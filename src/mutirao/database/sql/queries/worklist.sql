-- Work items: lists, and what persons do with them.

-- worklist: a page of the items that a person may do or holds
select (item).*, cursor from mutirao.worklist(%s, %s::jsonb, %s, %s)

-- worklist_size: how many there are, up to so many
select size, overdue from mutirao.worklist_size(%s, %s)

-- worklist_counts: how many there are, by role and flow
select role, flow, ready, running, overdue from mutirao.worklist_counts(%s)

-- item_view: one work item in full
select (item).*, inputs, outputs, in_charge, reminders, v.comments as all_comments, attachments, story,
  (select a.filename from mutirao.application a where a.name = (v.item).application) as program,
  (select p.name from mutirao.job j join mutirao.person p on p.id = j.offered_to where j.id = (v.item).job) as offered_to
from mutirao.item_view(%s, %s) v

-- once_held: the instance of a work item that a person has had, open or ended
select instance from mutirao.participation where job = %s and person = %s limit 1

-- select_item: a person takes a work item
select mutirao.select_item(%s, %s, %s)

-- claim_next: a person takes the next one
select job, attempt from mutirao.claim_next(%s, %s::jsonb, %s)

-- return_item: gives a work item back undone
select mutirao.return_item(%s, %s, %s)

-- finish_item: finishes a work item, by what it writes or as failed
select outcome, code, message from mutirao.finish_item(%s, %s, %s, %s::jsonb, %s)

-- delegate_item: offers a work item to one other person
select mutirao.delegate_item(%s, %s, %s, %s)

-- insert_item: puts a work item into somebody's list
select mutirao.insert_item(%s, %s, %s)

-- remove_item: takes it out
select mutirao.remove_item(%s, %s, %s)

-- move_item: puts an item before another one, or after it
select mutirao.move_item(%s, %s, %s, %s)

-- exchange_items: lets two items change places
select mutirao.exchange_items(%s, %s, %s)

-- extend_deadline: gives a work item another deadline
select mutirao.extend_deadline(%s, %s, %s, %s)

-- set_reminders: sets when deadlines are told of, and when items move
select mutirao.set_reminders(%s, %s::float8[]::numeric[], %s::float8::numeric, %s, %s)

-- add_comment: says something about an instance or an item
select mutirao.add_comment(%s, %s, %s, %s)

-- comments: what was said
select id, job, task, author, text, at from mutirao.comments(%s, %s, %s, %s, %s)

-- remove_comment: takes a comment back
select mutirao.remove_comment(%s, %s)

-- attachments: what is kept with an instance, though it is not of its state
select id, job, kind, task, person, content, at from mutirao.attachments(%s, %s, %s, %s, %s)

-- save_filter: keeps a filter under a name
select mutirao.save_filter(%s, %s, %s::jsonb)

-- filters: those that a person has saved
select name, filter, saved_at from mutirao.filters(%s)

-- rename_filter: gives one another name
select mutirao.rename_filter(%s, %s, %s)

-- drop_filter: forgets one
select mutirao.drop_filter(%s, %s)
