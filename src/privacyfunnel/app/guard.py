"""Who may ask: only this machine, only our own page, only with the token; and no answer with a traceback."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from ipaddress import ip_address
from typing import Any

from starlette.datastructures import Headers, MutableHeaders

from ..errors import InvalidInputError
from .pages import error_page

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

TOKEN_HEADER = "x-pfunnel-token"
WRONG = "Something went wrong inside the app; try again, or start it anew."
#: What holds no data, and a browser fetches before our script can send a token.
OPEN_PATHS = ("/", "/app.js", "/app.css", "/favicon.ico")
#: Nothing but our own files: no inline script or style, no other server, no frame, no form that leaves.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


def require_loopback(host: str) -> str:
    """The address, if only this machine reaches it."""
    try:
        inside = ip_address(host).is_loopback
    except ValueError:
        inside = False
    if not inside:
        raise InvalidInputError(
            f"The app listens on this machine alone, and {host!r} is reached from others; use 127.0.0.1."
        )
    return host


class Guard:
    """Refuses foreign hosts (DNS rebinding), foreign origins and requests without the token.

    Whatever goes wrong inside becomes a page of one sentence. Nothing is logged: an error may name a value.
    """

    def __init__(self, app: Any, token: str, port: int) -> None:
        self.app, self.token = app, token
        self.hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        begun = False

        async def send_guarded(message: MutableMapping[str, Any]) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        headers = Headers(scope=scope)
        refused = self._refused(scope, headers)
        if refused is not None:
            status, sentence = refused
            page = error_page(sentence, status, whole=TOKEN_HEADER not in headers)
            await page(scope, receive, send_guarded)
            return
        try:
            await self.app(scope, receive, send_guarded)
        except Exception:
            if begun:
                raise RuntimeError("an answer broke off") from None
            await error_page(WRONG, 500, whole=TOKEN_HEADER not in headers)(scope, receive, send_guarded)

    def _refused(self, scope: Scope, headers: Headers) -> tuple[int, str] | None:
        if headers.getlist("host") != [host for host in self.hosts if host == headers.get("host")]:
            return 421, "This address is not the app's; open the one that pfunnel app printed."
        origin = headers.get("origin")
        site = headers.get("sec-fetch-site", "same-origin")
        # So the browser comes from the file with the address; the page holds nothing by itself.
        if site == "cross-site" and scope["path"] == "/" and headers.get("sec-fetch-mode") == "navigate":
            site = "none" if headers.get("sec-fetch-dest") == "document" else site
        if site not in ("same-origin", "none") or origin not in (
            None,
            *(f"http://{host}" for host in self.hosts),
        ):
            return 403, "Another page asked for this; open the address that pfunnel app printed."
        if scope["path"] in OPEN_PATHS:
            return None
        given = headers.get(TOKEN_HEADER, "")
        if not secrets.compare_digest(given.encode(), self.token.encode()):
            return 403, "The token is missing or wrong; open the address that pfunnel app printed."
        return None
