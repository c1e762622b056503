"""Where a session's Jupyter Server comes from: one that always exists, or one that a hub starts for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, Protocol

from sublet.booking.model.kernels import KERNEL
from sublet.platforms.jupyter.server import ServerApi
from sublet.platforms.rest import RestCalls


class HubFull(Exception):
    """The hub starts no more servers now; the words are its own."""


Standing = Literal["absent", "starting", "ready", "stopping", "failed"]


@dataclass(frozen=True, slots=True)
class ServerState:
    """The state of a session's server."""

    standing: Standing
    words: str = ""  # why it failed, in the hub's own words
    path: str = ""  # below the hub's address, as /user/marie/sublet-…/
    last_activity: datetime | None = None


@dataclass(frozen=True, slots=True)
class Leaving:
    """Something that a session has there, and since when."""

    name: str  # the session's name by `name_session`
    person: str
    since: datetime | None


class Servers(Protocol):
    """Starts, finds and stops the servers of sessions."""

    async def describe(self) -> tuple[dict[str, str], tuple[str, ...]]:
        """Return the available tools, and notes for people; this asks the server now."""
        ...

    async def start(self, key: str, person: str) -> None:
        """Have a server started for a session, unless it has one; raise HubFull if it has to wait for others to end."""
        ...

    async def look(self, key: str, person: str) -> ServerState:
        """Return the state of a session's server."""
        ...

    def open(self, state: ServerState) -> ServerApi:
        """Return the API of a ready server."""
        ...

    def locate(self, state: ServerState) -> str:
        """Return the URL at which a person opens the server; empty if nobody can."""
        ...

    async def stop(self, key: str, person: str) -> bool:
        """Stop a session's own server, and have it forgotten; return whether nothing of it is left."""
        ...

    async def list_left(self, age: timedelta) -> Sequence[Leaving]:
        """List this service's sessions that have had something there for at least `age`."""
        ...


class OneServer:
    """A single Jupyter Server, which all sessions share: each has its own directory and kernel."""

    def __init__(self, calls: RestCalls, folder: str) -> None:
        """Set the `folder` of this service's sessions."""
        self._calls, self._folder = calls, folder
        self._api = ServerApi(calls, calls.address, folder)

    async def describe(self) -> tuple[dict[str, str], tuple[str, ...]]:
        """Return the server's version and kernels."""
        version = await self._api.read_version()
        kernels = await self._api.list_kernelspecs()
        names = ", ".join(sorted(kernels.names)) or "none"
        return {KERNEL: version}, (f"Jupyter Server {version}; kernels: {names}",)

    async def start(self, key: str, person: str) -> None:
        """Do nothing, as the server always exists."""

    async def look(self, key: str, person: str) -> ServerState:
        """Return the state "ready" without asking; the next call shows if it isn't true."""
        return ServerState("ready", path="/")

    def open(self, state: ServerState) -> ServerApi:
        """Return the server's API."""
        return self._api

    def locate(self, state: ServerState) -> str:
        """Return an empty URL, as opening the server would need its token, which isn't shared."""
        return ""

    async def stop(self, key: str, person: str) -> bool:
        """Return True without stopping the server, which always stays."""
        return True

    async def list_left(self, age: timedelta) -> Sequence[Leaving]:
        """List the sessions that have a directory there."""
        return [Leaving(name, "", since) for name, since in await self._api.list_sessions_left(age)]
