-- When a job that waited became ready, so that its age is that of the queue. Running workers: notice nothing.

alter table mutirao.job add column ready_at timestamptz;
comment on column mutirao.job.ready_at is 'When it became ready, if it waited before, for a time or for another try; null: when it was created.';
