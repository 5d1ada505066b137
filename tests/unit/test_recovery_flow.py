"""What is wrong with failure actions, undoing and classes in a Python flow: told with the flow, the task and its line."""

from datetime import timedelta
from typing import Any

import pytest

from mutirao import Change, Flow, FlowBuilder, FlowError, task


def built(**tasks: dict[str, Any]) -> FlowBuilder:
    """Tasks of these options, each of which may name any other."""
    flow = FlowBuilder("trip")
    flow.attribute("n", "integer", default=0)
    for name, options in tasks.items():
        flow.task(name, **options)
    return flow


STARTS: dict[str, Any] = {"when": "n = 0", "fires": "once"}
STANDS: dict[str, Any] = {"stands_by": True}


@pytest.mark.parametrize(
    ("tasks", "code", "says"),
    [
        ({"a": STARTS | {"compensation": "b"}, "b": STANDS | {"compensation": "c"}, "c": STANDS}, "flow_invalid", 'task "b": it undoes another task'),
        ({"a": STARTS | {"contingency": "b"}, "b": STANDS | {"contingency": "c"}, "c": STANDS | {"contingency": "b"}}, "flow_invalid", "leads back to it: b → c → b"),
        ({"a": STARTS | {"contingency": "a"}}, "flow_invalid", "leads back to it: a → a"),
        ({"a": STARTS | {"contingency": "c"}, "b": STARTS | {"contingency": "c"}, "c": STANDS}, "flow_invalid", 'task "b": its contingency "c" is that of "a"; each has its own'),
        ({"a": STARTS | {"contingency": "bee"}, "be": STARTS}, "unknown_task", 'task "a": its contingency is the unknown task "bee"; did you mean "be"?'),
        ({"a": STARTS | {"compensation": "bee"}, "be": STARTS}, "unknown_task", 'its compensation is the unknown task "bee"'),
        ({"a": STARTS | {"compensation": "b", "contingency": "b"}, "b": STANDS}, "flow_invalid", '"b" is both its contingency and its compensation'),
        ({"a": STARTS | {"time_to_wait": timedelta(hours=1)}}, "flow_invalid", "time_to_wait goes with depends"),
        ({"a": STARTS, "b": {"depends": "a", "time_to_wait": timedelta(hours=-1)}}, "flow_invalid", "time_to_wait is from zero to 36500 days"),
        ({"a": STARTS | {"force": True, "contingency": "b"}, "b": STANDS}, "flow_invalid", "tried until it succeeds"),
        ({"a": STARTS | {"on_failure": "explode"}}, "flow_invalid", 'unknown on_failure "explode"; there is block, release'),
        ({"a": STARTS | {"critical": True, "compensation": "b"}, "b": STANDS}, "flow_invalid", "it is critical, which cannot be undone"),
    ],
)  # fmt: skip
def test_it_is_refused_with_the_task(tasks: dict[str, dict[str, Any]], code: str, says: str) -> None:
    with pytest.raises(FlowError) as refused:
        built(**tasks).build()
    assert refused.value.code == code
    assert 'flow "trip"' in refused.value.message
    assert says in refused.value.message


def test_a_class_is_refused_at_its_line() -> None:
    with pytest.raises(
        FlowError, match=r'task "pay": its contingency leads back to it: pay → pay .*test_recovery_flow\.py:\d+\)'
    ):

        class Wrong(Flow):
            n: int = 0

            @task(when="n = 0", contingency="pay")
            def pay(self) -> Change:
                return {}
