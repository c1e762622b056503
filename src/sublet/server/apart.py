"""Interactive sessions under a name of their own: a page that runs in one is of another site than ours."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from sublet.api.people import on_socket
from sublet.api.problems import problem_response
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
        each = r"[0-9a-f-]{36}" if placeholder else ""
        self.theirs = re.compile(f"{re.escape(before)}{each}{re.escape(after)}")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass it on, unless it came by the wrong name."""
        if scope["type"] in ("http", "websocket") and self.host and not on_socket(scope) and not self._fits(scope):
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
                return
            error = NotFound("There is nothing here.", hint="Sessions and pages are reached by different names.")
            await problem_response(error)(scope, receive, send)
            return
        await self.app(scope, receive, send)

    def _fits(self, scope: Scope) -> bool:
        host = Headers(scope=scope).get("host", "").lower()
        session = CONNECT.match(scope["path"])
        if session:
            return host == self.host.replace(SESSION, session[1].lower())
        return not self.theirs.fullmatch(host)
