-- Where instances meet: classes, and who waits for whom.

-- put_class: makes a class or changes it
select mutirao.put_class(%s, %s::text[], %s, %s)

-- drop_class: takes a class away
select mutirao.drop_class(%s, %s)

-- classes: all of them, with how they are used
select * from mutirao.classes()

-- gate_waits: jobs that wait for others, of a class or all
select job, instance, flow, task, class_name, since, place, kind, held_by, holder_instance, holder_task, ordering from mutirao.gate_waits(%s, %s)

-- seen_waits: the same of instances that a person may see
select job, instance, flow, task, class_name, since, place, kind, held_by, holder_instance, holder_task, ordering from mutirao.seen_waits(%s, %s, %s)
