"""For tests of flows: a throw-away database in a blink, and a clock to move.

async with throwaway_database() as url:
    ...
    await advance(connection, timedelta(days=3))
"""

from mutirao.testing.clock import advance
from mutirao.testing.database import throwaway_database

__all__ = ["advance", "throwaway_database"]
