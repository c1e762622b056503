"""Something done to the head of every HTTP answer: pure ASGI, so that streams stay streams."""

from __future__ import annotations

from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class AnswerHeads:
    """An application whose answers begin as `change` makes of them: it is given the request and the head."""

    def __init__(self, app: ASGIApp, change: Callable[[Scope, Message], Message]) -> None:
        """Change the answers of this one."""
        self.app, self.change = app, change

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and change the head of its answer."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def pass_on(message: Message) -> None:
            await send(self.change(scope, message) if message["type"] == "http.response.start" else message)

        await self.app(scope, receive, pass_on)
