"""The asynchronous connection to a service, which starts the personal service if it isn't running."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, TypeVar

import httpx2

from sublet.client.address import Address
from sublet.client.call import PATIENCE, Call, HttpAnswer
from sublet.client.link import ELSEWHERE, UNAUTHORIZED, silent
from sublet.client.personal import start
from sublet.client.problems import raise_for
from sublet.client.renewing import is_due, renew
from sublet.kernel.errors import ClientClosed, ServiceUnreachable
from sublet.kernel.short_paths import fits, shorten
from sublet.kernel.streams import closing
from sublet.kernel.tls import trust_machine

T = TypeVar("T")


class AsyncLink:
    """Executes calls, many of them concurrently."""

    def __init__(self, address: Address) -> None:
        """Prepare the connections; they are opened with the first call."""
        self.address = address
        base = "http://localhost" if address.socket else f"{address.scheme}://{_host(address)}:{address.port}"
        trusted = trust_machine()
        transport = httpx2.AsyncHTTPTransport(verify=trusted, uds=_find_socket(address)) if address.socket else None
        self._http = httpx2.AsyncClient(
            base_url=base + address.prefix, verify=trusted, transport=transport, timeout=PATIENCE
        )

    async def do(self, call: Call[T]) -> T:
        """Send a call and return its parsed answer."""
        reply = await self._send(call, patience=call.patience)
        try:
            return call.read(HttpAnswer(reply.status_code, dict(reply.headers), await reply.aread()))
        except httpx2.TransportError as error:
            raise _unreachable(self.address, error) from error
        finally:
            await reply.aclose()

    async def stream(self, call: Call[Any]) -> AsyncIterator[bytes]:
        """Send a call and yield the body of its answer as it arrives, without a time limit."""
        reply = await self._send(call, patience=None)
        try:
            if reply.status_code >= 400:
                raise_for(reply.status_code, await reply.aread())
            async with closing(reply.aiter_bytes()) as pieces:
                async for piece in pieces:
                    yield piece
        except httpx2.TransportError as error:
            raise _unreachable(self.address, error) from error
        finally:
            await reply.aclose()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _send(self, call: Call[Any], *, patience: float | None) -> httpx2.Response:
        if self._http.is_closed:
            raise ClientClosed
        was_due = is_due(self.address)
        if was_due:
            self.address = await asyncio.to_thread(renew, self.address)
        reply = await self._send_once(call, patience)
        if reply.status_code != UNAUTHORIZED or was_due or not self.address.token_ends:
            return reply
        await reply.aclose()
        self.address = await asyncio.to_thread(renew, self.address)
        return await self._send_once(call, patience)

    async def _send_once(self, call: Call[Any], patience: float | None) -> httpx2.Response:
        request = self._http.build_request(
            call.method,
            call.target,
            headers=call.headers(self.address.token),
            content=call.body,
            timeout=httpx2.Timeout(PATIENCE, read=patience),
        )
        try:
            return await self._http.send(request, stream=True)
        except httpx2.ConnectError as error:
            if self.address.home is None:
                raise _unreachable(self.address, error) from error
        except httpx2.TransportError as error:
            raise _unreachable(self.address, error) from error
        await asyncio.to_thread(start, self.address, silent)
        try:
            return await self._http.send(request, stream=True)
        except httpx2.TransportError as error:
            raise _unreachable(self.address, error) from error


def _find_socket(address: Address) -> str:
    """Return a path to the socket that is short enough; the home is created, since a link needs an existing target."""
    if fits(address.socket):
        return address.socket
    if address.home:
        address.home.make()
    place = Path(address.socket)
    return str(shorten(place.parent) / place.name)


def _host(address: Address) -> str:
    return f"[{address.host}]" if ":" in address.host else address.host


def _unreachable(address: Address, error: httpx2.TransportError) -> ServiceUnreachable:
    return ServiceUnreachable(
        address=address.text, hint="" if address.local else ELSEWHERE, why=str(error) or type(error).__name__
    )
