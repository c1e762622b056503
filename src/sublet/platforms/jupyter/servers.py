"""Where a session's Jupyter Server comes from: one that is there always, or one of its own that a hub starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, Protocol

from sublet.booking.model.kernels import KERNEL
from sublet.platforms.jupyter.server import ServerApi
from sublet.platforms.rest import RestCalls

Standing = Literal["absent", "starting", "ready", "stopping", "failed"]


@dataclass(frozen=True, slots=True)
class ServerState:
    """What there is of a session's server."""

    standing: Standing
    words: str = ""  # why it failed, in the hub's own words
    path: str = ""  # below the hub's address, as /user/marie/sublet-…/
    last_activity: datetime | None = None


@dataclass(frozen=True, slots=True)
class Leaving:
    """Something that a session has there, and since when."""

    name: str  # the session's, as `name_session` makes it
    person: str
    since: datetime | None


class Servers(Protocol):
    """Starts, finds and stops the servers of sessions."""

    async def describe(self) -> tuple[dict[str, str], tuple[str, ...]]:
        """The tools that there are, and what a person should know of them; it asks now."""
        ...

    async def start(self, key: str, person: str) -> None:
        """Have a server started for a session, unless it has one."""
        ...

    async def look(self, key: str, person: str) -> ServerState:
        """What there is of it."""
        ...

    def open(self, state: ServerState) -> ServerApi:
        """The API of a server that is ready."""
        ...

    def locate(self, state: ServerState) -> str:
        """The address at which a person opens it; empty: nobody can."""
        ...

    async def stop(self, key: str, person: str) -> bool:
        """Stop a session's own server, and have it forgotten; whether nothing of it is there any more."""
        ...

    async def list_left(self, age: timedelta) -> Sequence[Leaving]:
        """Sessions of this service that have had something there for so long."""
        ...


class OneServer:
    """A single Jupyter Server, which all sessions share: each has a directory and a kernel of its own."""

    def __init__(self, calls: RestCalls, folder: str) -> None:
        """`folder` is where the sessions of this service lie there."""
        self._calls, self._folder = calls, folder
        self._api = ServerApi(calls, calls.address, folder)

    async def describe(self) -> tuple[dict[str, str], tuple[str, ...]]:
        """Its version, and its kernels."""
        version = await self._api.read_version()
        kernels = await self._api.list_kernelspecs()
        names = ", ".join(sorted(kernels.names)) or "none"
        return {KERNEL: version}, (f"Jupyter Server {version}; kernels: {names}",)

    async def start(self, key: str, person: str) -> None:
        """It is there already."""

    async def look(self, key: str, person: str) -> ServerState:
        """It is there; whoever calls it will see."""
        return ServerState("ready", path="/")

    def open(self, state: ServerState) -> ServerApi:
        """Its API."""
        return self._api

    def locate(self, state: ServerState) -> str:
        """Whoever may open it has its token, which is nobody else's."""
        return ""

    async def stop(self, key: str, person: str) -> bool:
        """It stays."""
        return True

    async def list_left(self, age: timedelta) -> Sequence[Leaving]:
        """Those that have a directory there."""
        return [Leaving(name, "", since) for name, since in await self._api.list_sessions_left(age)]
