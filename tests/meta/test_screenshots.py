"""Every page is shown in the docs, and every picture that the docs show is one that the screenshots' command takes."""

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

from mutirao.database.engine import Engine
from mutirao.server.app import make_app
from mutirao.server.openapi import page_routes

DOCS = Path(__file__).parents[2] / "docs"


def screenshots() -> ModuleType:
    """The script, as Python finds it beside its neighbours."""
    sys.path.insert(0, str(DOCS))
    try:
        spec = importlib.util.spec_from_file_location("screenshots", DOCS / "screenshots.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["screenshots"] = module
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(DOCS))


def test_every_page_has_a_picture() -> None:
    script = screenshots()
    shown = {shot.route for shot in script.SHOTS}
    routes = {route.path for route in page_routes(make_app(Engine("postgresql://nobody@nowhere/nothing")))}
    assert routes - shown - set(script.PARTS) == set(), "add a line to SHOTS in docs/screenshots.py"
    assert (shown | set(script.PARTS)) - routes == set(), "there is no such page"


def test_every_picture_is_there_and_they_are_small() -> None:
    script = screenshots()
    looks = [(shot, look) for shot in script.SHOTS for look in script.LOOKS if shot.is_narrow or not look.screen]
    wanted = {f"{shot.name}{look.ending}.png" for shot, look in looks}
    assert wanted == {each.name for each in script.PAGES.glob("*")}, "run `make screenshots`"
    assert sum(each.stat().st_size for each in script.PAGES.glob("*")) <= script.LARGEST


def test_the_guide_to_the_pages_shows_only_pictures_that_are_taken() -> None:
    text = (DOCS / "pages.md").read_text("utf-8")
    found = re.findall(r"images/pages/([\w-]+)\.png", text)
    assert found
    assert [each for each in found if not (DOCS / f"images/pages/{each}.png").exists()] == []
