"""Secrets of sessions and tokens: 256 random bits, shown once, and kept only as their SHA-256.

They need no slow hash as passwords do, for nobody can guess them.
"""

import hashlib
import hmac
import secrets

TOKEN_PREFIX = "mut_"  # noqa: S105 by it, what looks for leaked secrets finds ours


def new_session_secret() -> str:
    return secrets.token_urlsafe(32)


def new_token_secret() -> str:
    return TOKEN_PREFIX + secrets.token_urlsafe(32)


def new_password() -> str:
    """For somebody who will choose one of their own: 120 bits, to be copied or typed."""
    return secrets.token_urlsafe(15)


def digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def csrf_of(secret: str) -> str:
    """What a page must send with every change, beside the cookie: only who knows the session's secret can make it."""
    return hmac.new(secret.encode("utf-8", "surrogatepass"), b"csrf", hashlib.sha256).hexdigest()
