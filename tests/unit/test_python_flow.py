"""Flows as Python classes."""

from __future__ import annotations

import pickle
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, ClassVar, TypedDict

import pytest
from psycopg import AsyncConnection, Connection

import mutirao
from mutirao import Change, Flow, FlowBuilder, FlowError, Job, Json, Limit, RequestError, searchable, task, wait
from mutirao.model import Attribute, Definition, Task, Term, from_document, to_document

JOB = Job(id=1, instance_id=2, flow="travel", task="pay", attempt=3)


class Address(TypedDict):
    city: str


class Travel(Flow):
    """A trip.

    From wish to ticket.
    """

    stage: str = "requested"
    hotel: str | None = None
    flight: str | None = None
    final = "stage = 'booked'"

    limit: ClassVar[int] = 5

    @task(when="stage = 'requested' and hotel is null", timeout=timedelta(minutes=5), retries=2)
    async def book_hotel(self) -> Change:
        """Find a bed."""
        return {"hotel": f"Ritz ({self.stage})"}

    @task(depends=book_hotel.failed | "pay.aborted")
    def apologise(self, job: Job) -> Change:
        return {"stage": f"sorry {job.attempt}"}

    @task(depends=book_hotel, transactional=True)
    def pay(self, *, connection: Connection, job: Job) -> Change:
        return {"flight": f"{connection} {job.id}"}

    def helper(self) -> int:
        return self.limit


class Everything(Flow):
    a_text: Annotated[str, searchable]
    an_integer: int = 5
    a_number: Decimal = Decimal("1.50")
    a_boolean: bool = True
    a_date: date | None = None
    a_timestamp: Annotated[datetime | None, searchable] = None
    a_dict: dict[str, Any] = {}  # noqa: RUF012
    a_list: list[int] = [1]  # noqa: RUF012
    anything: Json = None
    an_address: Address | None = None


def test_a_class_makes_a_definition() -> None:
    assert Travel.definition == Definition(
        name="travel",
        description="A trip.\n\nFrom wish to ticket.",
        attributes=(
            Attribute("stage", "text", "requested", required=True),
            Attribute("hotel", "text"),
            Attribute("flight", "text"),
        ),
        tasks=(
            Task(
                name="book_hotel",
                when="stage = 'requested' and hotel is null",
                timeout=timedelta(minutes=5),
                retries=2,
                description="Find a bed.",
            ),
            Task(name="apologise", depends=Term("book_hotel", "failed") | Term("pay", "aborted")),
            Task(name="pay", depends=Term("book_hotel"), transactional=True),
        ),
        final="stage = 'booked'",
    )


def test_annotations_become_attributes() -> None:
    assert Everything.definition.attributes == (
        Attribute("a_text", "text", searchable=True, required=True),
        Attribute("an_integer", "integer", 5, required=True),
        Attribute("a_number", "number", Decimal("1.50"), required=True),
        Attribute("a_boolean", "boolean", default=True, required=True),
        Attribute("a_date", "date"),
        Attribute("a_timestamp", "timestamp", searchable=True),
        Attribute("a_dict", "json", {}, required=True),
        Attribute("a_list", "json", [1], required=True),
        Attribute("anything", "json"),
        Attribute("an_address", "json"),
    )


def test_settings_come_from_the_class() -> None:
    class HTTPPing2Flow(Flow):
        ends = "final"
        firing_limit = 5

    class Other(Flow):
        name = "another_name"

    assert (HTTPPing2Flow.definition.name, HTTPPing2Flow.definition.firing_limit) == ("http_ping2_flow", 5)
    assert HTTPPing2Flow.definition.ends == "final"
    assert (Other.definition.name, Other.definition.ends) == ("another_name", "quiet")


def test_an_attribute_may_be_called_name() -> None:
    class Person(Flow):
        name: str = "Ana"

    assert Person.definition.name == "person"
    assert Person.definition.attributes == (Attribute("name", "text", "Ana", required=True),)


def test_names_known_only_where_the_class_stands_can_be_used() -> None:
    from decimal import Decimal as Money  # noqa: PLC0415

    from mutirao import Job as Work  # noqa: PLC0415

    class Local(Flow):
        price: Money | None = None

        @task(when="true")
        def run(self, work: Work) -> Change:
            return {"price": work.attempt}

    assert Local.definition.attributes[0].type == "number"
    assert Local.handlers["run"].wants_job


async def test_a_task_is_called_as_a_method_in_users_tests() -> None:
    assert await Travel(stage="new").book_hotel() == {"hotel": "Ritz (new)"}
    assert Travel().apologise(JOB) == {"stage": "sorry 3"}
    assert Travel().helper() == 5


async def test_handlers_have_all_that_a_worker_needs() -> None:
    assert list(Travel.handlers) == ["book_hotel", "apologise", "pay"]
    book, apologise, pay = Travel.handlers.values()
    assert (book.flow, book.task, book.is_async, book.transactional) == ("travel", "book_hotel", True, False)
    assert (book.wants_job, apologise.wants_job, pay.wants_job) == (False, True, True)
    assert (book.signature.connection, pay.signature.connection, pay.transactional) == (None, "connection", True)

    assert await book.call(book.load(b'{"stage":"new"}')) == {"hotel": "Ritz (new)"}
    assert apologise.call(Travel(), JOB) == {"stage": "sorry 3"}
    assert pay.call(Travel(), JOB, "link") == {"flight": "link 1"}
    assert pay.encode_change({"flight": "X1"}) == b'{"flight":"X1"}'


def test_a_state_is_loaded_with_typed_values() -> None:
    state = Everything.load_state(
        '{"a_text":"x","a_number":2.50,"a_date":"2031-12-24","a_timestamp":"2031-12-24T18:00:00-03:00","unknown":1}'
    )
    assert (state.a_text, state.a_number, state.a_date) == ("x", Decimal("2.50"), date(2031, 12, 24))
    assert state.a_timestamp == datetime(2031, 12, 24, 21, tzinfo=UTC)


def test_what_a_state_lacks_has_its_default_or_none() -> None:
    state: Any = Everything.load_state(b'{"an_integer":null}')
    assert (state.a_text, state.an_integer, state.a_number) == (None, None, Decimal("1.50"))
    state.a_list.append(2)
    assert Everything.load_state(b"{}").a_list == [1]


def test_a_state_is_made_with_checked_keywords() -> None:
    assert Everything(a_text="x", a_number=0.1).a_number == Decimal("0.1")  # type: ignore[arg-type]
    with pytest.raises(RequestError, match='missing_attribute: attribute "a_text" of flow "everything" has no default'):
        Everything()  # type: ignore[call-arg]
    with pytest.raises(RequestError, match='unknown_attribute: flow "travel" has no attribute "hotle"; did you mean'):
        Travel(hotle="Ritz")  # type: ignore[call-arg]
    with pytest.raises(RequestError, match='wrong_type: attribute "stage" of flow "travel" is a text: got 5'):
        Travel(stage=5)  # type: ignore[arg-type]
    with pytest.raises(RequestError, match="wrong_type"):
        Travel(stage=None)  # type: ignore[arg-type]


def test_a_state_is_read_only_and_compares_by_value() -> None:
    state = Travel(hotel="Ritz")
    with pytest.raises(AttributeError, match=r'return the change, such as .*"hotel": …'):
        state.hotel = "Savoy"  # type: ignore[misc]
    with pytest.raises(AttributeError, match="read-only"):
        del state.hotel
    assert state == Travel.load_state(b'{"hotel":"Ritz"}') == pickle.loads(pickle.dumps(state))
    assert state != Travel()
    assert repr(state) == "Travel(stage='requested', hotel='Ritz', flight=None)"
    assert state.encode_state() == b'{"hotel":"Ritz"}'


class Audited(Flow, abstract=True):
    author: str
    note: str | None = None

    @task(when="note is null", priority=5)
    def write_note(self) -> Change:
        return {"note": self.author}


class Mixin:
    @task(when="true")
    def shout(self) -> Change:
        return {}


class Order(Mixin, Audited):
    final = "note = 'x'"
    author: str = "nobody"

    @task(depends=Audited.write_note.succeeded & Mixin.shout)
    async def ship(self, job: Job) -> Change:
        return {"note": f"{job.task} by {self.author}"}


def test_attributes_and_tasks_are_inherited() -> None:
    assert [each.name for each in Order.definition.tasks] == ["write_note", "shout", "ship"]
    assert Order.definition.attributes == (
        Attribute("author", "text", "nobody", required=True),
        Attribute("note", "text"),
    )
    assert Order.definition.tasks[2].depends == Term("write_note") & "shout"
    assert Order().write_note() == {"note": "nobody"}


def test_a_flow_of_a_flow_replaces_and_drops_tasks() -> None:
    class Special(Order):
        write_note = None  # type: ignore[assignment]

        @task(when="author is null")
        def shout(self) -> Change:
            return {"note": "special"}

        @task(depends=shout)
        async def ship(self, job: Job) -> Change:
            return {"note": job.task}

    assert Special.definition.name == "special"
    assert [(each.name, each.when) for each in Special.definition.tasks] == [
        ("shout", "author is null"),
        ("ship", None),
    ]
    assert Special.definition.final == Order.definition.final


def test_what_is_abstract_makes_no_state() -> None:
    with pytest.raises(TypeError, match="Audited is not a flow"):
        Audited(author="Ana")


def refused(body: str, **names: Any) -> FlowError:
    """What is said about a class of this body, which is read as a file of its own."""
    namespace = {"__name__": "refused", **vars(mutirao), "Any": Any, "Connection": Connection, **names}
    source = "from __future__ import annotations\nclass Bad(Flow):\n    " + body.replace("\n", "\n    ")
    with pytest.raises(FlowError) as caught:
        exec(compile(source, "bad.py", "exec"), namespace)
    return caught.value


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        ("n: float = 1.0", "wrong_type", "no attribute can be float; numbers are exact here: write Decimal"),
        ("n: bytes", "wrong_type", "no attribute can be bytes; it is str, int, Decimal"),
        ("n: str | int", "wrong_type", "no attribute can be str | int; it is str"),
        ("n: Unknown", "flow_invalid", "annotation cannot be read: name 'Unknown' is not defined"),
        ("n: int = 'x'", "wrong_type", 'flow "bad", attribute "n": its default is an integer: got "x"'),
        ("n: int = None", "wrong_type", "its default is None; annotate it with | None"),
        ("final: str = 'true'", "attribute_reserved", "final is a setting of the flow; write it without annotation"),
        ("definition: str", "attribute_reserved", 'attribute "definition": every flow has a definition of its own'),
        ("task_x: str", "attribute_reserved", "states of tasks"),
        ("finall = 'true'", "flow_invalid", '"finall" is neither an attribute nor a setting'),
        ("finall = 'true'", "flow_invalid", 'did you mean "final"?'),
        ("stage = 'new'", "flow_invalid", 'annotate it: "stage: str = …", or with ClassVar if it is none'),
        ("final = ''", "flow_invalid", "final is empty"),
        ("name = 'Bad Name'", "flow_invalid", 'flow "Bad Name" has no usable name'),
        ("@task(when=None)\ndef run(self): ...", "flow_invalid", "either when or depends: got neither"),
        ("@task(depends='walk')\ndef run(self): ...", "unknown_task", 'depends on the unknown task "walk"'),
        ("@task(depends=len)\ndef run(self): ...", "flow_invalid", "depends is a Dependency"),
        ("run: str\n@task(when='true')\ndef run(self): ...", "duplicate_name", 'attribute "run" is a task as well'),
        ("run = task(when='true')(lambda self: {})", "flow_invalid", 'has a function of another name, "<lambda>"'),
    ],
)
def test_a_wrong_class_is_refused_at_its_line(body: str, code: str, said: str) -> None:
    error = refused(body)
    assert error.code == code
    assert said in error.message
    assert error.message.endswith("(bad.py:2)")


@pytest.mark.parametrize(
    ("decorator", "said"),
    [
        ("@task(when='true', timout=None)", 'task "run" has the unknown option "timout"; did you mean "timeout"?'),
        ("@task(when='true', until='x')", 'the unknown option "until"; there is backoff, by_clock, compensation'),
        (
            "@task",
            'task "run" has neither when nor depends; write @task(when="…"), @task(depends=…) or @task(stands_by=True)',
        ),
        ("@task()", 'task "run" has neither when nor depends; write @task(when="…")'),
        ("@task(retries=1)", 'task "run" has neither when nor depends; write @task(when="…")'),
        ("@task('n > 0')", """@task('n > 0') has neither when nor depends; write @task(when="…")"""),
    ],
)
def test_a_wrong_decorator_is_refused_at_its_line(decorator: str, said: str) -> None:
    error = refused(f"n: int = 0\n\n{decorator}\ndef run(self): ...")
    assert error.code == "flow_invalid"
    assert said in error.message
    assert error.message.endswith("(bad.py:5)")


@pytest.mark.parametrize(
    ("definition", "said"),
    [
        ("def run(): ...", "its first parameter is the state"),
        ("def run(*state): ...", "its first parameter is the state"),
        ("def run(self, amount): ...", 'nothing for parameter "amount"; besides the state, it may ask for a Job'),
        ("def run(self, amount: int): ...", "nothing for parameter \"amount: 'int'\""),
        ("def run(self, **rest): ...", 'nothing for parameter "**rest"'),
        ("def run(self, job: Job, /): ...", "nothing for parameter \"job: 'Job'\""),
        ("def run(self, one: Job, two: Job): ...", '"one" and "two" ask for the same'),
        ("def run(self, link: Connection): ...", "only a task with transactional=True has a connection"),
        ("async def run(self, link: Connection): ...", "an async function takes a psycopg AsyncConnection"),
        ("def run(self): yield {}", "a task returns its change; this one yields"),
        ("async def run(self): yield {}", "a task returns its change; this one yields"),
        ("@classmethod\ndef run(self): ...", "a task is a function: got classmethod"),
    ],
)
def test_a_wrong_signature_is_refused_at_its_line(definition: str, said: str) -> None:
    error = refused(f"@task(when='true')\n{definition}")
    assert error.code == "signature_invalid"
    assert said in error.message
    if "classmethod" not in said:
        assert 'task "run" (bad.py:3)' in error.message


def test_a_name_imported_for_type_checkers_only_is_known_by_its_name() -> None:
    class Late(Flow):
        @task(when="true", transactional=True)
        async def run(self, link: psycopg.AsyncConnection[Any]) -> Change:  # type: ignore[name-defined] # noqa: F821
            return {"x": link}

        @task(when="true", transactional=True)
        async def walk(self, link: AsyncConnection[Any], verbose: bool = False) -> Change:
            return {"x": (link, verbose)}

    assert [each.signature.connection for each in Late.handlers.values()] == ["link", "link"]


def test_overriding_a_task_without_the_decorator_is_refused() -> None:
    with pytest.raises(FlowError, match='task "write_note" is overridden without @task'):

        class Careless(Audited):
            def write_note(self) -> Change:
                return {}


def test_a_new_default_of_an_inherited_attribute_is_annotated() -> None:
    with pytest.raises(FlowError, match='annotate it: "author: str = …"'):

        class Careless(Audited):
            author = "Ana"


# Waits and limits


def test_a_wait_is_a_task_that_nobody_does() -> None:
    class Order(Flow):
        remind_at: datetime | None = None
        cool_off = wait("remind_at", when="remind_at is not null")

        @task(depends=cool_off, wait="remind_at", limit=Limit(at_once=2, per_second=0.5))
        def remind(self) -> Change:
            return {}

    cool_off, remind = Order.definition.tasks
    assert (cool_off.name, cool_off.wait, cool_off.by_clock, cool_off.fires) == ("cool_off", "remind_at", True, "once")
    assert (remind.depends, remind.by_clock) == (Term("cool_off", "succeeded"), False)
    assert list(Order.handlers) == ["remind"]
    assert from_document(to_document(Order.definition)) == Order.definition


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"wait": "n"}, 'waits for "n", which is of type integer; a wait needs a timestamp or a date'),
        ({"wait": "due_a"}, 'wait names the unknown attribute "due_a"; did you mean "due_at"?'),
        ({"by_clock": True}, "by_clock needs wait"),
        ({"limit": Limit()}, "a limit without a number"),
        ({"limit": Limit(at_once=0)}, "limit at_once is a whole number from 1"),
        ({"limit": Limit(per_second=-1.0)}, "limit per_second is more than 0"),
        ({"limit": Limit(per="n")}, "a limit has per, an attribute, and each, a number, together"),
        ({"limit": Limit(per="m", each=1)}, 'limit names the unknown attribute "m"'),
        ({"limit": 5}, "limit is a Limit: got 5"),
    ],
)
def test_a_wait_or_limit_that_cannot_be_is_refused(options: dict[str, Any], says: str) -> None:
    build = (
        FlowBuilder("f").attribute("n", "integer").attribute("due_at", "timestamp").task("t", when="n = 0", **options)
    )
    with pytest.raises(FlowError) as refusal:
        build.build()
    assert says in str(refusal.value)


def test_a_wait_needs_something_that_starts_it() -> None:
    with pytest.raises(FlowError, match="has neither when nor depends"):
        wait("due_at")


def test_what_a_task_writes_may_be_declared_and_then_it_writes_nothing_else() -> None:
    class Order(Flow):
        price: int | None = None
        bill: str | None = None

        @task(when="price is null", outputs=["price"])
        def calculate(self) -> Change:
            return {"price": 12}

    [calculate] = Order.definition.tasks
    assert calculate.outputs == ("price",)
    handler = Order.handlers["calculate"]
    assert handler.encode_change({"price": 12}) == b'{"price":12}'
    with pytest.raises(RequestError, match=r'task "calculate" does not write "bill": its outputs are price'):
        handler.encode_change({"price": 12, "bill": "A-1"})
    with pytest.raises(FlowError, match='unknown attribute "prise"'):
        FlowBuilder("order").task("calculate", when="true", outputs=("prise",)).build()
