"""Requests counted by route and answer: pure ASGI, so that streams stay streams."""

from __future__ import annotations

from prometheus_client import Counter
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sublet.service.metrics import registry

requests = Counter(
    "sublet_http_requests", "HTTP requests, by route and answer.", ["route", "method", "code"], registry=registry
)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Counted:
    """An application whose answers are counted."""

    def __init__(self, app: ASGIApp) -> None:
        """Count the answers of this one."""
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass it on and count the answer."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def count(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = getattr(scope.get("route"), "path", "") or "(none)"  # the template, never the address itself
                method = scope["method"] if scope["method"] in METHODS else "(other)"
                requests.labels(route, method, message["status"]).inc()
            await send(message)

        await self.app(scope, receive, count)
