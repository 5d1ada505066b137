"""Signing in and out, and the passwords it takes.

Whoever fails is told nothing but that: whether the name, the password or the person's standing was wrong is neither in
the message nor in the time it takes.
"""

from dataclasses import dataclass
from ipaddress import IPv6Address, IPv6Network, ip_address

from mutirao.database.access import Challenge, NewSession
from mutirao.database.engine import Engine
from mutirao.database.person import is_text
from mutirao.errors import RequestError, TooManyAttempts
from mutirao.people.identity import Identity, authenticate_session
from mutirao.people.password import check_password, hash_password, is_outdated, is_password
from mutirao.people.secret import digest, new_password, new_session_secret

_LONGEST_NAME = 100


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A session that has begun; its `secret` is for the cookie, and kept nowhere else."""

    secret: str
    identity: Identity


@dataclass(frozen=True, slots=True)
class FirstAdministrator:
    """Who may come in first. The password is shown once."""

    name: str
    password: str


async def sign_in(
    engine: Engine, name: str, password: str, *, address: str | None = None, agent: str | None = None
) -> SignedIn:
    """Begin a session. `address` and `agent` say from where, for the person to recognise it."""
    challenge = await _challenge(engine, name, password, address)
    new_hash = await hash_password(password) if is_outdated(challenge.hash or "") else None
    secret = new_session_secret()
    where = (_origin(address), digest(secret), _clean(address), _clean(agent))
    await engine.access.finish_sign_in(NewSession(challenge, name, *where, new_hash))
    return SignedIn(secret, await authenticate_session(engine, secret))


async def sign_out(engine: Engine, identity: Identity) -> None:
    """End the session by which somebody came. Everywhere: `engine.access.end_sessions(actor, person)`."""
    if identity.session is not None:
        await engine.access.end_session(identity.person, identity.person, identity.session)


async def change_password(
    engine: Engine, identity: Identity, old: str, new: str, *, address: str | None = None
) -> None:
    """Let somebody who knows their password have another; all their other sessions end, tokens stay."""
    check_password(identity.name, new)
    challenge = await _challenge(engine, identity.name, old, address)
    if challenge.person != identity.person:  # renamed meanwhile, and somebody else has the name
        raise _wrong()
    await engine.access.set_password(identity.person, identity.person, await hash_password(new), identity.session)


async def set_password(engine: Engine, actor: int | None, person: int | str, password: str) -> None:
    """Give somebody else a password, as an administrator or the operator; all their sessions end, tokens stay."""
    found = await engine.persons.get(actor, person)
    if found.id == actor:  # or a session left open would be enough to take a person's place
        raise RequestError("forbidden", "one's own password is changed with the old one in hand")
    check_password(found.name, password)
    await engine.access.set_password(actor, found.id, await hash_password(password), None)


async def reset_password(engine: Engine, actor: int | None, person: int | str) -> str:
    """Give somebody a random password, to be told once."""
    password = new_password()
    await set_password(engine, actor, person, password)
    return password


async def first_administrator(engine: Engine, name: str = "administrator") -> FirstAdministrator | None:
    """Make an administrator if there is none who is enabled. Of any number who ask at once, one is answered."""
    if await engine.access.has_administrator():
        return None
    password = new_password()
    made = await engine.access.first_administrator(name, await hash_password(password))
    return None if made is None else FirstAdministrator((await engine.persons.get(None, made)).name, password)


async def _challenge(engine: Engine, name: str, password: str, address: str | None) -> Challenge:
    """The challenge that this password meets."""
    known_as = name if len(name) <= _LONGEST_NAME and is_text(name) else ""
    challenge = await engine.access.begin_sign_in(known_as, _origin(address))
    if challenge.wait_until is not None:
        again = challenge.wait_until.strftime("%Y-%m-%d %H:%M:%S %Z")
        raise TooManyAttempts(
            "too_many_attempts", f"too many have tried and failed: try again after {again}", challenge.wait_until
        )
    if not await is_password(password, challenge.hash):
        raise _wrong()
    return challenge


def _wrong() -> RequestError:
    return RequestError("wrong_credentials", "name and password do not go together")


def _origin(address: str | None) -> str | None:
    """What failures are counted for: of an IPv6 address its /64, for whoever has one address of it has all of them."""
    try:
        parsed = ip_address(address or "")
    except ValueError:
        return _clean(address)
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is None:
        return str(IPv6Network((int(parsed), 64), strict=False))
    return str(getattr(parsed, "ipv4_mapped", None) or parsed)


def _clean(text: str | None) -> str | None:
    """What others send us about themselves, as far as it is text."""
    return None if text is None else "".join(letter for letter in text if letter.isprintable())
