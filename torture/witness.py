"""Notes, inside of a worker's process, which jobs it reports and what it is told: the worker's side of the ledger.

The worker is the one that users run; only its one call that ends jobs, `Line.turn`, is listened to. Transactional jobs
do not go that way: for them the effects speak.
"""

import os
from collections.abc import Sequence
from datetime import timedelta

from mutirao.database.protocol import Done, Line, Told
from torture.ledger import Ledger


def install_if_wanted() -> None:
    """Where the environment names a file, TORTURE_WITNESS. Called again for the same one, nothing happens."""
    path = os.environ.pop("TORTURE_WITNESS", None)
    if path is not None:
        install(path)


def install(path: str) -> None:
    ledger = Ledger(path)
    turn = Line.turn

    async def witnessed(
        line: Line, worker: str, done: Sequence[Done], tasks: Sequence[int], room: int, lease: timedelta
    ) -> list[Told]:
        ended = [each for each in done if each.change is not None]
        if not ended:
            return await turn(line, worker, done, tasks, room, lease)
        number = ledger.intends(
            "finish", jobs=[each.job for each in ended], attempts=[each.attempt for each in ended]
        )
        told = await turn(line, worker, done, tasks, room, lease)
        # Whatever is not spoken of went well.
        spoken = {each.attempt for each in told if each.kind != "job"}
        attempts = [each.attempt for each in ended if each.attempt not in spoken]
        ledger.done(number, len(attempts), attempts=attempts)
        return told

    Line.turn = witnessed  # type: ignore[method-assign]
