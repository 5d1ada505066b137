"""All pages of a site where something of everything is going on: what holds for each of them is asked of each."""

from page_kit import Place

from mutirao.database.batch import Filter
from mutirao.language.pdl import read_pdl
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
SECRET = "Atlantis, which is nobody else's business"
_NOT_PAGES = ("/asset/{name}", "/badges")


async def lively(place: Place) -> dict[str, object]:
    """Something of clerk_1's in every list, and what the addresses of pages name."""
    engine = place.engine
    await engine.classes.put("crane", ["crane"])
    await engine.library.apply(read_pdl(FIRST_MADE))
    clerk = await place.site.client("clerk_1")
    instance, job = await place.site.item(city=SECRET)
    await clerk.comments.add(instance, SECRET)
    await clerk.instances.create("visit", {"customer": SECRET})
    made = await engine.make_batch("suspend", Filter(ids=(instance,)))
    return {
        "instance": instance,
        "job": job,
        "flow": "visit",
        "name": "clerk_1",
        "person": "clerk_1",
        "batch": made.id,
        "role": "clerk",
    }


def addresses(place: Place, known: dict[str, object]) -> list[str]:
    """Of every page. One with a name in its address that is not known here is a mistake of `lively`."""
    paths = [route.path for route in page_routes(place.site.server.app) if "GET" in (route.methods or ())]
    return [path.format(**known) for path in paths if path not in _NOT_PAGES]
