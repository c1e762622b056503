"""Calls to an API server, and what their failures mean for a platform, in the server's own words."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from sublet.kernel.errors import LoginNeeded, PlatformRefused, PlatformUnreachable, SubletError
from sublet.kernel.streams import closing
from sublet.platforms.kubernetes.access import ClusterAccess
from sublet.platforms.kubernetes.kubeconfig import BadAccess

Object = dict[str, Any]  # one of Kubernetes' objects, as its API writes it
PATIENCE = 30.0  # seconds for one answer
UNAUTHORIZED = 401
WATCHED = 300  # seconds after which a watch is started again
JSON = "application/json"
NO_QUERY: Mapping[str, str] = {}
MERGE = "application/merge-patch+json"
PAGE = "500"  # objects per answer
RENEW = "Renew the token, or the certificate, in its kubeconfig; waiting sessions then continue."


class ObjectMissing(Exception):
    """There is no such object."""


class ObjectExists(Exception):
    """There is one of this name already, or it was changed meanwhile."""


class ListExpired(Exception):
    """What was listed is too old to be watched on from."""


class ApiServer:
    """One API server, accessed as one of its users."""

    def __init__(self, platform: str, access: ClusterAccess) -> None:
        """Set up the client without connecting."""
        self.platform, self.access = platform, access
        self._http = httpx2.AsyncClient(
            base_url=access.server,
            verify=access.tls,
            proxy=access.proxy or None,
            trust_env=False,
            timeout=PATIENCE,
            limits=httpx2.Limits(max_connections=50, max_keepalive_connections=10),
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    def path_of(self, kind: str, name: str = "", part: str = "") -> str:
        """Return the path of objects in our namespace: `jobs`, `pods`, `secrets`, …"""
        group = {"jobs": "/apis/batch/v1"}.get(kind, "/api/v1")
        path = f"{group}/namespaces/{self.access.namespace}/{kind}"
        return "/".join(word for word in (path, name, part) if word)

    async def headers(self) -> dict[str, str]:
        """Return the headers of every call; this may run a credential program."""
        try:
            return await asyncio.to_thread(lambda: self.access.headers)
        except BadAccess as error:
            raise LoginNeeded(
                f"{self.platform} can't be entered: {error}.", platform=self.platform, hint=RENEW
            ) from error

    async def get(self, path: str, **query: str) -> Object:
        """Get an object or a list."""
        return await self.call("GET", path, query)

    async def list(self, path: str, **query: str) -> Object:
        """Get a whole list, page by page; raise PlatformUnreachable if it has expired before its last page."""
        whole = await self.get(path, limit=PAGE, **query)
        while more := whole["metadata"].get("continue"):
            try:
                page = await self.get(path, limit=PAGE, **{**query, "continue": more})
            except ListExpired as error:
                raise PlatformUnreachable(platform=self.platform, why=str(error)) from error
            whole["items"] = (whole.get("items") or []) + (page.get("items") or [])
            whole["metadata"] = page["metadata"]
        return whole

    async def create(self, path: str, body: Mapping[str, Any], **query: str) -> Object:
        """Create an object; raise ObjectExists if its name is taken."""
        return await self.call("POST", path, query, body)

    async def replace(self, path: str, body: Mapping[str, Any]) -> Object:
        """Replace an object."""
        return await self.call("PUT", path, {}, body)

    async def patch(self, path: str, body: Mapping[str, Any]) -> Object:
        """Change parts of an object."""
        return await self.call("PATCH", path, {}, body, MERGE)

    async def delete(self, path: str, body: Mapping[str, Any] | None = None) -> bool:
        """Delete an object, and return whether there was one."""
        try:
            await self.call("DELETE", path, {}, body)
        except ObjectMissing:
            return False
        return True

    async def call(
        self, method: str, path: str, query: Mapping[str, str] = NO_QUERY, body: Any = None, kind: str = JSON
    ) -> Object:
        """Make a call; raise what its failure means."""
        content = None if body is None else json.dumps(body).encode()
        more = {"Accept": "application/json"} | ({} if content is None else {"Content-Type": kind})
        while True:
            headers = {**await self.headers(), **more}
            try:
                answer = await self._http.request(method, path, params=query, headers=headers, content=content)
            except httpx2.HTTPError as error:
                raise self.describe_silence(error) from error
            if answer.is_success:
                return read_object(answer.content, self.platform)
            if answer.status_code != UNAUTHORIZED or not self.access.renew():
                raise self.describe_refusal(answer.status_code, answer.content)

    def describe_silence(self, error: Exception) -> PlatformUnreachable:
        """Return the error to raise if the server didn't answer in time."""
        return PlatformUnreachable(platform=self.platform, why=str(error) or type(error).__name__)

    def describe_refusal(self, status: int, content: bytes) -> Exception:
        """Return the error that an unsuccessful answer stands for."""
        words, reason = read_status(content)
        words = words or f"it answered {status}"
        error: SubletError
        if status == UNAUTHORIZED:
            self.access.renew()  # the next call has others, if there are any
            why = f"{self.platform} does not know the token that it was shown: {words}."
            return LoginNeeded(why, platform=self.platform, hint=RENEW)
        if status == 404:
            return ObjectMissing(words)
        if status == 409:
            return ObjectExists(words)
        if status == 410 or reason == "Expired":
            return ListExpired(words)
        if status == 429 or status >= 500:
            error = PlatformUnreachable(platform=self.platform, why=words)
        else:
            error = PlatformRefused(platform=self.platform, why=words)
        return error

    @asynccontextmanager
    async def watch(self, path: str, **query: str) -> AsyncIterator[AsyncIterator[Object]]:
        """Watch a list from a version on, until the server ends it: each event has `type` and `object`."""
        asked = {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": str(WATCHED), **query}
        limits = httpx2.Timeout(PATIENCE, read=WATCHED + PATIENCE)
        try:
            async with self._http.stream(
                "GET", path, params=asked, headers=await self.headers(), timeout=limits
            ) as answer:
                if not answer.is_success:
                    raise self.describe_refusal(answer.status_code, await answer.aread())
                async with closing(self._read_events(answer)) as events:
                    yield events
        except httpx2.HTTPError as error:
            raise self.describe_silence(error) from error

    @asynccontextmanager
    async def read_log(self, pod: str, container: str, **query: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """Stream a container's log in pieces."""
        limits = httpx2.Timeout(PATIENCE, read=None)
        path, asked = self.path_of("pods", pod, "log"), {"container": container, **query}
        try:
            async with self._http.stream(
                "GET", path, params=asked, headers=await self.headers(), timeout=limits
            ) as answer:
                if not answer.is_success:
                    raise self.describe_refusal(answer.status_code, await answer.aread())
                async with closing(answer.aiter_bytes()) as pieces:
                    yield pieces
        except httpx2.HTTPError as error:
            raise self.describe_silence(error) from error

    async def _read_events(self, answer: httpx2.Response) -> AsyncIterator[Object]:
        async with closing(answer.aiter_lines()) as lines:
            async for line in lines:
                event = read_object(line.encode(), self.platform)
                if event.get("type") == "ERROR":
                    raise self.describe_refusal(
                        int(event["object"].get("code") or 500), json.dumps(event["object"]).encode()
                    )
                yield event


def read_object(content: bytes, platform: str) -> Object:
    """Read an object from an answer."""
    try:
        value = json.loads(content)
    except ValueError as error:
        raise PlatformUnreachable(platform=platform, why="what answered is no Kubernetes") from error
    if not isinstance(value, dict):
        raise PlatformUnreachable(platform=platform, why="what answered is no Kubernetes")
    return value


def read_status(content: bytes) -> tuple[str, str]:
    """Return the message and the reason of a refusal."""
    try:
        status = json.loads(content)
        return str(status.get("message") or ""), str(status.get("reason") or "")
    except (ValueError, AttributeError):
        return " ".join(content.decode("utf-8", "replace").split())[:300], ""
