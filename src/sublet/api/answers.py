"""Changes the head of HTTP answers, in pure ASGI so that streams aren't buffered."""

from __future__ import annotations

from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class AnswerHeads:
    """An application that changes the start message of each answer with `change`, given the request's scope."""

    def __init__(self, app: ASGIApp, change: Callable[[Scope, Message], Message]) -> None:
        """Wrap an application."""
        self.app, self.change = app, change

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and change the head of its answer."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def pass_on(message: Message) -> None:
            await send(self.change(scope, message) if message["type"] == "http.response.start" else message)

        await self.app(scope, receive, pass_on)
