"""No body is read beyond its limit, whoever sends it: pure ASGI, before anything is made of it."""

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
)  # passed on as they come, or read within limits of their own


class Bounded:
    """An application that is given so much of a body, and no more."""

    def __init__(self, app: ASGIApp) -> None:
        """Give bodies to this one."""
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass it on while it is within the limit; else answer 413, whatever was made of it so far."""
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
