"""Calls to Skaha: sessions, images, the context, logs, events and renewals."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote, urlencode

from sublet.platforms.rest import RestCalls
from sublet.platforms.skaha.readers import SkahaSession, SkahaSizes, read_session, read_sizes

Parameters = Sequence[tuple[str, str]]


class SkahaApi:
    """Calls below one base address, such as https://ws-uv.canfar.net/skaha/v1."""

    def __init__(self, calls: RestCalls) -> None:
        """Set up without connecting."""
        self._calls = calls

    def _at(self, *parts: str, query: Parameters = ()) -> str:
        address = "/".join((self._calls.address, *(quote(part, safe="") for part in parts)))
        return f"{address}?{urlencode(query)}" if query else address

    async def read_sizes(self) -> SkahaSizes:
        """Return what a session may ask for."""
        return read_sizes((await self._calls.call("GET", self._at("context"))).json())

    async def list_images(self, kind: str) -> list[str]:
        """List the images for sessions of a type."""
        answer = await self._calls.call("GET", self._at("image", query=[("type", kind)]))
        return [str(image["id"]) for image in answer.json()]

    async def list_sessions(self) -> list[SkahaSession]:
        """List all sessions of the caller."""
        return [read_session(value) for value in (await self._calls.call("GET", self._at("session"))).json()]

    async def create(self, parameters: Parameters) -> str:
        """Launch a session and return its ID. Calling this twice isn't safe: look for its name first."""
        answer = await self._calls.call("POST", self._at("session", query=parameters))
        return answer.text.strip()

    async def read_view(self, id: str, view: str) -> bytes:
        """Return a session's `logs` or `events`; empty if it no longer exists."""
        answer = await self._calls.call("GET", self._at("session", id, query=[("view", view)]), allow=(404,))
        return answer.content if answer.is_success else b""

    async def renew(self, id: str) -> None:
        """Renew a session, so that it expires later."""
        await self._calls.call("POST", self._at("session", id, query=[("action", "renew")]))

    async def remove(self, id: str) -> None:
        """Stop and remove a session."""
        await self._calls.call("DELETE", self._at("session", id), allow=(404,))
