"""Parents and children: an order that a shipping does, a year that an order does, and the clock that starts them."""

from typing import Any

from driver import Engine

TICK = "select (done ->> 'children')::int from mutirao.turn_clock(duty => 'children')"


async def family(engine: Engine, **about: Any) -> None:
    """A flow `order` whose task `ship` is done by the flow `shipping`."""
    await engine.apply(
        "shipping",
        {"address": {"type": "text"}, "weight": 1, "parcel": {"type": "text"}},
        {"pack": "parcel is null"},
        final="parcel is not null",
    )
    task = {"when": "parcel is null", "child": "shipping", **about}
    await engine.apply(
        "order",
        {"address": "here", "parcel": {"type": "text"}, "other": 0},
        {"ship": task},
        final="parcel is not null",
    )


async def child_of(engine: Engine, parent: int) -> int:
    return int(await engine.one("select instance from mutirao.child where parent = %s", parent))


async def begin(engine: Engine, **state: Any) -> tuple[int, int]:
    """A parent, and the child that a clock has started for it."""
    parent = await engine.start("order", **state)
    assert await engine.one(TICK) == 1
    return parent, await child_of(engine, parent)


async def grandparents(engine: Engine, **more: Any) -> None:
    """A flow `year` above them, whose task `order` is done by the flow `order`."""
    await family(engine)
    await engine.apply(
        "year",
        {"parcel": {"type": "text"}},
        {"order": {"when": "parcel is null", "child": "order"}},
        final="parcel is not null",
        **more,
    )


async def three_levels(engine: Engine, top: int) -> list[int]:
    """An instance of `year`, its child and its grandchild."""
    await engine.one(TICK)
    await engine.one(TICK)
    middle = await child_of(engine, top)
    return [top, middle, await child_of(engine, middle)]
