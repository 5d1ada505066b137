-- What the functions hand to one another, and to workers, in one step. Running workers: none can exist yet.

-- One instance on its way through a write: where it stood, what is written, and what would then be pending.
create type mutirao.work as (
  n int, kind text, instance bigint, flow int, version int,
  job bigint, task int, attempt bigint, cause bigint,
  change jsonb, state jsonb,
  pending int[], failed int[], fired int[], reached int[], latest jsonb, held int[],
  parked int, reasons jsonb, hold text, firings int, priority int, started_at timestamptz,
  writer text, note jsonb
);
comment on type mutirao.work is 'held: the tasks that may not fire now, because a job of theirs keeps its place or they fire once and have.';

create type mutirao.looked as (final boolean, fires int[], problem jsonb);

create type mutirao.settled as (kind text, job bigint, attempt bigint, instance bigint, task int, failures int, timeout float8, state jsonb, note jsonb);
comment on type mutirao.settled is
  'What a worker is told. job: this one is leased to you. parked: done, but its change must wait. refused: the change does not fit, and nothing happened. '
  'lost: not your attempt any more. busy: somebody holds the instance, try again. What is not mentioned went well.';

create type mutirao.appetite as (worker text, tasks int[], room int, lease interval, floor int);
comment on type mutirao.appetite is
  'A worker that gives back ten jobs may have up to ten of those that they fire leased to it as they are made, without a claim. '
  'Never more than it gave, so that others get their share, and none below the floor: the highest priority that is waiting for it.';

create type mutirao.verdict as (
  outcome text, kind text, instance bigint, flow int, version int, job bigint, task int, attempt bigint, change jsonb, problem jsonb,
  writer text, trace bigint
);
comment on type mutirao.verdict is 'What settling found about a row that did not simply go well.';

create type mutirao.entry as (k int, n int, job bigint, attempt bigint, instance bigint, task int, cause bigint, failures int, change jsonb, error jsonb, writer text);
comment on type mutirao.entry is 'One job that is being finished; k: it is the k-th of its instance in this call, and goes in round k.';

create type mutirao.taken as (job bigint, attempt bigint, wid bigint, payload jsonb, lease_until timestamptz);
