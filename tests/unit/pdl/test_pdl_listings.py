"""The listings of the seeds, byte for byte: the software house, its task models and its application; and the ordering."""

from datetime import timedelta
from pathlib import Path

import pytest

from mutirao.language.pdl import Source, examine, parse
from mutirao.model import Application, Bundle, Ordering, Term

LISTINGS = Path(__file__).parent / "listings"


def read(*names: str) -> Bundle:
    reading = examine([Source(name, (LISTINGS / f"{name}.pdl").read_text("utf-8")) for name in names])
    assert not reading.findings.errors
    return reading.bundle


@pytest.mark.parametrize("listing", sorted(LISTINGS.glob("*.pdl")), ids=lambda path: path.stem)
def test_every_listing_parses_verbatim(listing: Path) -> None:
    assert parse(Source(listing.name, listing.read_text("utf-8"))).entries


def test_the_software_house_is_a_flow_of_three_tasks_for_people() -> None:
    [flow] = read("workflow", "task_redigir", "task_criar", "application").flows
    assert (flow.name, flow.ends, flow.final) == ("criacao_sistema_software", "quiet", None)
    assert [(each.name, each.type, each.filename) for each in flow.attributes] == [
        ("requisitos", "file", "/processos/arquivos/Requisitos.txt"),
        ("especificacao", "file", "/processos/arquivos/Especificacao.doc"),
        ("classes", "file", "/processos/arquivos/Classes.html"),
    ]
    first, second, third = flow.tasks
    assert (first.name, first.when, first.fires) == ("levantar_requisitos", "true", "once")
    assert (first.inputs, first.outputs) == ((), ("requisitos",))
    assert second.depends == Term("levantar_requisitos")
    assert first.offer is not None
    assert third.offer is not None
    assert (first.model, first.application, first.priority) == ("RedigirDocumento", "EditorTexto", 20)
    assert (first.offer.role, first.offer.kind, first.offer.deadline) == (
        "Analista_Sistemas",
        "semi_automatic",
        timedelta(hours=48),
    )
    assert (third.offer.kind, third.offer.users, third.application) == ("cooperative", ("Paulo", "Joao"), None)


def test_a_text_over_two_lines_is_one_line() -> None:
    [model] = read("task_redigir").models
    assert model.description == "Redigir um documento usando um editor de texto"


def test_the_editor_is_an_application_on_two_hosts() -> None:
    assert read("application").applications == (
        Application(
            name="EditorTexto",
            filename="/n/gnu/emacs/bin/emacs",
            size=3125,
            os="Linux",
            cpu="486",
            hosts=("iguacu.ic.unicamp.br", "tuiuui.ic.unicamp.br"),
        ),
    )


def test_the_ordering_has_two_pairs() -> None:
    assert read("ordering").orderings == (Ordering("p_1", "p_2", (("t_11", "t_21"), ("t_12", "t_22"))),)
