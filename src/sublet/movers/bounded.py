"""An HTTP client that reads no answer into memory without a limit: neither a list, nor a redirect's own page."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx2

from sublet.kernel.streams import closing, read_up_to

MOST_ANSWER = 64 << 20  # bytes of an answer that is read whole
MOST_REDIRECT = 64 << 10  # bytes of a page that the client itself reads before it goes on, and nobody else
SENT = ("content-encoding", "transfer-encoding")  # headers of the answer as it was sent


class OverlongAnswer(httpx2.TransportError):
    """A server's answer is longer than anything that is read into memory."""

    def __init__(self, most: int) -> None:
        """Describe the limit."""
        super().__init__(f"the server's answer has more than {most} bytes")


class BoundedClient(httpx2.AsyncClient):
    """Raises OverlongAnswer for an answer that is too long to be read whole; streams have no limit."""

    def __init__(self, **options: Any) -> None:
        """Take the same options as any client."""
        super().__init__(**options)
        self.event_hooks["response"].append(_limit_redirect)

    async def send(self, request: httpx2.Request, *, stream: bool = False, **options: Any) -> httpx2.Response:
        """Send a request, and read its answer unless it is to be streamed."""
        response = await super().send(request, stream=True, **options)
        if request.method == "HEAD" and not stream:  # it has no content, and its headers tell of the content of a GET
            await response.aread()
            return response
        return response if stream else await _read(response)


async def _read(response: httpx2.Response) -> httpx2.Response:
    try:
        content = await read_up_to(MOST_ANSWER, response.aiter_bytes())
    finally:
        await response.aclose()
    if len(content) > MOST_ANSWER:
        raise OverlongAnswer(MOST_ANSWER)
    whole = httpx2.Response(
        response.status_code,
        headers=[(name, value) for name, value in response.headers.multi_items() if name not in SENT],
        content=content,
        request=response.request,
        extensions=response.extensions,
        history=response.history,
    )
    whole.next_request = response.next_request
    return whole


async def _limit_redirect(response: httpx2.Response) -> None:
    """Limit the page of a redirect, or of a wish for another login: the client reads it whole before it goes on."""
    is_passing = response.has_redirect_location or response.status_code == httpx2.codes.UNAUTHORIZED
    if is_passing and isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _Short(response.stream)


class _Short(httpx2.AsyncByteStream):
    """A stream that must end soon."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async with closing(aiter(self._stream)) as pieces:
            async for piece in pieces:
                size += len(piece)
                if size > MOST_REDIRECT:
                    raise OverlongAnswer(MOST_REDIRECT)
                yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()
