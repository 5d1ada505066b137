"""What a client does, side by side: each lane is one kind of operation, over and over."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from mutirao import Event, ItemFilter, MutiraoError, OperatorError, RequestError
from mutirao.database.item import Item
from mutirao.language import Flow
from torture.client import Desk, Lost, Refused
from torture.work import Booking, Branches, Digging, Letter, Lift, Nap, Parcel, Steps, Stubborn, Survey, Trip

_MOST_AT_ONCE = 150
_HELD = ItemFilter(status="running")
_ONE_IN = 4
# What there is no answer to but to look again: somebody else was quicker, or we were ourselves.
_PASSING = (Refused, Lost, RequestError, OperatorError)


async def start_many(desk: Desk) -> None:
    """Batches, all or none: half of them with keys."""
    while not desk.stopping.is_set():
        await desk.room.wait()
        size = desk.chance.randint(1, _MOST_AT_ONCE)
        kind = desk.chance.choices((_steps, _branches, _booking), (8, 3, 1))[0]
        states = [kind(desk) for _ in range(size if kind is not _booking else min(size, 20))]
        with suppress(Refused, Lost):
            await _start(desk, states, is_keyed=desk.chance.random() < 0.5)  # noqa: PLR2004 half


async def start_single(desk: Desk) -> None:
    """One at a time, of whatever needs more than workers."""
    kinds = (_letter, _lift, _survey, _nap, _parcel, _trip, _stubborn, _digging)
    while not desk.stopping.is_set():
        await desk.room.wait()
        state = desk.chance.choices(kinds, (4, 1, 1, 2, 6, 3, 1, 4))[0](desk)
        # These wait for what we do, which we can do only if we know that they are there.
        with suppress(Refused):
            [number] = await _start(desk, [state], is_keyed=True)
            if isinstance(state, Parcel):
                desk.parcels.append((state.ticket, number))
        await asyncio.sleep(desk.chance.uniform(0.02, 0.15))


async def start_over_http(desk: Desk) -> None:
    """By a request, half of them with an Idempotency-Key."""
    while not desk.stopping.is_set():
        await desk.room.wait()
        state = desk.chance.choices((_steps, _booking, _letter), (3, 2, 2))[0](desk)
        key = state.ticket if desk.chance.random() < 0.5 else None  # noqa: PLR2004 half
        plain = {"ticket": state.ticket}

        async def create(flow: str = type(state).definition.name, plain: Any = plain, key: str | None = key) -> int:
            return (await desk.client.instances.create(flow, plain, key=key)).id

        with suppress(Refused, Lost):
            await desk.ask("start", create, again=key is not None, tickets=[state.ticket])
        await asyncio.sleep(desk.chance.uniform(0.02, 0.1))


async def start_wrongly(desk: Desk) -> None:
    """Starts that must be refused, whole: nothing would fire in one of them."""
    while not desk.stopping.is_set():
        await asyncio.sleep(desk.chance.uniform(0.5, 1.5))
        states = [_steps(desk), Steps(ticket=desk.ticket(), k=99)]
        with suppress(Refused, Lost):
            await _start(desk, states, is_keyed=False)


async def pay(desk: Desk) -> None:
    """Events for parcels, some over HTTP; some parcels are cancelled instead. Until told to stop for good."""
    while True:
        await asyncio.sleep(desk.chance.uniform(0.05, 0.2))
        due, desk.parcels[:] = desk.parcels[:50], desk.parcels[50:]
        if not due:
            continue
        cancelled = due[::_ONE_IN]
        paid = [each for each in due if each not in cancelled]
        for _, number in cancelled:
            with suppress(Refused):
                await desk.ask(
                    "cancel", lambda number=number: desk.engine.cancel(number), again=True, instance=number
                )
        if paid:
            await _pay(desk, [ticket for ticket, _ in paid])


async def _pay(desk: Desk, tickets: Sequence[str]) -> None:
    events = [Event(each, {"paid_at": datetime.now(UTC)}, id=f"pays-{each}") for each in tickets]
    over_http = desk.chance.random() < 0.3  # noqa: PLR2004 now and then

    async def send() -> None:
        answers = await (desk.client.flows.send("parcel", events) if over_http else desk.engine.send_many(Parcel, events))
        for each in answers:
            if each.outcome == "refused":
                raise RequestError(each.code or "refused", each.message or "")

    with suppress(Refused):
        await desk.ask("event", send, again=True, count=len(events), events=[each.id for each in events])


async def do_items(desk: Desk) -> None:
    """Work items, in turns through Python and over HTTP, as one person: what one holds first, then the next."""
    while True:
        by_engine = desk.chance.random() < 0.5  # noqa: PLR2004 half
        try:
            did = await (_item_by_engine(desk) if by_engine else _item_over_http(desk))
        except _PASSING:
            did = False
        await asyncio.sleep(0 if did else 0.1)


async def _item_by_engine(desk: Desk) -> bool:
    lists, actor = desk.engine.worklists, desk.target.person
    try:
        held = (await lists.page(actor, _HELD, limit=10)).items
    except MutiraoError:
        await desk.engine.revive()
        raise
    if held:
        return await _finish(desk, held[0], lambda item: lists.finish(actor, item.job, _attempt(item), _answer(item)))
    return await desk.ask("take", lambda: lists.next(actor), again=False) is not None


async def _item_over_http(desk: Desk) -> bool:
    worklist = desk.client.worklist
    held = [item async for item in worklist.all(_HELD)]
    if held:
        return await _finish(desk, held[0], lambda item: worklist.finish(item.job, _attempt(item), _answer(item)))
    return await desk.ask("take", worklist.next, again=False) is not None


async def _finish(desk: Desk, item: Item, finish: Callable[[Item], Awaitable[Any]]) -> bool:
    attempts = [_attempt(item)]
    await desk.ask("finish", lambda: finish(item), again=False, jobs=[item.job], attempts=attempts)
    return True


def _attempt(item: Item) -> int:
    assert item.attempt is not None  # noqa: S101 it is ours
    return item.attempt


def _answer(item: Item) -> dict[str, Any]:
    return {"answer": f"to {item.instance}"}


async def mend(desk: Desk) -> None:
    """Repairs, and retries after a correction, of what fails for good until somebody comes."""
    while True:
        await asyncio.sleep(desk.chance.uniform(0.3, 0.8))
        try:
            for found in await desk.engine.instances("stubborn", status="open.exception", limit=20):
                await _mend(desk, found.id)
        except MutiraoError:
            await desk.engine.revive()


async def _mend(desk: Desk, number: int) -> None:
    engine, mended = desk.engine, {"mended": True}
    with suppress(Refused, Lost):
        if number % 2:
            await desk.ask("repair", lambda: engine.repair(number, mended), again=False, instance=number)
        else:
            await desk.ask("set", lambda: engine.set(number, mended), again=False, instance=number)
            for job in await engine.jobs(number, status="failed"):
                await desk.ask("retry", lambda job=job: engine.retry(job.id), again=False, instance=number)


async def _start(desk: Desk, states: Sequence[Flow], *, is_keyed: bool) -> list[int]:
    tickets = [str(getattr(each, "ticket")) for each in states]  # noqa: B009 every flow of ours has one
    keys = tickets if is_keyed else None
    answer: list[int] = await desk.ask(
        "start",
        lambda: desk.engine.start_many(states, keys=keys),
        again=is_keyed,
        count=len(states),
        tickets=tickets,
    )
    return answer


def _steps(desk: Desk) -> Steps:
    return Steps(ticket=desk.ticket())


def _branches(desk: Desk) -> Branches:
    return Branches(ticket=desk.ticket(), n=desk.chance.randint(1, 1000))


def _booking(desk: Desk) -> Booking:
    return Booking(ticket=desk.ticket())


def _letter(desk: Desk) -> Letter:
    return Letter(ticket=desk.ticket())


def _lift(desk: Desk) -> Lift:
    return Lift(ticket=desk.ticket())


def _survey(desk: Desk) -> Survey:
    return Survey(ticket=desk.ticket())


def _nap(desk: Desk) -> Nap:
    return Nap(ticket=desk.ticket(), until=datetime.now(UTC) + timedelta(seconds=desk.chance.uniform(0.2, 3)))


def _parcel(desk: Desk) -> Parcel:
    return Parcel(ticket=desk.ticket())


def _trip(desk: Desk) -> Trip:
    return Trip(ticket=desk.ticket(), is_refused=desk.chance.random() < 1 / 3)


def _stubborn(desk: Desk) -> Stubborn:
    return Stubborn(ticket=desk.ticket())


def _digging(desk: Desk) -> Digging:
    return Digging(ticket=desk.ticket(), seconds=Decimal(desk.chance.randint(2, 15)) / 10)


LANES = (start_many, start_single, start_over_http, start_wrongly, pay, do_items, mend)
