"""Passwords: argon2id, in threads of its own, since it takes its time and 64 MiB by intention."""

import asyncio
import unicodedata
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from mutirao.errors import RequestError
from mutirao.people.secret import new_password

SHORTEST = 10
LONGEST = 1000

R = TypeVar("R")

_HASHER = PasswordHasher()
# So many at once: whoever sends a thousand passwords makes us wait, but does not take all memory.
_THREADS = ThreadPoolExecutor(4, thread_name_prefix="mutirao-password")


def check_password(name: str, password: str) -> None:
    """Refuse a password that would be guessed."""
    if not SHORTEST <= len(password) <= LONGEST:
        raise RequestError("weak_password", f"a password has {SHORTEST} to {LONGEST} characters: got {len(password)}")
    if _same(password) == _same(name):
        raise RequestError("weak_password", "a password is not the name")


async def hash_password(password: str) -> str:
    return await _in_thread(lambda: _HASHER.hash(_plain(password)))


async def is_password(password: str, known: str | None) -> bool:
    """Whether it has this hash. Where there is none, that takes as long to find out."""

    def verify() -> bool:
        nobodys = _nobodys()
        return _verify(password, known or nobodys) and known is not None

    return await _in_thread(verify)


def is_outdated(known: str) -> bool:
    """Whether it was made with other parameters than today's."""
    return _HASHER.check_needs_rehash(known)


def _verify(password: str, known: str) -> bool:
    try:
        return len(password) <= LONGEST and _HASHER.verify(known, _plain(password))
    except (VerificationError, InvalidHashError):
        return False


@cache
def _nobodys() -> str:
    return _HASHER.hash(new_password())


def _plain(password: str) -> bytes:
    """The same for every keyboard: an accent may be typed as one character or as two."""
    return unicodedata.normalize("NFC", password).encode("utf-8", "surrogatepass")


def _same(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


async def _in_thread(act: Callable[[], R]) -> R:
    return await asyncio.get_running_loop().run_in_executor(_THREADS, act)
