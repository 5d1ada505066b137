"""A flow of one task, and what is kept of the first attempt of it that fails."""

from datetime import timedelta
from typing import Any

from worker_stage import Stage

from mutirao import Flow

FIVE_MINUTES = timedelta(minutes=5)


class Once(Flow, abstract=True):
    """Has one task, which is done when `result` is set."""

    result: str | None = None
    final = "result is not null"


async def first_failure(stage: Stage, flow: type[Flow]) -> dict[str, Any]:
    """What is kept of the first attempt of the one task of this flow."""
    async with stage.working(flow):
        started = await stage.engine.start(flow())
        job = await stage.job_comes_to(started, "waiting")
    assert job.failures == 1
    assert job.error is not None
    assert (await stage.engine.trace(started))[-1].note == job.error
    return job.error
