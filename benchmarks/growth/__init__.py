"""How speed changes as things grow: `make bench-growth`, or `python -m benchmarks.growth --help`.

Three things grow, each by itself: the instances behind, beside and ahead of those that are worked on; the conditions
that each step asks; the workers that share two cores. Every size of a curve is measured once before any is measured
again, so that what disturbs the machine for a while disturbs all of them; a point is the median, its bar the range.

`curve` is a curve and how it is measured, `instance`, `condition` and `worker` have the curves, `plot` and `report`
what is shown, `page` what of it stands in docs/growth.md. Results go to `benchmarks/results/`.
"""
