"""How one comes in: who signs in, by which password, and the browser that is opened at the first page."""

import os
import sys
import webbrowser
from dataclasses import dataclass
from shlex import quote

from mutirao.cli.invocation import Invocation
from mutirao.database.engine import Engine
from mutirao.database.person import PersonFilter
from mutirao.people import first_administrator

ADMINISTRATOR = "administrator"

# They would take over the terminal in which we are running.
_IN_THE_TERMINAL = ("www-browser", "links", "elinks", "lynx", "w3m")
_SCREENS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
_FEW = 20


@dataclass(frozen=True, slots=True)
class Door:
    """An administrator who may sign in. The password is known if they were made just now, and then never again."""

    name: str
    password: str | None = None

    def line(self, call: Invocation) -> str:
        if self.password is not None:
            return f'There is no administrator yet, so "{self.name}" was made. Password, not shown after this run: {self.password}'
        return f'Sign in as "{self.name}". Forgot the password? {self._reset(call)}'

    def short(self, call: Invocation) -> str:
        """For where there is little room, and the reader looks again and again."""
        known = f"password {self.password}" if self.password else f"a new password: {self._reset(call)}"
        return f"{self.name} · {known}"

    def _reset(self, call: Invocation) -> str:
        return call(f"person reset-password {quote(self.name)}")


async def open_door(engine: Engine) -> Door:
    """The first administrator is made when there is none."""
    made = await first_administrator(engine)
    if made is not None:
        return Door(made.name, made.password)
    return Door(next(iter(await administrators(engine)), ADMINISTRATOR))


async def administrators(engine: Engine) -> list[str]:
    """Those who may come in, by name; of very many, the first."""
    chosen = PersonFilter(role=ADMINISTRATOR, is_disabled=False)
    return [each.name for each in await engine.persons.page(None, chosen, limit=_FEW)]


def show_in_browser(url: str) -> bool:
    """Open a browser where somebody sits before a screen of this machine; answers whether one was opened."""
    if not _is_somebody_there():
        return False
    try:
        browser = webbrowser.get()
        is_beside_us = getattr(browser, "name", "") not in _IN_THE_TERMINAL
        return is_beside_us and browser.open(url)
    except (webbrowser.Error, OSError):
        return False


def _is_somebody_there() -> bool:
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or "CI" in os.environ or "SSH_CONNECTION" in os.environ:
        return False
    return sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in _SCREENS)
