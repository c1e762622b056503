"""Interactive sessions under a name of their own: a page that runs in one is of another site than ours.

Where each session has a host of its own, all paths of that host are the session's: an application that knows nothing
of the path under which it is reached, and asks for `/static/app.js`, gets it.
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
    """An application whose sessions are reached by their own host, and nothing else by that."""

    def __init__(self, app: ASGIApp, address: str) -> None:
        """`address` is where sessions are, with `{session}` in it if each has a host of its own; empty: with us."""
        self.app = app
        self.host = urlsplit(address).netloc.lower()
        before, placeholder, after = self.host.partition(SESSION)
        self.has_own_hosts = bool(placeholder)
        each = r"([0-9a-f-]{36})" if placeholder else ""
        self.theirs = re.compile(f"{re.escape(before)}{each}{re.escape(after)}")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass it on, unless it came by the wrong name."""
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
        """The session whose own host was asked; empty if it was another."""
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
    """The same request at the path by which we know the session; `OWN_HOST` says that the host is the session's."""
    if CONNECT.match(scope["path"]):
        return {**scope, OWN_HOST: True}
    prefix = f"/connect/{session}"
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    paths = {"path": prefix + scope["path"], "raw_path": prefix.encode() + raw}
    return {**scope, **paths, OWN_HOST: True, ROOTED: True}
