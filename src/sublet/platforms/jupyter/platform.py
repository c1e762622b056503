"""JupyterHub and Jupyter Server as platforms: notebooks in kernels there, and a hub's own servers to work in.

The platform's own directory contains

    sessions/KEY/   one session (described in session.py)
    running/KEY     a mark for each session that has not ended;  news/KEY.WHAT: it has, or can be opened
    held/KEY        a mark for each session that may have something on a server;  locks/KEY: who drives it
    left/KEY        files that are still in somebody's home at the hub, whose server was stopped there

A session is recorded here before anything is asked of a server, and everything it has there is named by its key. So it
is found again after a crash, and never started twice; `drivers.py` continues it from the record.
"""

from __future__ import annotations

import asyncio
import json
import os
from abc import abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import Field, PrivateAttr, field_validator

from sublet.booking.model.job import Job, JobState, Program
from sublet.booking.model.kernels import HUB, KERNEL, KERNEL_PLAN
from sublet.booking.model.offer import Answer, Node, Reason
from sublet.booking.model.request import Request
from sublet.kernel.errors import PlatformRefused, QueueFull
from sublet.platforms.jupyter.drivers import Drivers
from sublet.platforms.jupyter.driving import Drive
from sublet.platforms.jupyter.hub import HubServers
from sublet.platforms.jupyter.offers import make_offers, refuse_kind
from sublet.platforms.jupyter.removing import remove_directory
from sublet.platforms.jupyter.server import ServerApi, is_jupyters
from sublet.platforms.jupyter.servers import OneServer, Servers
from sublet.platforms.jupyter.session import JupyterSession
from sublet.platforms.jupyter.trial import write_trial
from sublet.platforms.names import make_owner, name_session
from sublet.platforms.port import Duration, Memory, Platform, Results, Survey
from sublet.platforms.rest import RestCalls
from sublet.platforms.sessiondir import remove_tree
from sublet.platforms.tokens import FindToken, TokenSource
from sublet.platforms.told import tell_amounts

GIB = 1 << 30
FRESH = timedelta(minutes=1)
FOLDERS = ("sessions", "running", "news", "trash", "held", "locks", "left")
FORGET = 600.0  # seconds after which every service process has seen a mark in news/


class JupyterPlatform(Platform):
    """What a hub and a single server have in common."""

    terms: ClassVar[Literal["booked", "predicted", "remote"]] = "predicted"
    tells: ClassVar[bool] = True
    url: str = Field(description="Its address, as `https://hub.example.org`, with the path that it is under.")
    token_file: str = Field(
        default="",
        description="A file with its token, which only you can read; default: what `sublet credential add URL --token` "
        "has sealed.",
    )
    token_of: str = Field(
        default="", description="Whose credential for `url` opens it; default: that of the service's own person."
    )
    cores: int = Field(default=1, ge=1, description="How many cores a session has there: Jupyter doesn't tell.")
    memory: Memory = Field(default=GIB, ge=1 << 26, description="How much memory a session has there, as `4GiB`.")
    gpus: int = Field(default=0, ge=0, description="How many GPUs a session has there.")
    at_once: int = Field(default=4, ge=1, description="The most sessions there at a time; others wait.")
    longest: Duration | None = Field(default=None, description="The longest time of a session there; default: any.")
    contained: bool = Field(
        default=False,
        description="Whether sessions there are isolated from each other's files and the service's, as in a hub "
        "whose servers are containers. A gateway requires it.",
    )
    output_limit: Memory = Field(
        default=GIB, ge=1 << 10, description="How much of stdout, and of stderr, is shown of each session."
    )
    _home: Path = PrivateAttr()
    _calls: RestCalls = PrivateAttr()
    _token: TokenSource = PrivateAttr()
    _servers: Servers = PrivateAttr()
    _drivers: Drivers = PrivateAttr()
    _find: FindToken | None = PrivateAttr(default=None)
    _seen: set[str] | None = PrivateAttr(default=None)

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: str) -> str:
        place = urlsplit(url)
        if place.scheme not in ("https", "http") or not place.hostname or place.username or place.query:
            raise ValueError("write an address such as https://hub.example.org, without a user or a query")
        return url.rstrip("/")

    def hold_tokens(self, find: FindToken) -> None:
        """Set the function to call each time the token is needed."""
        self._find = find

    @abstractmethod
    def _make_servers(self, folder: str) -> Servers:
        """Make the object that starts and finds servers, with the sessions' files in this folder."""

    async def open(self, home: Path) -> None:
        """Create the directories, and continue the sessions that are under way."""
        self._home = await asyncio.to_thread(self._make_folders, home)
        self._token = TokenSource(self.name, self.url, self.token_file, self.token_of)
        if self._find:
            self._token.find = self._find
        self._calls = RestCalls(self.name, self.url, self._token, is_own=is_jupyters)
        self._servers = self._make_servers(f"sublet-{self._name_owner()}")
        self._drivers = Drivers(self.name, self._home, self._drive)
        self._drivers.start()

    def _make_folders(self, home: Path) -> Path:
        for name in FOLDERS:
            (home / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in (home / "trash").iterdir():
            remove_tree(path)
        return home.absolute()

    def _name_owner(self) -> str:
        """Return a tag that tells this service's sessions from others' on the same server; it is created once."""
        file = self._home / "owner"
        with suppress(FileExistsError), file.open("x") as opened:
            opened.write(make_owner())
        return file.read_text()

    async def close(self) -> None:
        """Close the connections; running sessions continue."""
        await self._drivers.stop()
        await self._calls.close()

    def _session(self, key: str) -> JupyterSession:
        return JupyterSession(self.name, self._home, key)

    def _drive(self, key: str) -> Drive:
        return Drive(self._session(key), self._servers, self._idle, self._forget)

    @property
    def _idle(self) -> timedelta | None:
        return None

    async def _forget(self, api: ServerApi, person: str) -> None:
        """Remove files of sessions whose server was stopped before that could be done."""
        for mark in list((self._home / "left").iterdir()):
            if mark.read_text() == person:
                await remove_directory(api, mark.name)
                mark.unlink(missing_ok=True)

    # Survey

    async def survey(self) -> Survey:
        """Return the sizes of the settings, if the server answers and accepts the token."""
        tools, sentences = await self._servers.describe()
        tools |= {"contained-servers": "yes"} if self.contained else {}
        node = Node(urlsplit(self.url).hostname or self.name, self.cores, self.memory, self.gpus)
        notes = (*sentences, f"at most {self.at_once} sessions at a time; sizes are those of its settings")
        return Survey(datetime.now(UTC), (node,), tools=tools, notes=notes, good_for=FRESH)

    def unfit(self, request: Request) -> Sequence[Reason]:
        """Return why the request could never run there: it is neither a notebook nor an interactive server."""
        return refuse_kind(request, self.name)

    async def offers(self, request: Request, ways: Sequence[str], now: datetime) -> Answer:
        """Return an offer for when there is room for one more session."""
        waiting = len(os.listdir(self._home / "running"))
        node = Node(self.name, self.cores, self.memory, self.gpus)
        return make_offers(request, ways[0], self.name, node, self.longest, now, is_full=waiting >= self.at_once)

    def write_trial(self, argv: Sequence[str]) -> Program:
        """Return a notebook that does the same as this command line."""
        return write_trial(argv)

    # Jobs

    async def place(self, key: str) -> Path | None:
        """Return the session's local directory; data staged in it is sent to its server."""
        session = self._session(key)
        session.make()
        return session.root

    async def find(self, key: str) -> str | None:
        """Return the key once the session is recorded here: before that, no server is asked for anything."""
        return key if self._session(key).is_submitted else None

    async def submit(self, job: Job, key: str) -> str:
        """Record the session, and start to drive it."""
        session = self._session(key)
        if not session.is_submitted:
            if len(set(os.listdir(self._home / "running")) - {key}) >= self.at_once:
                raise QueueFull(platform=self.name, limit=self.at_once)
            await asyncio.to_thread(self._write_down, job, session)
        self._drivers.take(key)
        return key

    def _write_down(self, job: Job, session: JupyterSession) -> None:
        program = job.program
        if program.argv[:1] not in ((KERNEL,), (HUB,)):
            why = "it runs notebooks and servers to work in, and no programs"
            raise PlatformRefused(platform=self.name, why=why, hint="Ask for another platform, or for a notebook.")
        session.make()
        plan: dict[str, Any] = json.loads(program.files.get(KERNEL_PLAN, b"{}"))
        for name, content in program.files.items():
            if name != KERNEL_PLAN:
                self._bring(session, name, content)
        mounts = [
            {"source": mount.source, "target": mount.target, "read_only": mount.read_only} for mount in job.mounts
        ]
        session.volumes(job.mounts)
        session.hold(
            {
                "parameters": plan.get("parameters", {}),
                "requirements": plan.get("requirements", []),
                "environment": self._tell(job, session.key),
                "connects": program.connects,
                "person": job.person,
                "seconds": max(0.0, (job.until - datetime.now(UTC)).total_seconds()),
                "mounts": mounts,
                "output_limit": self.output_limit,
            }
        )

    def _bring(self, session: JupyterSession, name: str, content: bytes) -> None:
        path = session.root / name
        if ".." in path.parts or not path.is_relative_to(session.root):
            raise PlatformRefused(platform=self.name, why=f"{name!r} is not below the session's directory")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def _tell(self, job: Job, key: str) -> dict[str, str]:
        """Return the environment variables of a notebook, besides those for the paths of its files."""
        return {
            **tell_amounts(job.amounts),
            "SUBLET_SESSION": key,
            "SUBLET_PART": "0",
            "SUBLET_PARTS": "1",
            "SUBLET_UNTIL": job.until.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            **job.program.environment,
        }

    async def ask(self, ids: Sequence[str]) -> Mapping[str, JobState]:
        """Return the states of many jobs at once, by their directories."""
        return await asyncio.to_thread(lambda: {id: self._session(id).state() for id in ids})

    async def news(self) -> Sequence[str] | None:
        """Return the jobs that ended, or can be opened, since the last call; None at first."""
        names = await asyncio.to_thread(self._list_news)
        before, self._seen = self._seen, names
        return None if before is None else sorted({name.rpartition(".")[0] for name in names - before})

    def _list_news(self) -> set[str]:
        for mark in (self._home / "news").iterdir():
            with suppress(FileNotFoundError):
                if datetime.now(UTC).timestamp() - mark.stat().st_ctime > FORGET:
                    mark.unlink()
        return set(os.listdir(self._home / "news"))

    async def cancel(self, ids: Sequence[str], by: str) -> None:
        """Have the jobs' kernels or servers stopped."""
        for id in ids:
            session = self._session(id)
            if session.is_submitted and not session.ended:
                await asyncio.to_thread(session.cancel, by)
                self._drivers.take(id)

    async def extend(self, id: str, until: datetime) -> None:
        """Move the end of a job's time."""
        session = self._session(id)
        if session.is_submitted and not session.ended:
            session.order("until", str(until.timestamp()))

    # Output and results

    async def output(self, key: str, stream: Literal["stdout", "stderr"], offset: int, limit: int) -> bytes:
        """Return part of the cells' output."""
        return await asyncio.to_thread(self._session(key).output, stream, offset, limit)

    async def output_size(self, key: str, stream: Literal["stdout", "stderr"]) -> int:
        """Return the size of the cells' output."""
        return self._session(key).output_size(stream)

    async def results(self, key: str) -> Results:
        """List a session's results; there are none before its end."""
        session = self._session(key)
        return await asyncio.to_thread(session.results) if session.ended else Results()

    def read(self, key: str, path: str, offset: int = 0) -> AsyncIterator[bytes]:
        """Read a result file, from an offset."""
        return self._session(key).pieces(path, offset)

    async def clean(self, key: str) -> None:
        """Remove everything of a session, here and there; raise PlatformRefused if it still runs."""
        session = self._session(key)
        if session.is_submitted and not session.ended:
            raise PlatformRefused(platform=self.name, why="the session still runs", hint="Cancel it first.")
        if not session.is_released:
            await self._drivers.join(key)
        await asyncio.to_thread(session.remove, self._home / "trash")

    async def list_left(self, age: timedelta = timedelta(0)) -> Sequence[str]:
        """List the sessions that have something there and aren't driven here, and start to remove them."""
        there = await self._servers.list_left(age)
        held = {name_session(key) for key in os.listdir(self._home / "held")}
        known = {name_session(key): key for key in os.listdir(self._home / "sessions")}
        left = {known.get(leaving.name, leaving.name): leaving.person for leaving in there if leaving.name not in held}
        for key, person in left.items():
            await asyncio.to_thread(self._adopt, key, person)
        return list(left)

    def _adopt(self, key: str, person: str) -> None:
        """Take over the remains of a crash: record the session as ended, so that its files there are removed."""
        session = self._session(key)
        session.make()
        if not session.is_submitted:
            session.write_job({"person": person, "seconds": 0, "mounts": [], "output_limit": 0})
            session.write("end.json", json.dumps(UNKNOWN_END).encode())
        session.note_server("ready")
        session.held.touch(0o600)


UNKNOWN_END = {"kind": "unknown", "usage": {}, "started": 0, "ended": 0}


class JupyterServer(JupyterPlatform):
    """A single Jupyter Server: notebooks run in kernels of its own."""

    kind: ClassVar[str] = "jupyter"

    def _make_servers(self, folder: str) -> Servers:
        return OneServer(self._calls, folder)


class JupyterHub(JupyterPlatform):
    """A JupyterHub: each session has a server of its own there."""

    kind: ClassVar[str] = "jupyterhub"
    user: str = Field(
        default="",
        description="The hub user who owns the servers; `{person}` is replaced by the person who asks, which needs "
        "a service token. Default: the token's owner.",
    )
    options: dict[str, Any] = Field(
        default_factory=dict,
        description="Options for starting a server, as in the hub's form, such as a profile.",
    )
    named_servers: bool = Field(
        default=True,
        description="Start a server for each session. If off, sessions share the user's only server, each with its "
        "own kernel, and there are no interactive sessions.",
    )
    idle: Duration | None = Field(
        default=None, description="Stop a server after it was unused for this long; default: the hub's own rule."
    )

    @property
    def _idle(self) -> timedelta | None:
        return self.idle

    def _make_servers(self, folder: str) -> Servers:
        return HubServers(self._calls, folder, self.user, self.options, self.named_servers)
