"""A JupyterHub, through its REST API: a server for each session, named by the session's key."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from sublet.booking.model.kernels import HUB, KERNEL
from sublet.kernel.errors import PlatformRefused
from sublet.platforms.jupyter.server import ServerApi
from sublet.platforms.jupyter.servers import HubFull, Leaving, ServerState
from sublet.platforms.names import name_session
from sublet.platforms.rest import RestCalls, read_words

BUSY = (400, 409)  # it runs already, or is being started or stopped
FULL = 429  # it starts, or has, as many servers as it may
SLOW = 90.0  # seconds for a hub to confirm that a server starts or has stopped
NOBODY = "sublet"  # the user for sessions without a person, such as a conformance trial
PAGE = 200  # users per answer
NO_ROOM = "already has the maximum"  # of named servers; a hub that is full altogether answers 429
NO_NAMES = "named servers are not enabled"


class HubServers:
    """The servers that a hub starts for sessions."""

    def __init__(self, calls: RestCalls, folder: str, user: str, options: Mapping[str, Any], named: bool) -> None:
        """Set the hub's `user` who owns the servers, where `{person}` stands for the person.

        Empty: the token's owner.
        """
        self._calls, self._folder, self._user, self._options, self._named = calls, folder, user, options, named
        self._own = ""  # the token's owner

    def _api(self, *parts: str) -> str:
        return "/".join((self._calls.address, "hub/api", *(quote(part, safe="") for part in parts)))

    def name_server(self, key: str) -> str:
        """Return the name of a session's server; empty for the user's only one."""
        return f"{self._folder}-{name_session(key)}" if self._named else ""

    async def find_user(self, person: str) -> str:
        """Return the hub's user who owns the server."""
        if self._user:
            return self._user.replace("{person}", person or NOBODY)
        if not self._own:
            about = (await self._calls.call("GET", self._api("user"))).json()
            if about.get("kind", "user") != "user" or not about.get("name"):
                why = "its token is a service's, so it must be said whose servers are to be started"
                hint = 'Set `user` of this platform to a user of the hub, or to "{person}".'
                raise PlatformRefused(platform=self._calls.platform, why=why, hint=hint)
            self._own = str(about["name"])
        return self._own

    async def describe(self) -> tuple[dict[str, str], tuple[str, ...]]:
        """Return the hub's version, and as whom it is used."""
        version = str((await self._calls.call("GET", self._api(""))).json().get("version", "unknown"))
        about = (await self._calls.call("GET", self._api("user"))).json()
        who = f"{'the service' if about.get('kind') == 'service' else 'the user'} {about.get('name', '')}"
        sentences = (f"JupyterHub {version}, signed in as {who}",)
        return {KERNEL: version, HUB: version}, sentences

    async def start(self, key: str, person: str) -> None:
        """Request a server, unless there is one; a new user is created, if the token allows that.

        Raise HubFull if the hub starts no more now.
        """
        user = await self.find_user(person)
        parts = ("users", user, "servers", self.name_server(key)) if self._named else ("users", user, "server")
        answer = await self._calls.call(
            "POST", self._api(*parts), dict(self._options), allow=(*BUSY, 404, FULL, 500), seconds=SLOW
        )
        if answer.status_code == 404 and "{person}" in self._user:
            await self._calls.call("POST", self._api("users", user), allow=(409,))
            answer = await self._calls.call(
                "POST", self._api(*parts), dict(self._options), allow=(*BUSY, FULL, 500), seconds=SLOW
            )
        words = read_words(answer.content)
        if answer.status_code == FULL or NO_ROOM in words:
            raise HubFull(" ".join(words.split()) or "the hub starts no more servers now")
        if NO_NAMES in words.lower():
            hint = "Have the hub's administrator enable them, or set `named_servers = false` for this platform."
            raise PlatformRefused(platform=self._calls.platform, why=words, hint=hint)
        if answer.status_code == 404:
            hint = f"Have {user} sign in there once, or set `user` of this platform to a user whom the hub knows."
            raise PlatformRefused(platform=self._calls.platform, why=words or f"it knows no user {user}", hint=hint)
        if answer.status_code == 400 and "running" not in words and "pend" not in words:
            raise PlatformRefused(platform=self._calls.platform, why=words or "it starts no server")

    async def look(self, key: str, person: str) -> ServerState:
        """Return the state of a session's server at the hub, with the reason if it couldn't be started."""
        user, name = await self.find_user(person), self.name_server(key)
        answer = await self._calls.call("GET", self._api("users", user), allow=(404,))
        servers: Mapping[str, Any] = (answer.json().get("servers") or {}) if answer.is_success else {}
        model = servers.get(name)
        if model is None or model.get("stopped"):
            words = await self._find_failure(user, name)
            return ServerState("failed", words) if words else ServerState("absent")
        if model.get("pending"):
            return ServerState("stopping" if model["pending"] == "stop" else "starting")
        if not model.get("ready"):
            return ServerState("starting")
        return ServerState("ready", path=model["url"], last_activity=read_time(model.get("last_activity")))

    async def _find_failure(self, user: str, name: str) -> str:
        """Return why the hub couldn't start a server, if that was tried last; empty otherwise."""
        parts = ("users", user, "servers", name, "progress") if name else ("users", user, "server", "progress")
        answer = await self._calls.call("GET", self._api(*parts), allow=(400, 404))
        return read_failure(answer.text) if answer.is_success else ""

    def open(self, state: ServerState) -> ServerApi:
        """Return the API of a ready server, behind the hub's proxy."""
        return ServerApi(self._calls, self._calls.address + state.path.rstrip("/"), self._folder)

    def locate(self, state: ServerState) -> str:
        """Return the URL of the server's page, where the hub asks people to sign in."""
        return f"{self._calls.address}{state.path.rstrip('/')}/lab"

    async def stop(self, key: str, person: str) -> bool:
        """Stop a session's own server and have the hub forget it; a user's only server is left alone.

        A hub may report that a server was stopped (204) although that failed, so its state is checked.
        """
        if not self._named:
            return True
        user = await self.find_user(person)
        address = self._api("users", user, "servers", self.name_server(key))
        answer = await self._calls.call("DELETE", address, {"remove": True}, allow=(*BUSY, 404, 424), seconds=SLOW)
        if answer.status_code == 404:
            return True
        return (await self.look(key, person)).standing in ("absent", "failed")

    async def list_left(self, age: timedelta) -> Sequence[Leaving]:
        """List the sessions that have a server there, of every user whom the token may see."""
        left, before = [], datetime.now(UTC) - age
        for user in await self._list_users():
            for name, model in (user.get("servers") or {}).items():
                started = read_time(model.get("started"))
                if self._named and name.startswith(f"{self._folder}-") and (not started or started <= before):
                    left.append(Leaving(name.removeprefix(f"{self._folder}-"), self._person_of(user["name"]), started))
        return left

    async def _list_users(self) -> list[Mapping[str, Any]]:
        if "{person}" in self._user:
            return await self._list_active_users()
        user = await self.find_user("")
        answer = await self._calls.call("GET", self._api("users", user), allow=(404,))
        return [answer.json()] if answer.is_success else []

    async def _list_active_users(self) -> list[Mapping[str, Any]]:
        """List all users who have servers, page by page: a hub decides how many it gives at once, 200 by default."""
        listed: dict[str, Mapping[str, Any]] = {}
        while True:
            query = f"?state=active&limit={PAGE}&offset={len(listed)}"
            users = (await self._calls.call("GET", self._api("users") + query)).json()
            if not {user["name"] for user in users} - listed.keys():
                return list(listed.values())
            listed |= {user["name"]: user for user in users}

    def _person_of(self, user: str) -> str:
        """Return the person that a user of the hub stands for."""
        before, _, after = self._user.partition("{person}")
        return user.removeprefix(before).removesuffix(after) if "{person}" in self._user else ""


def read_failure(events: str) -> str:
    """Return why a server wasn't started, from the hub's events about it."""
    for line in reversed(events.splitlines()):
        if line.startswith("data:"):
            event = json.loads(line.removeprefix("data:"))
            return str(event.get("message") or "the hub gave no reason") if event.get("failed") else ""
    return ""


def read_time(text: object) -> datetime | None:
    """Read a time as a hub writes it."""
    if not isinstance(text, str) or not text:
        return None
    moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
