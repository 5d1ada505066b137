-- What somebody looks for among instances, read once. Running workers go on.

create type mutirao.instance_filter as (
  flow           int,
  statuses       mutirao.instance_status[],
  in_charge      int,
  person         int,
  name           text,
  value          text,
  words          text,
  started_after  timestamptz,
  started_before timestamptz
);
comment on type mutirao.instance_filter is
  'The flow and the statuses; who is in charge, who has had to do with it; a searchable attribute and its value as it is kept; how a key begins, or a number; when it was started.';
