"""The example that `mutirao up` runs, as a row of steps with the number of instances at each: cli/firm.py has the flow."""

from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from mutirao.database.record import Instance
from mutirao.server.page.catalogue import marked

EXAMPLE = "repair_example"

_STEPS = {
    "plan_visit": (marked("The office plans"), "person"),
    "fetch_parts": (marked("The van fetches parts"), "program"),
    "visit": (marked("A technician visits"), "person"),
    "approve": (marked("A manager decides"), "person"),
    "write_bill": (marked("A program bills"), "program"),
}
_DEAR = 200


def steps_of(instances: Iterable[Instance]) -> list[tuple[str, str, int]]:
    """Text, icon, and how many are there. Their states tell, so that no job need be asked for."""
    counts = Counter(_step(each.state) for each in instances)
    return [(text, icon, counts[name]) for name, (text, icon) in _STEPS.items()]


def lacks_account(state: Mapping[str, Any]) -> bool:
    """Whether that is why its bill cannot be written."""
    return _step(state) == "write_bill" and state.get("account") is None


def _step(state: Mapping[str, Any]) -> str:
    if state.get("visit_on") is None:
        return "plan_visit"
    if state.get("parts") is None:
        return "fetch_parts"
    if state.get("hours") is None:
        return "visit"
    price = state.get("price")
    # A flow of this name may be somebody else's, with another price.
    is_dear = isinstance(price, int | float | Decimal) and price > _DEAR
    return "approve" if is_dear and state.get("approved") is None else "write_bill"
