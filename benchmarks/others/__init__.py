"""The same work on Mutirão and on engines that one would pick instead: `make bench-others`, or `python -m benchmarks.others --help`.

An instance is five durable steps, one after the other, that do nothing. Of each engine are measured, on an empty engine and
with a past of finished instances behind it: steps a second with one worker and with two, all instances submitted before the clock
starts; and milliseconds an instance, one after another on the idle engine.

What is fair here:
- All on PostgreSQL use one server, the embedded one with the settings we ship, fsync on, through its socket; each run in a fresh
  copy of a database. Restate, which has a store of its own, keeps it on the same disk.
- Runs go in turns (A B C, A B C, …), so what disturbs the machine disturbs all; medians are compared.
- Workers are processes. They have imported what they need before the clock starts; connecting is in the time.
- Each has the settings that its own documentation recommends, and takes as much at a time as it can. Where one only looks
  for work now and then, it looks more often than by default, which favours it here. The programs in `program` say which.
- Of a queue without flows, five steps are five jobs, each putting in the next one, as its users would do it.
- After every run it is checked that all instances ended, and did five steps each.
- A past on PostgreSQL is made from some hundreds of instances that really ran, by copying their rows under fresh ids; ours by
  `benchmarks.history`. Restate's instances all really run, as many as it does in a few minutes.

Each contender is a module of one shape: `contender` says which. What runs inside the others' environments is in `program`,
what is installed there in `requirement`, how their past is made in `past`. The environments are in `.venv/others`.
"""
