"""People at the door: who they are, how they prove it, and for how long.

What persons and roles are is `engine.persons` and `engine.roles`; here is what needs more than SQL: hashing passwords
(`password`), making secrets (`secret`), signing in (`sign_in`), and who comes with a session or a token (`identity`).
"""

from mutirao.people.identity import Identity, NewToken, add_token, authenticate_session, authenticate_token
from mutirao.people.sign_in import (
    FirstAdministrator,
    SignedIn,
    change_password,
    first_administrator,
    reset_password,
    set_password,
    sign_in,
    sign_out,
)

__all__ = [
    "FirstAdministrator",
    "Identity",
    "NewToken",
    "SignedIn",
    "add_token",
    "authenticate_session",
    "authenticate_token",
    "change_password",
    "first_administrator",
    "reset_password",
    "set_password",
    "sign_in",
    "sign_out",
]
