"""The door of the office: a clerk who can sign in, and somebody who tries in vain."""

import pytest
from argon2 import PasswordHasher
from office import one, refused

from mutirao.database.engine import Engine
from mutirao.people import password, set_password, sign_in

PASSWORD = "correct horse battery"
WRONG = "incorrect horse battery"


@pytest.fixture(autouse=True)
def quick_hashing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same argon2id with the smallest parameters: what is slow by intention would be slow in forty tests."""
    monkeypatch.setattr(password, "_HASHER", PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))


@pytest.fixture(name="clerk")
async def somebody(office: Engine) -> int:
    """A clerk who can sign in."""
    made = await office.persons.add(None, "clerk_1", roles=["clerk"])
    await set_password(office, None, "clerk_1", PASSWORD)
    return made.id


async def count(office: Engine, table: str) -> int:
    return int(await one(office, f"select count(*) from mutirao_secret.{table}"))


async def fail(office: Engine, name: str, *, times: int, address: str | None = None) -> None:
    for _ in range(times):
        async with refused("wrong_credentials"):
            await sign_in(office, name, WRONG, address=address)
