"""Calls to a platform with a REST API: one client, a token in a header, and errors in the other side's own words."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote, urlsplit

import httpx2

from sublet.kernel.errors import PlatformRefused, PlatformUnreachable, TokenNeeded
from sublet.kernel.tls import trust_machine
from sublet.platforms.tokens import TokenSource

PATIENCE = httpx2.Timeout(30.0, connect=10.0)
KEPT_WORDS = 300  # characters of an answer that is no JSON
REFUSING = (401, 403)
AWAY = (502, 503, 504)  # a proxy before a hub that is being restarted


class RestCalls:
    """Calls to everything below one address."""

    def __init__(
        self,
        platform: str,
        address: str,
        token: TokenSource,
        transport: httpx2.AsyncBaseTransport | None = None,
        scheme: str = "token",
    ) -> None:
        """Nobody is called yet; `scheme` is how the token is shown, and `transport` carries calls elsewhere."""
        self._scheme = scheme
        self.platform, self.address, self._token, self._transport = platform, address.rstrip("/"), token, transport
        self._client: httpx2.AsyncClient | None = None

    @property
    def client(self) -> httpx2.AsyncClient:
        """Who carries the calls."""
        if self._client is None:
            usual = httpx2.AsyncHTTPTransport(verify=trust_machine(environment=False), trust_env=False)
            transport = self._transport or usual
            self._client = httpx2.AsyncClient(transport=transport, timeout=PATIENCE, follow_redirects=False)
        return self._client

    async def close(self) -> None:
        """Let go of the connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def authorize(self) -> dict[str, str]:
        """The header that shows the token."""
        return {"Authorization": f"{self._scheme} {await self._token.read()}"}

    def locate(self, *parts: str) -> str:
        """The address below which these parts lie; a part's slashes stay, all else is quoted."""
        return "/".join((self.address, *(quote(part.strip("/")) for part in parts)))

    def locate_socket(self, path: str) -> str:
        """The same for a WebSocket; the path has been quoted."""
        place = urlsplit(self.address)
        scheme = "wss" if place.scheme == "https" else "ws"
        return f"{scheme}://{place.netloc}{place.path}{path}"

    async def call(
        self, method: str, url: str, body: object = None, *, allow: tuple[int, ...] = (), seconds: float | None = None
    ) -> httpx2.Response:
        """One call; whatever is not a success, nor among `allow`, is raised in the other side's own words."""
        headers = await self.authorize()
        content = None if body is None else json.dumps(body).encode()
        if content is not None:
            headers["Content-Type"] = "application/json"
        timeout = PATIENCE if seconds is None else httpx2.Timeout(seconds, connect=10.0)
        try:
            answer = await self.client.request(method, url, headers=headers, content=content, timeout=timeout)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise self.unreachable(error) from error
        if not answer.is_success and answer.status_code not in allow:
            raise self.refuse(answer.status_code, answer.content)
        return answer

    @asynccontextmanager
    async def stream(self, url: str) -> AsyncIterator[httpx2.Response]:
        """What is at an address, in pieces."""
        try:
            async with self.client.stream("GET", url, headers=await self.authorize()) as answer:
                if not answer.is_success:
                    raise self.refuse(answer.status_code, await answer.aread())
                yield answer
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise self.unreachable(error) from error

    def unreachable(self, error: Exception) -> PlatformUnreachable:
        """Nobody answered."""
        why = str(error) or type(error).__name__
        return PlatformUnreachable(platform=self.platform, why=f"{self.address}: {why}")

    def refuse(self, status: int, body: bytes) -> PlatformUnreachable | PlatformRefused | TokenNeeded:
        """What an answer means that is no success."""
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
    """What an answer says, for a person: its message, if it is JSON, else its beginning, unless that is a page."""
    try:
        value: Any = json.loads(body)
    except ValueError:
        text = " ".join(body.decode("utf-8", "replace").split())
        return "" if text.startswith("<") else text[:KEPT_WORDS]
    if not isinstance(value, Mapping):
        return ""
    return str(value.get("message") or value.get("reason") or "")[:KEPT_WORDS].rstrip(".")
