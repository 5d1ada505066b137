-- Flows are data. This makes an empty one; its tables are in a schema of its name.
select mutirao.create_flow('figure_2');
set search_path to figure_2;

-- Three attributes, three tasks with the conditions that start them, and the condition that ends it all.
-- One transaction: all of it takes effect at its commit.
begin;
insert into wed_attr (aname, adv) values ('a1', 'ready');
insert into wed_attr (aname) values ('a2'), ('a3');
insert into wed_trig (tgname, trname, cname, cpred, timeout)
values ('t1', 'tr_a2', 'c1', $$a1='ready' and (a2 is null)$$, '3d18h');
insert into wed_trig (tgname, trname, cname, cpred, timeout)
values ('t2', 'tr_a3', 'c2', $$a1='ready' and (a3 is null)$$, '00:00:30');
insert into wed_trig (tgname, trname, cname, cpred, timeout)
values ('t1', 'tr_final', 'c1', $$a1='ready' and (a2 is not null) and (a3 is not null)$$, '00:00:10');
insert into wed_trig (cpred, cfinal) values ($$a1 <> 'ready'$$, true);
commit;

-- An instance is a row. Inserting it starts it.
insert into wed_flow default values returning wid \gset

-- Two conditions hold on that row, so two jobs wait for a worker, and may be done side by side.
select wid, trname, status, payload from job_pool order by tgid;

-- Anybody with SQL is a worker. Taking a job leases it to us and gives us an attempt number.
select job, attempt, lease_until from take('tr_a2', :wid) \gset

-- Doing it is one transaction that names the attempt. Whoever names an old one is refused.
begin;
set local mutirao.attempt = :attempt;
update wed_flow set a2 = 'hotel booked' where wid = :wid;
commit;

-- One job is left. The third condition does not hold yet.
select wid, trname, status, payload from job_pool order by tgid;

-- The other branch. Changes are merged, so neither undoes what the other wrote.
select job, attempt, lease_until from take('tr_a3', :wid) \gset

-- And done: now the third condition holds.
begin;
set local mutirao.attempt = :attempt;
update wed_flow set a3 = 'flight booked' where wid = :wid;
commit;

-- See: its job is there.
select wid, trname, status, payload from job_pool order by tgid;

-- The last job.
select job, attempt, lease_until from take('tr_final', :wid) \gset

-- It makes the final condition hold: the instance is completed.
begin;
set local mutirao.attempt = :attempt;
update wed_flow set a1 = 'done' where wid = :wid;
commit;

-- All of it is kept: who wrote (trw), what that set off (trf), and F for the final state.
select wid, trw, trf, status, state from wed_trace where wid = :wid order by tstmp;

-- What could never move is refused, whole, in one line.
insert into wed_flow (a1) values (null);
