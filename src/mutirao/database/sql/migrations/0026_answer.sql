-- Answers that are kept for a day, so that what was asked for twice is made once. Running workers: notice nothing.

-- Answers tell persons what others may not see.
create table mutirao_secret.answer (
  person  int not null references mutirao.person,
  key     text not null,
  route   text not null,
  body    bytea not null,
  status  smallint not null,
  headers jsonb not null,
  content bytea,
  at      timestamptz not null,
  primary key (person, key)
);
comment on table mutirao_secret.answer is 'What a creation over HTTP was answered, by the Idempotency-Key of whoever asked.';
comment on column mutirao_secret.answer.body is 'SHA-256 of what was asked.';
comment on column mutirao_secret.answer.content is 'Null: it held a secret that is shown once, or it was erased.';
create index answer_at on mutirao_secret.answer (at);
create index answer_location on mutirao_secret.answer ((headers ->> 'location'));
