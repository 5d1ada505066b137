"""Which applications may run on which machine."""

import pytest

from mutirao.model import Application
from mutirao.worker.machine import Machine

PC = Machine("Iguacu.example.org", "Linux", "x86_64")


def application(**more: object) -> Application:
    return Application(name="editor", filename="/bin/editor", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("hosts", "may"),
    [((), True), (("iguacu.example.org",), True), (("a", "IGUACU.EXAMPLE.ORG"), True), (("iguacu",), False)],
)
def test_only_its_hosts_run_it(hosts: tuple[str, ...], may: bool) -> None:
    assert PC.may_run(application(hosts=hosts)) is may


@pytest.mark.parametrize(
    ("wanted", "may"), [(None, True), ("", True), ("linux", True), (" Linux ", True), ("any", True), ("Windows", False)]
)
def test_it_runs_on_its_system(wanted: str | None, may: bool) -> None:
    assert PC.may_run(application(os=wanted)) is may


@pytest.mark.parametrize(
    ("here", "wanted", "may"),
    [
        ("x86_64", None, True),
        ("x86_64", "486", True),
        ("x86_64", "Pentium MMX", True),
        ("x86_64", "Pentium III", True),
        ("x86_64", "AMD64", True),
        ("i686", "Pentium MMX", True),
        ("i686", "Pentium II", False),
        ("i386", "486", False),
        ("aarch64", "486", False),
        ("aarch64", "ARM64", True),
        ("sparc", "SPARC", True),
        ("x86_64", "Alpha", False),
        ("riscv64", "x86_64", False),
    ],
)
def test_a_processor_is_the_least_that_is_needed(here: str, wanted: str | None, may: bool) -> None:
    assert Machine("h", "Linux", here).may_run(application(cpu=wanted)) is may


def test_why_not_names_what_differs() -> None:
    assert "tuiuiu" in (PC.why_not(application(hosts=("tuiuiu",))) or "")
    assert "Alpha" in (PC.why_not(application(cpu="Alpha")) or "")
    assert "OS/2" in (PC.why_not(application(os="OS/2")) or "")
