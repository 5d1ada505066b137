"""Makes the pictures of the docs from the real thing: `make pictures`."""

import asyncio
import io
from datetime import timedelta
from pathlib import Path

from rich.console import Console, RenderableType

from mutirao.cli.board import View, look
from mutirao.cli.example import Travellers
from mutirao.cli.story import story_table, tell
from mutirao.cli.tally import Tally
from mutirao.cli.up import EXAMPLE, prepare
from mutirao.database.engine import Engine
from mutirao.testing import throwaway_engine

IMAGES = Path(__file__).parent / "images"
WATCHED = timedelta(seconds=12)


async def watch_the_example(engine: Engine) -> None:
    """Let the example run for a while, then take a picture of its board and of one instance's story."""
    tally = Tally()
    worker, board = await prepare(engine, EXAMPLE, tally, "embedded server in ~/.local/share/mutirao, database mutirao")
    travellers = Travellers(engine)
    services = [asyncio.create_task(service.run()) for service in (worker, travellers)]
    await asyncio.sleep(WATCHED.total_seconds())
    view = await look(engine, View())
    rate = sum(tally.done.values()) / WATCHED.total_seconds()
    save("up", "mutirao up", board.full(view, rate, WATCHED))
    last = max(view.finished, key=lambda finished: len(finished.trace))
    events = tell(last.trace, await engine.definition(last.instance.flow))
    save("trace", f"mutirao instance trace {last.instance.id}", story_table(events, last.instance.started_at))
    travellers.stop()
    worker.stop()
    await asyncio.gather(*services)


def save(name: str, title: str, what: RenderableType) -> None:
    console = Console(record=True, width=110, file=io.StringIO())
    console.print(what)
    console.save_svg(str(IMAGES / f"{name}.svg"), title=title)


async def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    async with throwaway_engine() as engine:
        await watch_the_example(engine)


if __name__ == "__main__":
    asyncio.run(main())
