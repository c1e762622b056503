"""OpenStack as a platform: each session is a virtual machine of its own in a project, started from an image there.

A session's files go to its machine as sealed user data; its output and results come back on the console, sealed too.
No network is needed between the machine and the service. Where there is one, large files go by ssh, and people connect
that way (door.py). The platform's own directory here contains

    sessions/KEY/   one session (described in session.py)
    doors/NAME/     the ssh connection to one machine
    leaving/NAME    servers that were deleted, and may still exist
    owner           the ID that marks this service's servers in the project
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from pydantic import PrivateAttr

from sublet.booking.model.job import Job, JobState, State
from sublet.booking.model.offer import Answer, Reason
from sublet.booking.model.request import Request
from sublet.booking.model.session import CONTINUED, STOPPED, End, EndKind
from sublet.kernel.errors import LoginNeeded, PlatformRefused, PlatformUnreachable
from sublet.platforms.names import make_owner, name_session
from sublet.platforms.openstack.access import BadCloud, open_cloud
from sublet.platforms.openstack.api import RENEW, CloudCalls
from sublet.platforms.openstack.compute import CloudCompute
from sublet.platforms.openstack.door import MachineDoors
from sublet.platforms.openstack.offers import (
    TAKEN,
    CloudView,
    OfferTerms,
    OwnServer,
    describe_view,
    list_nodes,
    make_offers,
    refuse_request,
    refuse_way,
    select_flavors,
)
from sublet.platforms.openstack.readers import choose_flavor
from sublet.platforms.openstack.servers import SessionServers
from sublet.platforms.openstack.session import VmSession
from sublet.platforms.openstack.settings import OpenStackSettings
from sublet.platforms.openstack.userdata import SESSION
from sublet.platforms.port import INSTEAD, Results, Survey
from sublet.platforms.sessiondir import remove_tree
from sublet.platforms.tokens import FindToken, TokenSource

FOLDERS = ("sessions", "running", "news", "trash", "leaving", "doors")
FRESH = 20.0  # seconds that a survey of the project is good for
AT_ONCE = 8  # sessions that are looked at at a time
GONE = 120.0  # seconds to wait for a server to be gone
PAUSE = 0.5


class OpenStack(OpenStackSettings):
    """A project of an OpenStack cloud."""

    _home: Path = PrivateAttr()
    _owner: str = PrivateAttr(default="")
    _find: FindToken | None = PrivateAttr(default=None)
    _servers: SessionServers | None = PrivateAttr(default=None)
    _view: CloudView | None = PrivateAttr(default=None)
    _viewed: float = PrivateAttr(default=float("-inf"))

    def hold_tokens(self, find: FindToken) -> None:
        """Set the function that provides the secret of the application credential."""
        self._find = find

    async def open(self, home: Path) -> None:
        """Create the directories; the cloud is called when it is needed."""
        await asyncio.to_thread(self._open, home)

    def _open(self, home: Path) -> None:
        self._home = home.absolute()
        try:
            for name in FOLDERS:
                (self._home / name).mkdir(mode=0o700, parents=True, exist_ok=True)
            with suppress(FileExistsError), (self._home / "owner").open("x") as opened:
                opened.write(make_owner())
            self._owner = (self._home / "owner").read_text()
        except OSError as error:
            raise PlatformUnreachable(platform=self.name, why=str(error)) from error
        for left in (self._home / "trash").iterdir():
            remove_tree(left)

    async def close(self) -> None:
        """Close the connections; running sessions continue."""
        if self._servers:
            await self._servers.close()
        self._servers = None

    async def _connect(self) -> SessionServers:
        if self._servers:
            return self._servers
        secret = ""
        if self.auth_url:
            source = TokenSource(self.name, self.auth_url, self.secret_file, self.secret_of)
            if self._find:
                source.find = self._find
            secret = await source.read()
        try:
            access = await asyncio.to_thread(open_cloud, self.cloud_settings, secret)
            calls = CloudCalls(self.name, access)
        except BadCloud as error:
            raise LoginNeeded(f"{self.name} can't be entered: {error}.", platform=self.name, hint=RENEW) from error
        self._servers = self._serve(calls)
        return self._servers

    def _serve(self, calls: CloudCalls) -> SessionServers:
        compute = CloudCompute(calls)
        doors = MachineDoors(compute, self.door_settings, self._home)
        return SessionServers(compute, self.describe_place(self._owner), self._home, doors)

    # Survey

    async def _look(self, good_for: float = FRESH) -> CloudView:
        servers = await self._connect()
        if self._view is None or time.monotonic() - self._viewed > good_for:
            token = await servers.compute.calls.sign_in()
            self._view = CloudView(
                datetime.now(UTC),
                token.project,
                token.user,
                await servers.compute.read_quota(),
                tuple(await servers.compute.list_flavors(self.flavors)),
                await servers.compute.find_image(self.image),
            )
            self._viewed = time.monotonic()
        return self._view

    def expire_survey(self) -> None:
        """Ask the cloud again at the next survey."""
        self._viewed = float("-inf")

    async def survey(self) -> Survey:
        """Return the flavors that are within the quota, each as a node."""
        view = await self._look()
        nodes = tuple(list_nodes(view, self.reserve))
        if not nodes:
            why = f"it has no flavor with a disk that is within the quota of {view.project}"
            raise PlatformRefused(platform=self.name, why=why)
        tools = {"sh": "/bin/sh", **dict.fromkeys(self.tools, "")}
        return Survey(view.as_of, nodes, tools=tools, notes=self._describe(view), good_for=timedelta(seconds=FRESH))

    def _describe(self, view: CloudView) -> tuple[str, ...]:
        return (*describe_view(view), f"each virtual machine is {self.door_settings.describe()}")

    def can_take(self, option: str) -> bool:
        """Whether the option is supported: features and a GPU type of flavors."""
        return option in TAKEN

    def unfit(self, request: Request) -> Sequence[Reason]:
        """Return why the request could never run there."""
        return refuse_request(request, self.name, self.door_settings)

    def refuse_way(self, request: Request, way: str) -> Reason | None:
        """Return why a way can't be used there."""
        return refuse_way(request, way, self.name, self.door_settings)

    async def offers(self, request: Request, ways: Sequence[str], now: datetime) -> Answer:
        """Return an offer for when the quota has room for the smallest flavor that is enough."""
        view = await self._look(2.0)
        terms = OfferTerms(self.name, ways[0], self.reserve, self.longest, self.door_settings)
        return make_offers(view, request, terms, self._list_own(), now)

    def _list_own(self) -> list[OwnServer]:
        """Return what this service's sessions take of the quota, and until when."""
        view, own = self._view, []
        known = {flavor.id: flavor for flavor in view.flavors} if view else {}
        for path in (self._home / "running").iterdir():
            session = self._session(path.name)
            flavor = known.get((session.read("job.json") or {}).get("flavor", ""))
            if flavor and not session.ended:
                own.append(OwnServer(flavor.cores, flavor.memory, session.until or datetime.now(UTC)))
        return own

    # Sessions

    def _session(self, key: str) -> VmSession:
        return VmSession(self.name, self._home, key)

    async def place(self, key: str) -> Path | None:
        """Return the session's local directory; data staged in it is sent to its machine."""
        session = self._session(key)
        session.make()
        return session.root

    async def session_directory(self, key: str) -> str:
        """Return the session's directory in its own machine, which is the same for all."""
        return SESSION

    async def find(self, key: str) -> str | None:
        """Return the key if the session has a server, by our note of it or by its name."""
        session = self._session(key)
        if session.ended or session.read_note("id"):
            return key
        if not session.read_note("asked"):
            return None
        servers = await self._connect()
        async with servers.lock(key):
            return key if await servers.find(session) else None

    async def submit(self, job: Job, key: str) -> str:
        """Create the session's server, once."""
        if job.program.connects and not self.address:
            raise PlatformRefused(platform=self.name, why="nothing leads to what listens in a virtual machine there")
        if await self.find(key):
            return key
        session, servers, view = self._session(key), await self._connect(), await self._look()
        flavors = select_flavors(view.flavors, job.scheduler)
        flavor = choose_flavor(flavors, job.amounts.shape, view.image, self.reserve)
        if flavor is None:
            raise PlatformRefused(platform=self.name, why="it has no flavor that is large enough any more")
        seconds = max(0.5, (job.until - datetime.now(UTC)).total_seconds())
        async with servers.lock(key):
            await asyncio.to_thread(session.lay_out, job, self.output_limit, seconds, flavor.id, bool(self.address))
            if by := session.cancelled_by:
                session.finish(End(EndKind.CANCELLED, by=by, detail="it had not started"))
                return key
            await servers.submit(job, session, flavor.id, view.image.id)
        self.expire_survey()
        return key

    def find_own_id(self, key: str) -> str:
        """Return the ID of the session's server, as `openstack server show` takes it."""
        return self._session(key).read_note("id")

    async def ask(self, ids: Sequence[str]) -> Mapping[str, JobState]:
        """Return the states of many sessions at once, by one list of servers and the console of each running one."""
        sessions = {id: self._session(id) for id in ids}
        states = {id: session.state() for id, session in sessions.items() if session.ended}
        there = {id: each for id, each in sessions.items() if id not in states and each.is_submitted}
        if there:
            servers = await self._connect()
            named, turns = await servers.list_all(), asyncio.Semaphore(AT_ONCE)

            async def look(session: VmSession) -> JobState:
                async with turns:
                    return await servers.look(session, named.get(servers.name_of(session.key), ()))

            looked = await asyncio.gather(*(look(session) for session in there.values()))
            states |= dict(zip(there, looked, strict=True))
        await self._chase()
        return {id: states.get(id) or JobState(State.UNKNOWN) for id in ids}

    async def _chase(self) -> None:
        if any((self._home / "leaving").iterdir()):
            await (await self._connect()).chase()

    async def cancel(self, ids: Sequence[str], by: str) -> None:
        """Stop these sessions by their machines' power buttons; those that haven't begun are deleted."""
        for id in ids:
            session = self._session(id)
            if session.ended or not session.root.is_dir():
                continue
            session.cancel(by or "someone")
            servers = await self._connect()
            async with servers.lock(id):
                if session.read_note("id") or session.read_note("asked"):
                    await servers.find(session)
                    await servers.stop(session)
                else:
                    session.finish(End(EndKind.CANCELLED, by=session.cancelled_by, detail="it had not started"))

    async def extend(self, id: str, until: datetime) -> None:
        """Move the end of a session's time, at most by the spare time that its machine allows."""
        session = self._session(id)
        if not session.is_submitted or session.ended:
            return
        began = session.began or datetime.now(UTC)
        most = began + timedelta(seconds=session.read("job.json")["seconds"]) + self.spare
        if until > most:
            why = f"its virtual machine turns itself off at {most:%Y-%m-%d %H:%M} UTC, whoever asks for more"
            raise PlatformRefused(platform=self.name, why=why, hint="Ask for an earlier end, or for a new session.")
        session.order("until", str(until.timestamp()))

    async def pause(self, id: str) -> str:
        """Have Nova pause the machine."""
        return await self._act(id, "pause", STOPPED)

    async def resume(self, id: str) -> str:
        """Have Nova continue the machine."""
        return await self._act(id, "unpause", CONTINUED)

    async def _act(self, id: str, action: str, words: str) -> str:
        session = self._session(id)
        server = session.read_note("id")
        if session.ended or not session.heard.began or not server:
            raise PlatformRefused(platform=self.name, why="it does not run", hint=INSTEAD)
        await (await self._connect()).compute.act(server, action)
        return words

    # Output and results

    async def output(self, key: str, stream: Literal["stdout", "stderr"], offset: int, limit: int) -> bytes:
        """Return part of a session's output, as its console has reported it."""
        session = self._session(key)
        await self._listen(session)
        return session.output(stream, offset, limit)

    async def _listen(self, session: VmSession) -> None:
        if session.ended or not session.read_note("id"):
            return
        with suppress(PlatformRefused, PlatformUnreachable):
            servers = await self._connect()
            async with servers.lock(session.key):
                await servers.listen(session)

    async def output_size(self, key: str, stream: Literal["stdout", "stderr"]) -> int:
        """Return how much of a session's output has arrived here."""
        session = self._session(key)
        await self._listen(session)
        return session.output_size(stream)

    async def results(self, key: str) -> Results:
        """List a session's results; there are none before its end."""
        session = self._session(key)
        return await asyncio.to_thread(session.results) if session.ended else Results()

    def read(self, key: str, path: str, offset: int = 0) -> AsyncIterator[bytes]:
        """Read a result file in pieces, from an offset."""
        return self._session(key).pieces(path, offset)

    async def clean(self, key: str) -> None:
        """Remove everything of a session, here and there, and wait until it is gone; refuse if it still runs."""
        session = self._session(key)
        if session.is_submitted and not session.ended:
            state = (await self.ask([key]))[key]
            if state.state in (State.RUNNING, State.QUEUED):
                raise PlatformRefused(platform=self.name, why="the session still runs", hint="Cancel it first.")
        servers = await self._connect()
        deadline = time.monotonic() + GONE
        while not await servers.remove(key):
            if time.monotonic() > deadline:
                raise PlatformUnreachable(platform=self.name, why=f"{servers.name_of(key)} is still being deleted")
            await asyncio.sleep(PAUSE)
        (self._home / "leaving" / name_session(key)).unlink(missing_ok=True)
        await asyncio.to_thread(session.remove, self._home / "trash")

    async def list_left(self, age: timedelta = timedelta(0)) -> Sequence[str]:
        """List this service's sessions that have a server."""
        await self._chase()
        return await (await self._connect()).list_left(age)
