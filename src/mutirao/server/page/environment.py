"""Templates in a language: each language has its own, in which whatever is said without a variable is written already."""

from functools import cache
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined, nodes
from jinja2.visitor import NodeTransformer

from mutirao.server.page.asset import address
from mutirao.server.page.catalogue import text_in, translations
from mutirao.server.page.problem import sentence
from mutirao.server.page.reason import error_text

_TEMPLATES = Path(__file__).parent / "template"


@cache
def environment(language: str) -> Environment:
    made = _Translated(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.i18n"],
    )
    made.says = _Says(language)
    made.install_gettext_translations(translations(language), newstyle=True)  # type: ignore[attr-defined]
    made.globals["asset"] = address
    made.filters["error_text"] = error_text
    made.filters["sentence"] = sentence
    made.filters["urlpart"] = lambda text: quote(str(text), safe="")
    return made


class _Translated(Environment):
    """To look up a text takes ten microseconds, and a table says the same in each of its rows: so it is done once, where a template is read."""

    says: "_Says"

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        read: nodes.Template = self.says.visit(super()._parse(source, name, filename))
        return read


class _Says(NodeTransformer):
    def __init__(self, language: str) -> None:
        self._text = text_in(language)

    def visit_Call(self, node: nodes.Call) -> nodes.Node:  # noqa: N802 named by the library
        self.generic_visit(node)
        if node.node == nodes.Name("_", "load") and len(node.args) == 1 and not node.kwargs:
            [said] = node.args
            if isinstance(said, nodes.Const):
                return nodes.TemplateData(self._text(said.value) % {}, lineno=node.lineno, environment=node.environment)
        return node
