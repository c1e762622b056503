"""Middleware that limits the size of request bodies, before anything parses them."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sublet.api.bodies import LIMIT, too_large
from sublet.api.problems import problem_response

OTHERWISE = (
    "/connect/",
    "/web/",
    "/v1/trials",
    "/v1/tus",
)  # streamed, or read within their own limits


class Bounded:
    """Middleware that stops reading a body at its limit."""

    def __init__(self, app: ASGIApp) -> None:
        """Wrap this application."""
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer 413 once its body exceeds the limit."""
        if scope["type"] != "http" or str(scope["path"]).startswith(OTHERWISE):
            await self.app(scope, receive, send)
            return
        length = Headers(scope=scope).get("content-length", "")
        left = LIMIT
        over = length.isdigit() and int(length) > LIMIT
        answered = False

        async def some() -> Message:
            nonlocal left, over
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                over = True
                raise too_large()
            return message

        async def answer(message: Message) -> None:
            nonlocal answered
            if answered or not over:
                answered = True
                await send(message)

        if not over:
            await self.app(scope, some, answer)
        if over and not answered:
            await problem_response(too_large())(scope, receive, send)
