"""The cookies of a person's browser, and the proof that a request comes from our own page.

The session's cookie is sent by the browser with whatever any page makes it ask. So a request that changes something must
also carry `X-CSRF-Token`, which only a page of ours can know: it is made from the session's own secret, so none of another session
fits, and is in a cookie that pages may read. The origin is looked at as well.
"""

import hmac

from starlette.requests import Request
from starlette.responses import Response

from mutirao.errors import RequestError
from mutirao.people import Identity
from mutirao.server.options import ServerOptions

CSRF_HEADER = "X-CSRF-Token"
_SESSION, _CSRF = "mutirao_session", "mutirao_csrf"
_SAFE = ("GET", "HEAD", "OPTIONS")


def _name(request: Request, name: str) -> str:
    """By its name alone a browser refuses the cookie from anybody but this very host, by https."""
    return f"__Host-{name}" if request.url.scheme == "https" else name


def session_of(request: Request) -> str | None:
    """The secret of the session."""
    return request.cookies.get(_name(request, _SESSION))


def set_cookies(request: Request, response: Response, secret: str, csrf: str) -> None:
    """They last as long as the browser is open; when the session ends is for the database to say."""
    secure = request.url.scheme == "https"
    for name, value, hidden in ((_SESSION, secret, True), (_CSRF, csrf, False)):
        response.set_cookie(_name(request, name), value, secure=secure, httponly=hidden, samesite="lax", path="/")


def clear_cookies(request: Request, response: Response) -> None:
    secure = request.url.scheme == "https"
    for name, hidden in ((_SESSION, True), (_CSRF, False)):
        response.delete_cookie(_name(request, name), secure=secure, httponly=hidden, samesite="lax", path="/")


def check_csrf(request: Request, identity: Identity) -> None:
    """Refuse a request that changes something and may come from somebody else's page."""
    if request.method in _SAFE:
        return
    check_origin(request)
    given = request.headers.get(CSRF_HEADER, "")
    if not hmac.compare_digest(given.encode(), (identity.csrf or "").encode()):
        wrong = "is not that of this session" if given else "is missing"
        raise RequestError(
            "csrf_missing",
            f"{CSRF_HEADER} {wrong}: it is in the cookie {_name(request, _CSRF)}, and in the answer to sign-in",
        )


def check_origin(request: Request) -> None:
    """Browsers say from which site a request comes. Who says nothing is no browser."""
    options: ServerOptions = request.app.state.options
    origin = request.headers.get("origin")
    own = f"{request.url.scheme}://{request.headers.get('host', '')}"
    if origin is not None and origin != own and origin not in options.origins:
        raise RequestError("wrong_origin", f"a page of {origin[:100]} may change nothing here")
    if origin is None and request.headers.get("sec-fetch-site") in ("cross-site", "same-site"):
        raise RequestError("wrong_origin", "a page of another site may change nothing here")
