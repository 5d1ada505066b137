"""The library: what flows share is put in place, listed with who uses it, and dropped when nobody does."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from flow_strategies import applications, orderings, patient, task_models
from hypothesis import given
from hypothesis import strategies as st
from psycopg import AsyncConnection
from psycopg.types.json import Jsonb

from mutirao import Engine, FlowError, RequestError
from mutirao.errors import MutiraoError
from mutirao.model import Application, Bundle, Definition, Ordering, Task, TaskModel
from mutirao.model.library_document import application, library_document, ordering, task_model
from mutirao.model.offer import Policy
from mutirao.model.value import ENCODER

EDITOR = Application(name="Editor", filename="/bin/ed", size=5, os="Linux", hosts=("a", "b"))
WRITING = TaskModel(name="Writing", kind="semi_automatic", role="administrator", application="Editor")
DRAFT = Task(name="draft", when="true", fires="once", application="Editor", model="Writing")
REPORT = Definition(name="report", tasks=(DRAFT,), ends="quiet")
OUTER = Definition(name="outer", tasks=(Task(name="run", when="true", fires="once", child="report"),), ends="quiet")


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[Engine]:
    async with Engine(database_url, name="tester") as opened:
        yield opened


@patient
@given(st.data())
def test_entries_survive_as_documents(data: st.DataObject) -> None:
    name = data.draw(st.from_regex(r"\A[a-z]{1,10}\Z"))
    model, program, order = data.draw(task_models(name)), data.draw(applications), data.draw(orderings)
    assert task_model(library_document(model)) == model
    assert application(library_document(program)) == program
    assert ordering(library_document(order)) == order
    assert ENCODER.encode(library_document(model))


async def test_what_is_put_is_there(engine: Engine) -> None:
    await engine.library.put(EDITOR, source="APPLICATION Editor { … }")
    model = replace(WRITING, policy=Policy("same_as", "draft"), users=("clerk_1",))
    await engine.library.put(model)
    assert await engine.library.applications() == {"Editor": EDITOR}
    assert await engine.library.models() == {"Writing": model}
    found = await engine.library.all()
    assert [(each.kind, each.name, each.used_by) for each in found] == [
        ("application", "Editor", ["task model Writing"]),
        ("task_model", "Writing", []),
    ]
    assert found[0].source == "APPLICATION Editor { … }"
    assert found[0].made_by.startswith("tester")


async def test_to_put_the_same_again_changes_nothing(engine: Engine) -> None:
    await engine.library.put(EDITOR)
    [before] = await engine.library.all()
    await engine.library.put(EDITOR)
    assert await engine.library.all() == [before]
    await engine.library.put(replace(EDITOR, size=6))
    assert (await engine.library.applications())["Editor"].size == 6


async def test_a_bundle_goes_in_as_a_whole(engine: Engine) -> None:
    order = Ordering("report", "outer", (("draft", "run"),))
    bundle = Bundle(applications=(EDITOR,), models=(WRITING,), flows=(OUTER, REPORT), orderings=(order,))
    assert await engine.library.apply(bundle, is_trial=True) == {"outer": 1, "report": 1}
    assert (await engine.flows(), await engine.library.all()) == ([], [])
    assert await engine.library.apply(bundle) == {"outer": 1, "report": 1}
    assert await engine.definition("report") == REPORT
    assert await engine.library.orderings() == [order]
    inventory = await engine.library.inventory()
    assert list(inventory.roles) == ["administrator"]
    assert inventory.tasks == {"report": ["draft"], "outer": ["run"]}
    assert inventory.children == {"report": [], "outer": ["report"]}


async def test_or_nothing_of_a_bundle_goes_in(engine: Engine) -> None:
    wrong = Definition(name="wrong", tasks=(Task(name="a", when="no_such_thing = 1"),))
    with pytest.raises(FlowError, match="unknown_attribute"):
        await engine.library.apply(Bundle(applications=(EDITOR,), models=(WRITING,), flows=(REPORT, wrong)))
    assert (await engine.flows(), await engine.library.all()) == ([], [])


async def test_what_a_newest_version_uses_is_not_dropped(engine: Engine) -> None:
    await engine.library.apply(Bundle(applications=(EDITOR,), models=(WRITING,), flows=(REPORT,)))
    with pytest.raises(RequestError, match='in_use: task model "Writing" is used by flow report'):
        await engine.library.drop_model("Writing")
    with pytest.raises(RequestError, match="is used by flow report, task model Writing"):
        await engine.library.drop_application("Editor")
    await engine.apply(replace(REPORT, tasks=(replace(DRAFT, application=None, model=None),)))
    await engine.library.drop_model("Writing")
    await engine.library.drop_application("Editor")
    assert await engine.library.all() == []


async def test_what_is_not_there_is_not_dropped(engine: Engine) -> None:
    with pytest.raises(FlowError, match="unknown_model"):
        await engine.library.drop_model("Writing")
    with pytest.raises(FlowError, match="unknown_application"):
        await engine.library.drop_application("Editor")
    with pytest.raises(RequestError, match="unknown_ordering"):
        await engine.library.drop_ordering("a", "b")


async def test_an_ordering_speaks_of_flows_and_tasks_that_are_there(engine: Engine) -> None:
    await engine.library.apply(Bundle(flows=(replace(REPORT, tasks=(replace(DRAFT, model=None, application=None),)),)))
    with pytest.raises(RequestError, match="unknown_flow"):
        await engine.library.put(Ordering("report", "nothing", (("draft", "draft"),)))
    with pytest.raises(FlowError, match=r'unknown_task: .* flow "report" has no task "print"'):
        await engine.library.put(Ordering("report", "report", (("draft", "print"),)))
    order = Ordering("report", "report", (("draft", "draft"),))
    await engine.library.put(order)
    await engine.library.drop_ordering("report", "report")
    assert await engine.library.orderings() == []


@pytest.mark.parametrize(
    ("call", "document"),
    [
        ("put_task_model", []),
        ("put_task_model", {}),
        ("put_task_model", {"name": ""}),
        ("put_task_model", {"name": "a" * 101}),
        ("put_task_model", {"name": "a", "kind": "heroic"}),
        ("put_task_model", {"name": "a", "kynd": "manual"}),
        ("put_task_model", {"name": "a", "priority": "high"}),
        ("put_task_model", {"name": "a", "kind": "manual", "application": "e"}),
        ("put_application", {"name": "a"}),
        ("put_application", {"name": "a", "filename": "b", "size": -1}),
        ("put_application", {"name": "a", "filename": "b", "hosts": "c"}),
        ("put_ordering", {"first": "a", "second": "b", "pairs": []}),
        ("put_ordering", {"first": "a", "second": "b", "pairs": [["c"]]}),
        ("put_ordering", {"first": "a", "second": "b", "pairs": [["c", 1]]}),
    ],
)
async def test_a_wrong_document_is_refused(engine: Engine, call: str, document: object) -> None:
    with pytest.raises(MutiraoError, match="flow_invalid"):
        async with engine.connection() as connection:
            await connection.execute(f"select mutirao.{call}(%s)", [Jsonb(document)])
    assert await engine.library.all() == []


async def test_dropping_a_name_with_a_quote(connection: AsyncConnection[object]) -> None:
    name = "O'Neil's \"editor\"; drop table mutirao.flow; --"
    await connection.execute("select mutirao.put_application(%s)", [Jsonb({"name": name, "filename": "x"})])
    await connection.execute("select mutirao.drop_application(%s)", [name])
    rows = await (await connection.execute("select * from mutirao.library()")).fetchall()
    assert rows == []
