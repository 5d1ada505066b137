-- The flow of five steps as somebody who speaks SQL would define it.

select mutirao.create_flow('live');
insert into live.wed_attr (aname, adv, atype) values ('inst', null, 'integer'), ('k', '0', 'integer'), ('v', '0', 'integer');
insert into live.wed_trig (trname, cpred) select format('step_%s', k), format('k = %s', k) from generate_series(0, 4) k;
insert into live.wed_trig (cpred, cfinal) values ('k = 5', true);
