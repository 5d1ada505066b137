"""All pages of a site where something of everything is going on: what holds for each of them is asked of each."""

from fastapi.routing import APIRoute
from page_kit import Place

from mutirao.database.batch import Filter
from mutirao.language.pdl import read_pdl
from mutirao.model import Attribute, Definition, Offer, Task
from mutirao.server.openapi import page_routes

FIRST_MADE = """
WORKFLOW Visit {
  CREATOR clerk;
  STRING Customer { REQUIRED; SEARCHABLE; }
  NUMBER Hours;
  DATE Day;
  BOOLEAN Done;
  TASK Plan { ROLE clerk; DEPENDS; IN_CONTEXT Customer; OUT_CONTEXT Day; DEADLINE 2 DAYS; DESCRIPTION "Agree on a day"; }
  TASK Go { ROLE clerk; DEPENDS Plan -> SUCCEEDED; IN_CONTEXT Customer, Day; OUT_CONTEXT Hours, Done; TASK_CLASS crane; }
  TASK Ask { ROLE clerk; DEPENDS Plan -> FAILED; OUT_CONTEXT Day; }
}
"""
STUCK = Definition(
    name="stuck",
    creator="clerk",
    attributes=(Attribute("city", "text", searchable=True), Attribute("answer", "text"), Attribute("sent", "boolean")),
    tasks=(
        Task(name="decide", when="answer is null", offer=Offer(role="clerk"), outputs=("answer",)),
        Task(name="send", when="answer = 'yes'", outputs=("sent",)),
    ),
    final="sent",
)
"""Answered with anything but yes, nothing follows: an exception."""
SECRET = "Atlantis, which is the business of clerk_1"
_NOT_PAGES = ("/asset/{name}", "/badges", "/work/next", "/work/counts")
_QUERIES = {"/schedules/times": "?cron=0 9 * * 1-5", "/batches/new": "?kind=cancel&instance={instance}"}


async def lively(place: Place) -> dict[str, object]:
    """Something of clerk_1's in every list, and what the addresses of pages name."""
    engine = place.engine
    await engine.classes.put("crane", ["crane"])
    await engine.library.apply(read_pdl(FIRST_MADE))
    await engine.apply(STUCK)
    clerk = await place.site.client("clerk_1")
    _, job = await place.site.item(city=SECRET)
    await clerk.instances.create("visit", {"customer": SECRET})
    stuck = await clerk.instances.create("stuck", {"city": SECRET})
    [decide] = [each async for each in clerk.instances.jobs(stuck.id)]
    await clerk.worklist.finish(decide.id, await clerk.worklist.select(decide.id), {"answer": "no"})
    await clerk.comments.add(stuck.id, SECRET)
    made = await engine.make_batch("suspend", Filter(ids=(stuck.id,)))
    people = {"person": "clerk_1", "role": "clerk"}
    return {"instance": stuck.id, "task": "send", "job": job, "name": "visit", "batch": made.id, **people}


def whole_pages(place: Place) -> list[APIRoute]:
    return [route for route in page_routes(place.site.server.app) if route.path not in _NOT_PAGES]


def addresses(place: Place, known: dict[str, object]) -> list[str]:
    """Of every page. One with a name in its address that is not known here is a mistake of `lively`."""
    paths = [route.path for route in whole_pages(place)]
    return [(path + _QUERIES.get(path, "")).format(**known) for path in paths]
