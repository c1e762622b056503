"""Interactive sessions under their own host name, so that a browser treats them as a separate site.

Where each session has its own host, all paths of that host belong to the session. So an application that doesn't know
the path at which it is served, and requests `/static/app.js`, gets that file.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from sublet.api.people import on_socket
from sublet.api.problems import problem_response
from sublet.booking.api.connect import OWN_HOST, ROOTED
from sublet.kernel.errors import NotFound

CONNECT = re.compile(r"/connect/([^/]+)(/|$)")
SESSION = "{session}"


class Apart:
    """Middleware that serves sessions only under their own host, and everything else only under other hosts."""

    def __init__(self, app: ASGIApp, address: str) -> None:
        """Set the address of sessions; with `{session}` in it, each session has its own host."""
        self.app = app
        self.host = urlsplit(address).netloc.lower()
        before, placeholder, after = self.host.partition(SESSION)
        self.has_own_hosts = bool(placeholder)
        each = r"([0-9a-f-]{36})" if placeholder else ""
        self.theirs = re.compile(f"{re.escape(before)}{each}{re.escape(after)}")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer 404 if it came to the wrong host."""
        if scope["type"] in ("http", "websocket") and (session := self._find_session(scope)):
            scope = _below_connect(scope, session)
        if scope["type"] in ("http", "websocket") and self.host and not on_socket(scope) and not self._fits(scope):
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
                return
            error = NotFound("There is nothing here.", hint="Sessions and pages are reached by different names.")
            await problem_response(error)(scope, receive, send)
            return
        await self.app(scope, receive, send)

    def _find_session(self, scope: Scope) -> str:
        """Return the session whose own host the request names, or an empty string."""
        if not self.has_own_hosts or on_socket(scope):
            return ""
        match = self.theirs.fullmatch(Headers(scope=scope).get("host", "").lower())
        return match[1] if match else ""

    def _fits(self, scope: Scope) -> bool:
        host = Headers(scope=scope).get("host", "").lower()
        session = CONNECT.match(scope["path"])
        if session:
            return host == self.host.replace(SESSION, session[1].lower())
        return not self.theirs.fullmatch(host)


def _below_connect(scope: Scope, session: str) -> Scope:
    """Return the request with the session's path below /connect; `OWN_HOST` marks that the host is the session's."""
    if CONNECT.match(scope["path"]):
        return {**scope, OWN_HOST: True}
    prefix = f"/connect/{session}"
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    paths = {"path": prefix + scope["path"], "raw_path": prefix.encode() + raw}
    return {**scope, **paths, OWN_HOST: True, ROOTED: True}
