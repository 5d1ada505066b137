-- Which shape of the SQL face a flow's schema has, so that an upgrade changes only what is old. Running workers: notice nothing.

alter table mutirao.flow add column face int not null default 1;
comment on column mutirao.flow.face is 'The number of the shape that its views have: see mutirao.newest_face().';
