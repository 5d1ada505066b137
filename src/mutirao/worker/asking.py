"""Jobs that ask other databases before their work begins: which they are, and the asking."""

from collections.abc import Collection

from mutirao.database.engine import Engine
from mutirao.database.query import asking_tasks, run_queries
from mutirao.worker.running import Running


class Asking:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._tasks: frozenset[int] = frozenset()

    async def learn(self, tasks: Collection[int]) -> None:
        """Find out which of these tasks have something to ask, as they are defined by now."""
        self._tasks = await asking_tasks(self._engine, tasks)

    def is_due(self, running: Running) -> bool:
        return running.told.task in self._tasks

    async def ask(self, running: Running) -> None:
        """Ask, and let the job work on the state that has the answers."""
        state = await run_queries(self._engine, running.told.job, running.told.attempt)
        if state is not None:
            running.told = running.told._replace(state=state)
