"""HEAD wherever there is a GET: monitors and link checkers ask so."""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class HeadIsGet:
    """An application that answers HEAD as it would GET, without the content."""

    def __init__(self, app: ASGIApp) -> None:
        """Answer with this one."""
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass it on as a GET, and stop it once its headers are sent: no stream goes on for nobody."""
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
