"""HEAD for every GET route, as monitors and link checkers expect."""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class HeadIsGet:
    """Middleware that answers HEAD like GET, without the body."""

    def __init__(self, app: ASGIApp) -> None:
        """Wrap this application."""
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a HEAD request on as GET, and cancel it once its headers are sent, so that no unread stream goes on."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self.app(scope, receive, send)
            return
        answered = asyncio.Event()

        async def only_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                await send(message)
                await send({"type": "http.response.body", "body": b""})
                answered.set()

        work = asyncio.ensure_future(self.app({**scope, "method": "GET"}, receive, only_headers))
        wait = asyncio.ensure_future(answered.wait())
        try:
            await asyncio.wait({work, wait}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            wait.cancel()
            work.cancel()
            await asyncio.gather(work, wait, return_exceptions=True)
        if not answered.is_set() and not work.cancelled() and (error := work.exception()):
            raise error
