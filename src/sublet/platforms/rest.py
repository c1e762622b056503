"""Calls to a platform's REST API: one client, a token in a header, and errors in the API's own words."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote, urlsplit

import httpx2

from sublet.kernel.cookies import keep_no_cookies
from sublet.kernel.errors import PlatformRefused, PlatformUnreachable, TokenNeeded
from sublet.kernel.tls import trust_machine
from sublet.platforms.tokens import TokenSource

PATIENCE = httpx2.Timeout(30.0, connect=10.0)
KEPT_WORDS = 300  # characters that are kept of an answer that isn't JSON
REFUSING = (401, 403)
MISSING = 404
AWAY = (502, 503, 504)  # from a proxy in front of a hub that is restarting
IsOwn = Callable[[httpx2.Response], bool]


class RestCalls:
    """Calls to an API below one base address."""

    def __init__(
        self,
        platform: str,
        address: str,
        token: TokenSource,
        transport: httpx2.AsyncBaseTransport | None = None,
        scheme: str = "token",
        is_own: IsOwn = lambda answer: True,
    ) -> None:
        """Set up without connecting.

        `scheme` is the Authorization scheme, and `transport` replaces the usual HTTP transport. `is_own` tells answers
        of the API from those of a proxy in front of it, whose 404 says nothing about what there is.
        """
        self._scheme, self._is_own = scheme, is_own
        self.platform, self.address, self._token, self._transport = platform, address.rstrip("/"), token, transport
        self._client: httpx2.AsyncClient | None = None

    @property
    def client(self) -> httpx2.AsyncClient:
        """The HTTP client, created at its first use."""
        if self._client is None:
            usual = httpx2.AsyncHTTPTransport(verify=trust_machine(environment=False), trust_env=False)
            transport = self._transport or usual
            self._client = httpx2.AsyncClient(
                transport=transport, timeout=PATIENCE, follow_redirects=False, cookies=keep_no_cookies()
            )
        return self._client

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def authorize(self) -> dict[str, str]:
        """Return the Authorization header with the token."""
        return {"Authorization": f"{self._scheme} {await self._token.read()}"}

    def locate(self, *parts: str) -> str:
        """Return the URL of a path made of these parts; slashes inside a part are kept, other characters are quoted."""
        return "/".join((self.address, *(quote(part.strip("/")) for part in parts)))

    def locate_socket(self, path: str) -> str:
        """Return the WebSocket URL of a path that is already quoted."""
        place = urlsplit(self.address)
        scheme = "wss" if place.scheme == "https" else "ws"
        return f"{scheme}://{place.netloc}{place.path}{path}"

    async def call(
        self, method: str, url: str, body: object = None, *, allow: tuple[int, ...] = (), seconds: float | None = None
    ) -> httpx2.Response:
        """Make one call; raise the API's own words for any status that is neither a success nor in `allow`."""
        headers = await self.authorize()
        content = None if body is None else json.dumps(body).encode()
        if content is not None:
            headers["Content-Type"] = "application/json"
        timeout = PATIENCE if seconds is None else httpx2.Timeout(seconds, connect=10.0)
        try:
            answer = await self.client.request(method, url, headers=headers, content=content, timeout=timeout)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise self.unreachable(error) from error
        self._check_origin(answer)
        if not answer.is_success and answer.status_code not in allow:
            raise self.refuse(answer.status_code, answer.content)
        return answer

    @asynccontextmanager
    async def stream(self, url: str) -> AsyncIterator[httpx2.Response]:
        """Stream the answer to a GET request."""
        try:
            async with self.client.stream("GET", url, headers=await self.authorize()) as answer:
                if not answer.is_success:
                    content = await answer.aread()
                    self._check_origin(answer)
                    raise self.refuse(answer.status_code, content)
                yield answer
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise self.unreachable(error) from error

    def _check_origin(self, answer: httpx2.Response) -> None:
        if answer.status_code == MISSING and not self._is_own(answer):
            why = "404, from a proxy in front of it that doesn't know it now"
            raise PlatformUnreachable(platform=self.platform, why=why)

    def unreachable(self, error: Exception) -> PlatformUnreachable:
        """Return the error to raise if the API didn't answer."""
        why = str(error) or type(error).__name__
        return PlatformUnreachable(platform=self.platform, why=f"{self.address}: {why}")

    def refuse(self, status: int, body: bytes) -> PlatformUnreachable | PlatformRefused | TokenNeeded:
        """Return the error that an unsuccessful answer stands for."""
        words = read_words(body)
        if status in REFUSING:
            why = f"{status}{f': {words}' if words else ''}"
            return TokenNeeded(
                f"{self.platform} refuses the token: {why}.",
                hint=f"Ask for another token there, and run: sublet credential add {self.address} --token",
            )
        if status in AWAY or 300 <= status < 400:
            return PlatformUnreachable(platform=self.platform, why=f"{status}{f': {words}' if words else ''}")
        return PlatformRefused(platform=self.platform, why=f"{status}: {words or 'it gave no reason'}")


def read_words(body: bytes) -> str:
    """Return a readable message from an answer: its JSON message, or the start of its text; empty if it is HTML."""
    try:
        value: Any = json.loads(body)
    except ValueError:
        text = " ".join(body.decode("utf-8", "replace").split())
        return "" if text.startswith("<") else text[:KEPT_WORDS]
    if not isinstance(value, Mapping):
        return ""
    return str(value.get("message") or value.get("reason") or "")[:KEPT_WORDS].rstrip(".")
