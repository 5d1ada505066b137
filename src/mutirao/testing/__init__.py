"""For tests of flows: a throw-away engine in a blink, a clock to move, and a worker that runs until all is quiet.

async with throwaway_engine() as engine:
    await engine.apply(Travel)
    trip = await engine.start(Travel(stage="requested"))
    await run_until_quiet(engine, [Travel])
    await move_clock(engine, timedelta(days=3))

Below that are a throw-away database and its clock, for whoever speaks SQL: `throwaway_database` and `advance`.
"""

from mutirao.testing.clock import advance
from mutirao.testing.database import throwaway_database
from mutirao.testing.engine import move_clock, run_until_quiet, throwaway_engine

__all__ = ["advance", "move_clock", "run_until_quiet", "throwaway_database", "throwaway_engine"]
