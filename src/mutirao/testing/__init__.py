"""For tests of flows: a throw-away engine, a clock to move, a worker that fails and dies on demand, stories told.

    async with throwaway_engine() as engine, working(engine, [Travel], fails("book_hotel", times=2)) as worker:
        trip = await engine.start(Travel(stage="requested"))
        await worker.until(trip, "closed.completed")
        await expect(engine, trip).ran("book_hotel", "book_flight").state(hotel="Ritz")

`working` and `mortal` have the worker, `stand_in` and `binding` what it runs in place of a task's function, `person` has
people who do work items, `expectation` and `story` the assertions; the pytest plugin is the module `_mutirao_pytest`
beside this package. Below that are a throw-away database and its clock, for whoever speaks SQL: `throwaway_database`
and `advance`.
"""

from mutirao.testing.clock import advance
from mutirao.testing.database import throwaway_database
from mutirao.testing.engine import move_clock, throwaway_engine
from mutirao.testing.expectation import expect
from mutirao.testing.person import PersonInTest, make_roles, person
from mutirao.testing.stand_in import crashes, fails, fails_for_good, pauses, replaced, times_out
from mutirao.testing.story import StoryError
from mutirao.testing.working import WorkerInTest, run_until_quiet, working

__all__ = [
    "PersonInTest",
    "StoryError",
    "WorkerInTest",
    "advance",
    "crashes",
    "expect",
    "fails",
    "fails_for_good",
    "make_roles",
    "move_clock",
    "pauses",
    "person",
    "replaced",
    "run_until_quiet",
    "throwaway_database",
    "throwaway_engine",
    "times_out",
    "working",
]
