"""HTTP calls to one broker: each call is authenticated, redirects aren't followed, and answers have a size limit."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import cached_property, lru_cache
from typing import Any
from urllib.parse import urlencode, urlsplit

import h11
import httpx2

from sublet.kernel.cookies import keep_no_cookies
from sublet.kernel.document import parse_document
from sublet.kernel.errors import (
    LoginNeeded,
    NotFound,
    PlatformBroken,
    PlatformRefused,
    PlatformTimedOut,
    PlatformUnreachable,
    SubletError,
)
from sublet.kernel.streams import closing, read_up_to
from sublet.kernel.texts import describe_duration
from sublet.kernel.tls import trust_machine
from sublet.people.model.assertion import Errand
from sublet.platforms.broker.connections import AnswerTooLong, BrokerConnections, needs_proxy
from sublet.platforms.brokering import BrokerIdentity

LARGEST = 8 << 20  # bytes of an answer
PATIENCE = timedelta(seconds=20)
CONNECTIONS = 32
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
VIA = "broker-via"  # the IDs of the brokers that a request has passed through
REQUEST = "broker-request"  # the ID of a request, the same by every route
PROOF = "broker-proof"  # a proof that only the answering broker can derive from that ID, the same by every route
SUBLET = "sublet-version"  # brokers whose answers have this header honour an Idempotency-Key
JSON = "application/json"
SKEW = timedelta(seconds=2)  # clocks that differ by less count as equal


@dataclass(frozen=True, slots=True)
class BrokerReply:
    """A broker's answer to one call."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    took: timedelta = timedelta(0)

    @property
    def document(self) -> Mapping[str, Any]:
        """The answer's document, in JSON or YAML; empty if there is none that can be read."""
        kind = self.headers.get("content-type", JSON)
        try:
            read = json.loads(self.body) if "json" in kind else parse_document(self.body, kind)
        except (SubletError, ValueError, RecursionError):
            return {}
        return read if isinstance(read, Mapping) else {}

    @property
    def words(self) -> str:
        """The broker's error message."""
        problem = self.document
        text = problem.get("detail") or problem.get("message") or problem.get("error") or ""
        return str(text)[:500] or f"it answered {self.status}"

    def find_skew(self, asked: datetime) -> timedelta:
        """Return how far the broker's clock is ahead of ours, by its `Date`: a time between the call and the reply."""
        there = _read_date(self.headers.get("date", ""))
        if there is None or asked - SKEW <= there <= asked + self.took + SKEW:
            return timedelta(0)
        return there - (asked + self.took if there > asked else asked)


@lru_cache(maxsize=16)
def _read_date(text: str) -> datetime | None:
    """Read the time in a `Date` header; cached, as many brokers answer within the same second."""
    try:
        there = parsedate_to_datetime(text)
    except (ValueError, TypeError):
        return None
    return there.replace(tzinfo=there.tzinfo or UTC)


@dataclass
class BrokerWire:
    """Calls to one broker."""

    name: str
    url: str  # without a trailing /
    token: str = field(default="", repr=False)  # this service's own, if `identity` has no other credentials
    identity: BrokerIdentity | None = None
    is_sublet: bool = False  # as far as its answers have shown
    _client: httpx2.AsyncClient | None = None
    _connections: BrokerConnections | None = None

    async def close(self) -> None:
        """Close the connections."""
        if self._connections:
            self._connections.close()
        if self._client:
            await self._client.aclose()
            self._client = None

    @property
    def client(self) -> httpx2.AsyncClient:
        """The HTTP client for files, and for all calls if a proxy is needed."""
        if self._client is None:
            self._client = httpx2.AsyncClient(
                verify=trust_machine(),
                follow_redirects=False,  # the token is for this broker only, not for where it redirects to
                timeout=PATIENCE.total_seconds(),
                limits=httpx2.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS),
                trust_env=urlsplit(self.url).hostname not in LOOPBACK,
                cookies=keep_no_cookies(),
            )
        return self._client

    @cached_property
    def connections(self) -> BrokerConnections | None:
        """The connections for calls without a proxy; None if a proxy is needed."""
        if urlsplit(self.url).hostname not in LOOPBACK and needs_proxy(self.url):
            return None
        self._connections = BrokerConnections(self.url, CONNECTIONS)
        return self._connections

    @cached_property
    def root(self) -> str:
        """The path of the broker's address, as it is written in a request."""
        return httpx2.URL(self.url).raw_path.decode().rstrip("/")

    async def authorize(self, person: str, method: str = "GET", target: str = "") -> Mapping[str, str]:
        """Return the headers that authenticate a person's call by this method to this path."""
        errand = None if self.token or not target else Errand(method, target)
        if self.identity and (headers := await self.identity.authorize(self.name, self.url, person, errand)):
            return headers
        return {"authorization": f"Bearer {self.token}"} if self.token else {}

    async def get(self, path: str, person: str, **query: str) -> BrokerReply:
        """Make a GET request."""
        return await self._call("GET", f"{path}?{urlencode(query)}" if query else path, person)

    async def post(
        self,
        path: str,
        person: str,
        document: Any,
        headers: Mapping[str, str] | None = None,
        within: timedelta = PATIENCE,
    ) -> BrokerReply:
        """Send a document with POST."""
        return await self.send(path, person, json.dumps(document, ensure_ascii=False), headers, within)

    async def send(
        self, path: str, person: str, text: str, headers: Mapping[str, str] | None = None, within: timedelta = PATIENCE
    ) -> BrokerReply:
        """Send a document that is already JSON text."""
        more = {"content-type": JSON, **(headers or {})}
        return await self._call("POST", path, person, content=text.encode(), headers=more, within=within)

    async def delete(self, path: str, person: str) -> BrokerReply:
        """Make a DELETE request."""
        return await self._call("DELETE", path, person)

    async def _call(
        self,
        method: str,
        path: str,
        person: str,
        *,
        within: timedelta = PATIENCE,
        headers: Mapping[str, str] | None = None,
        content: bytes = b"",
    ) -> BrokerReply:
        began = time.monotonic()
        try:
            async with asyncio.timeout(within.total_seconds()):
                reply = await self._exchange(method, path, person, headers, content)
        except TimeoutError:
            raise PlatformTimedOut(platform=self.name, limit=describe_duration(within)) from None
        self.is_sublet = self.is_sublet or SUBLET in reply.headers
        return self._check(replace(reply, took=timedelta(seconds=time.monotonic() - began)))

    async def _exchange(
        self, method: str, path: str, person: str, headers: Mapping[str, str] | None, content: bytes
    ) -> BrokerReply:
        if (connections := self.connections) is None:
            async with self._open(method, path, person, headers, content) as heard:
                return BrokerReply(heard.status_code, heard.headers, await _read(heard, self.name))
        target = self.root + path
        shown = {"accept": JSON, **(headers or {}), **await self.authorize(person, method, target)}
        try:
            return BrokerReply(*await connections.call(method, target, shown, content, LARGEST))
        except AnswerTooLong:
            raise _refuse_length(self.name) from None
        except TimeoutError:
            raise
        except (h11.ProtocolError, OSError, UnicodeError) as error:
            raise self._fail(error) from error

    @asynccontextmanager
    async def _open(
        self, method: str, path: str, person: str, headers: Mapping[str, str] | None, content: bytes = b""
    ) -> AsyncIterator[httpx2.Response]:
        target = self.root + path
        shown = {"accept": JSON, **(headers or {}), **await self.authorize(person, method, target)}
        try:
            async with self.client.stream(method, f"{self.url}{path}", headers=shown, content=content or None) as heard:
                yield heard
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, UnicodeError) as error:
            raise self._fail(error) from error

    def _fail(self, error: Exception) -> PlatformUnreachable:
        why = os.strerror(error.errno) if isinstance(error, ConnectionError) and error.errno else str(error)
        return PlatformUnreachable(platform=self.name, why=f"{self.url}: {why or type(error).__name__}")

    def _check(self, reply: BrokerReply) -> BrokerReply:
        """Return the reply if the caller can use it.

        Raise LoginNeeded or PlatformUnreachable for the other statuses.
        """
        if reply.status == 401:
            raise LoginNeeded(
                f"{self.name} does not accept the token that it was shown.",
                platform=self.name,
                hint=f"sublet broker login {self.name}, or sublet broker token {self.name}; or a token of your own: "
                f"sublet credential add {self.url} --token",
            )
        if reply.status in (408, 425, 429) or reply.status >= 500:
            raise PlatformUnreachable(platform=self.name, why=reply.words)
        return reply

    async def stream(self, path: str, person: str, offset: int = 0) -> AsyncIterator[bytes]:
        """Stream a file there, from an offset."""
        headers = {"range": f"bytes={offset}-", "accept": "*/*"} if offset else {"accept": "*/*"}
        async with self._open("GET", path, person, headers) as heard:
            if heard.status_code == 404:
                raise NotFound(noun="result", name=path.rpartition("/")[2])
            if heard.status_code not in (200, 206):
                raise PlatformRefused(platform=self.name, why=f"it answered {heard.status_code}")
            skip = offset if heard.status_code == 200 else 0
            async with closing(heard.aiter_bytes()) as pieces:
                async for piece in pieces:
                    yield piece[skip:]
                    skip = max(0, skip - len(piece))


async def _read(heard: httpx2.Response, name: str) -> bytes:
    content = await read_up_to(LARGEST, heard.aiter_bytes())
    if len(content) > LARGEST:
        raise _refuse_length(name)
    return content


def _refuse_length(name: str) -> PlatformBroken:
    """Return the error for an answer that is too long."""
    return PlatformBroken(platform=name, why=f"its answer has more than {LARGEST >> 20} MiB")
