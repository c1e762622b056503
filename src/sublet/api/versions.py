"""Every answer says which version of Sublet gave it: pure ASGI, so that streams stay streams."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sublet.version import VERSION

HEADER = (b"sublet-version", VERSION.encode())


class Versioned:
    """An application whose answers carry the version that this process was started with."""

    def __init__(self, app: ASGIApp) -> None:
        """Mark the answers of this one."""
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass it on, and mark the answer."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def mark(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), HEADER]}
            await send(message)

        await self.app(scope, receive, mark)
