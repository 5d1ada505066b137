"""Read by mypy only: what users write passes, and each line with an ignore is an error (an unused one fails too)."""

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Any, assert_type

from psycopg import AsyncConnection

from mutirao import Change, Flow, FlowBuilder, Job, handles, searchable, task


class Travel(Flow):
    traveller: Annotated[str, searchable]
    stage: str = "requested"
    hotel: str | None = None
    price: Decimal | None = None
    final = "stage = 'booked'"

    @task(when="hotel is null", timeout=timedelta(minutes=5), retries=3)
    async def book_hotel(self) -> Change:
        assert_type(self.stage, str)
        assert_type(self.hotel, str | None)
        self.stage = "booked"  # type: ignore[misc]
        return {"hotel": self.traveller}

    @task(depends=book_hotel.failed & "pay" | book_hotel.aborted)
    def apologise(self, job: Job) -> dict[str, str]:
        return {"stage": job.task}

    @task(depends=book_hotel | apologise, transactional=True)
    async def pay(self, connection: AsyncConnection) -> Change:
        await connection.execute("select 1")
        return {}

    @task(when="true")  # type: ignore[type-var]
    def says_nothing(self) -> None: ...

    @task(when="true")  # type: ignore[type-var]
    async def may_say_nothing(self) -> Change | None: ...

    @task(when="true", retires=3)  # type: ignore[call-arg]
    def is_misspelt(self) -> Change:
        return {}

    @task  # type: ignore[arg-type]
    def says_nothing_of_its_start(self) -> Change:
        return {}

    @task(when="true", timeout=5)  # type: ignore[arg-type]
    def has_no_unit(self) -> Change:
        return {}

    @task(depends=book_hotel.finished)  # type: ignore[attr-defined]
    def waits_for_an_unknown_state(self) -> Change:
        return {}


async def use(job: Job) -> None:
    travel = Travel(traveller="Ana", stage="new")
    assert_type(travel.price, Decimal | None)
    assert_type(await travel.book_hotel(), Mapping[str, Any])
    assert_type(travel.apologise(job), dict[str, str])
    travel.apologise()  # type: ignore[call-arg]
    assert_type(Travel.load_state(b"{}"), Travel)
    Travel()  # type: ignore[call-arg]
    Travel(traveller=5)  # type: ignore[arg-type]
    Travel(traveller="Ana", hotle="Ritz")  # type: ignore[call-arg]


@handles("travel", "tr_a2")
async def handle(state: Mapping[str, Any], job: Job) -> Change:
    return {"hotel": state["stage"], "by": job.attempt}


@handles("travel", "tr_a3")  # type: ignore[type-var]
def handle_without_a_change(state: Mapping[str, Any]) -> None: ...


def book(state: Any) -> Change:
    return {"hotel": state.stage}


assert_type(FlowBuilder("travel").attribute("stage", "text").task("book", book, when="true").build(), type[Flow])
FlowBuilder("travel").attribute("stage", "string")  # type: ignore[arg-type]
