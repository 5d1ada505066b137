"""Flows found by their address."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from mutirao import FlowError
from mutirao.language import load, load_flows

TRAVEL = """
    from mutirao import Change, Flow, FlowBuilder, handles, task

    class Shared(Flow, abstract=True):
        stage: str = "new"

    class Travel(Shared):
        @task(when="true")
        def go(self) -> Change:
            return {}

    Built = FlowBuilder("built").attribute("stage").build()

    @handles("wed", "tr_a2")
    def bound(state) -> Change:
        return {}

    number = 5
"""

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)

    def file(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(dedent(text))
        return path

    yield file
    for name in set(sys.modules) - before:
        del sys.modules[name]


def names(*addresses: str) -> list[str]:
    return [flow.definition.name for flow in load_flows(*addresses)]


def test_a_flow_is_found_in_a_module_of_the_current_folder(write: Write) -> None:
    write("flows_a.py", TRAVEL)
    assert names("flows_a:Travel") == ["travel"]


def test_a_flow_is_found_in_a_file_whose_neighbours_can_be_imported(write: Write) -> None:
    write("deep/neighbour_b.py", TRAVEL)
    path = write("deep/flows-b.py", "from neighbour_b import Travel\nclass Mine(Travel): pass")
    assert names(f"{path}:Mine") == ["mine"]
    assert load_flows("deep/flows-b.py:Mine") == load_flows(f"{path}:Mine")


def test_a_module_gives_all_flows_it_defines_but_not_what_it_imports_or_shares(write: Write) -> None:
    write("flows_c.py", TRAVEL)
    write("flows_d.py", "from flows_c import Travel, Built\nclass Mine(Travel): pass")
    assert names("flows_c") == ["travel", "built"]
    assert names("flows_d.py") == ["mine"]


def test_a_module_gives_a_flow_that_it_has_made_elsewhere(write: Write) -> None:
    write("maker_m.py", "from mutirao import FlowBuilder\ndef make(): return FlowBuilder('made').build()")
    write("flows_m.py", "from maker_m import make\nflow = make()")
    assert names("flows_m") == ["made"]


def test_a_package_gives_what_its_parts_define(write: Write) -> None:
    write("package_e/travel.py", TRAVEL)
    write("package_e/__init__.py", "from package_e.travel import Travel")
    assert names("package_e") == ["travel"]


def test_handlers_of_flows_and_of_bound_functions_are_loaded(write: Write) -> None:
    write("flows_f.py", TRAVEL)
    write("flows_g.py", "from flows_f import bound")
    loaded = load("flows_f", "flows_f:Travel")
    assert [flow.definition.name for flow in loaded.flows] == ["travel", "built"]
    assert [(each.flow, each.task) for each in loaded.handlers] == [("travel", "go"), ("wed", "tr_a2")]
    assert [each.task for each in load("flows_g:bound").handlers] == ["tr_a2"]


@pytest.mark.parametrize(
    ("address", "code", "said"),
    [
        ("nowhere:Flow", "module_not_found", 'there is no module "nowhere"; write module:Flow or path/file.py:Flow'),
        ("flows_h.sub", "module_not_found", 'there is no module "flows_h.sub"'),
        ("nowhere.py:Flow", "module_not_found", 'there is no file "nowhere.py"'),
        ("flows_h:Travle", "flow_not_found", '"flows_h" has no "Travle"; did you mean "Travel"?'),
        (
            "flows_h:number",
            "not_a_flow",
            '"flows_h:number" is not a flow but of type int; a flow is a class Name(Flow)',
        ),
        ("flows_h:Shared", "not_a_flow", '"flows_h:Shared" is not a flow but a class Shared'),
        ("flows_h:bound", "not_a_flow", "only functions bound by @handles, no flow"),
        ("empty_h", "not_a_flow", '"empty_h" defines no flow'),
        ("", "module_not_found", "write module:Flow"),
        ("broken_h", "module_broken", "ModuleNotFoundError: No module named 'missing_h'"),
        ("crash_h.py", "module_broken", "ZeroDivisionError: division by zero"),
        ("syntax_h", "module_broken", "SyntaxError"),
        ("wrong_h", "wrong_type", "wrong_h.py:2)"),
        ("wrong_h.py", "wrong_type", "wrong_h.py:2)"),
    ],
)
def test_a_wrong_address_gets_a_clear_answer(write: Write, address: str, code: str, said: str) -> None:
    write("flows_h.py", TRAVEL)
    write("empty_h.py", "")
    write("broken_h.py", "import missing_h")
    write("crash_h.py", "1 / 0")
    write("syntax_h.py", "class")
    write("wrong_h.py", "from mutirao import Flow\nclass Bad(Flow): n: float = 1.0")
    with pytest.raises(FlowError) as refused:
        load_flows(address)
    assert refused.value.code == code
    assert said in refused.value.message


def test_files_of_one_name_are_loaded_side_by_side(write: Write) -> None:
    write("north/near_n.py", "from same_n import Travel\nclass Near(Travel): pass")
    north = write("north/same_n.py", TRAVEL)
    south = write("south/same_n.py", "from far_n import Far\nfrom mutirao import Flow\nclass Mine(Flow): pass")
    write("south/far_n.py", "from mutirao import Flow\nclass Far(Flow): pass")
    json = write("json.py", "from mutirao import Flow\nclass Data(Flow): pass")
    addresses = [f"{north}:Travel", str(south), str(json), "north/near_n.py"]

    first = load_flows(*addresses)

    assert [flow.definition.name for flow in first] == ["travel", "mine", "data", "near"]
    assert issubclass(first[3], first[0]), "a neighbour has imported the file that was loaded by its path"
    assert load_flows(*addresses) == first


def test_two_flows_of_one_name_in_files_of_one_name_are_told_apart(write: Write) -> None:
    north, south = write("north/same_o.py", TRAVEL), write("south/same_o.py", TRAVEL)
    with pytest.raises(FlowError) as refused:
        load_flows(f"{north}:Travel", f"{south}:Travel")
    assert f"same_o:Travel and same_o in {south.parent}:Travel" in refused.value.message


def test_two_flows_of_one_name_are_refused(write: Write) -> None:
    write("flows_i.py", TRAVEL)
    write("flows_j.py", TRAVEL)
    said = 'duplicate_name: two flows have the name "travel": flows_i:Travel and flows_j:Travel'
    with pytest.raises(FlowError, match=said):
        load_flows("flows_i:Travel", "flows_j:Travel")


def test_two_functions_for_one_task_are_refused(write: Write) -> None:
    write("flows_k.py", TRAVEL)
    write("flows_l.py", TRAVEL)
    with pytest.raises(FlowError, match='task "tr_a2" of flow "wed" has two functions'):
        load("flows_k:bound", "flows_l:bound")


def test_a_module_that_exits_is_broken_and_its_line_is_named(tmp_path: Path) -> None:
    (tmp_path / "leaving.py").write_text("import sys\n\nsys.exit(0)\n")
    with pytest.raises(FlowError) as refused:
        load_flows(str(tmp_path / "leaving.py"))
    assert refused.value.code == "module_broken"
    assert "leaving.py:3" in refused.value.message
