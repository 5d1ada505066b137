"""How fast it is, against a yardstick: `make bench`, or `python -m benchmarks --help`.

The yardstick is `pool`, a hand-written job pool that does five steps and nothing else. It and the engine run on the
same embedded server with the settings we ship, on a real disk, one after the other in turns (A B A B A B), so that
what disturbs the machine disturbs both; the medians are compared.

What is fair here:
- Workers are processes on both sides, started the same way, and the time to start them counts on both sides.
- All instances are submitted before the clock starts; it stops when the last of them has ended.
- Before each run a checkpoint is made, and the engine gets a fresh database, as the yardstick makes itself a fresh schema.
- The yardstick always does five steps with a small state, in batches of 50. We do what the case says, in steps/s.
- The engine is used through its public face: `Engine`, `Worker` with default options, flows of async functions.
- Two steps of one instance may not share a commit. This is checked in the trace after every run of a sequential flow.

Pages have goals of their own, as `worklist` has: `office` fills a database with a million instances and something of everything,
`page` asks a real server for every page there is, as an administrator and as somebody with a long worklist, and looks at the
slowest in twenty; it weighs the scripts, and has chromium draw a graph of 200 tasks.

`work` has the flows, `measure` the clocks, `noise` what else the machine did meanwhile, `plan` the cases and their
goals, `report` and `plot` what is shown. Results go to `benchmarks/results/`.
"""
