"""CANFAR's Skaha as a platform: containers run headless, and JupyterLab as its own notebook sessions.

A session is recorded here before anything is asked of Skaha, and its name there derives from its key; so it is found
again by name after a crash, and never launched twice. Skaha reports no exit codes and transfers no files: only a
program's output comes back, and its files are in the person's own storage there.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import Field, PrivateAttr, field_validator

from sublet.booking.model.job import Job, JobState, State
from sublet.booking.model.kernels import SKAHA, SKAHA_PLAN
from sublet.booking.model.offer import Answer, Node, Reason
from sublet.booking.model.request import Request
from sublet.booking.model.session import Connector, End, EndKind
from sublet.kernel.errors import PlatformRefused
from sublet.platforms.names import make_owner, name_session
from sublet.platforms.port import Duration, Platform, Results, Survey
from sublet.platforms.rest import RestCalls
from sublet.platforms.sessiondir import read_end, remove_tree
from sublet.platforms.skaha.api import SkahaApi
from sublet.platforms.skaha.offers import make_offers, refuse_request
from sublet.platforms.skaha.readers import GB, WELL, SkahaSession, SkahaSizes
from sublet.platforms.skaha.session import SkahaSessionDir
from sublet.platforms.tokens import FindToken, TokenSource

FRESH = timedelta(minutes=1)
RENEW = timedelta(hours=12)  # before it expires there, if its time here goes on
FOLDERS = ("sessions", "running", "news", "trash")
UNTOLD = "Skaha says that it is {status}, and tells no exit code{events}"
GONE = "Skaha does not know it any more, and nobody saw how it ended"


class Skaha(Platform):
    """A science platform that is used through Skaha, as CANFAR's."""

    kind: ClassVar[str] = "skaha"
    terms: ClassVar[Literal["booked", "predicted", "remote"]] = "predicted"
    url: str = Field(
        default="https://ws-uv.canfar.net/skaha/v1", description="The address of its API, with its version."
    )
    token_file: str = Field(
        default="",
        description="A file with its bearer token, which only you can read; default: what `sublet credential add URL "
        "--token` has sealed.",
    )
    token_of: str = Field(
        default="", description="Whose credential for `url` opens it; default: that of the service's own person."
    )
    notebook_image: str = Field(
        default="", description="The default image of JupyterLab sessions; default: the first one available."
    )
    longest: Duration | None = Field(default=None, description="The longest time of a session there; default: any.")
    _home: Path = PrivateAttr()
    _calls: RestCalls = PrivateAttr()
    _api: SkahaApi = PrivateAttr()
    _sizes: SkahaSizes = PrivateAttr(default=SkahaSizes())
    _find: FindToken | None = PrivateAttr(default=None)
    _launching: asyncio.Lock = PrivateAttr(default_factory=asyncio.Lock)

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: str) -> str:
        place = urlsplit(url)
        if place.scheme not in ("https", "http") or not place.hostname or place.username or place.query:
            raise ValueError("write an address such as https://ws-uv.canfar.net/skaha/v1")
        return url.rstrip("/")

    def hold_tokens(self, find: FindToken) -> None:
        """Set the function to call each time the token is needed."""
        self._find = find

    async def open(self, home: Path) -> None:
        """Create the directories."""
        self._home = await asyncio.to_thread(self._make_folders, home)
        token = TokenSource(self.name, self.url, self.token_file, self.token_of)
        if self._find:
            token.find = self._find
        self._calls = RestCalls(self.name, self.url, token, scheme="Bearer")
        self._api = SkahaApi(self._calls)

    def _make_folders(self, home: Path) -> Path:
        for name in FOLDERS:
            (home / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in (home / "trash").iterdir():
            remove_tree(path)
        with suppress(FileExistsError), (home / "owner").open("x") as opened:
            opened.write(make_owner())
        return home.absolute()

    async def close(self) -> None:
        """Close the connections; running sessions continue."""
        await self._calls.close()

    def _session(self, key: str) -> SkahaSessionDir:
        return SkahaSessionDir(self.name, self._home, key)

    def _call_it(self, key: str) -> str:
        """Return the name of a session there."""
        return f"sublet-{(self._home / 'owner').read_text()}-{name_session(key)}"

    # Survey

    async def survey(self) -> Survey:
        """Return what one session may have there."""
        self._sizes = await self._api.read_sizes()
        images = {kind: len(await self._api.list_images(kind)) for kind in ("headless", "notebook")}
        node = Node(
            urlsplit(self.url).hostname or self.name,
            max(self._sizes.cores),
            max(self._sizes.memory) * GB,
            max(self._sizes.gpus, default=0),
        )
        notes = tuple(f"{count} images for {kind} sessions" for kind, count in images.items())
        return Survey(datetime.now(UTC), (node,), tools={SKAHA: self.url}, notes=notes, good_for=FRESH)

    def unfit(self, request: Request) -> Sequence[Reason]:
        """Return why the request could never run there."""
        return refuse_request(request, self.name)

    async def offers(self, request: Request, ways: Sequence[str], now: datetime) -> Answer:
        """Return an offer for the smallest of its sizes that are enough, as soon as there is room."""
        return make_offers(request, ways[0], self.name, self._sizes, self.longest, now)

    # Jobs

    async def place(self, key: str) -> Path | None:
        """Return None, as no data is staged there."""
        return None

    async def find(self, key: str) -> str | None:
        """Return the key if the session was launched, by our record or by its name there."""
        session = self._session(key)
        if not session.is_submitted or not session.is_asked:
            return None
        return key if session.id or await self._find_there(session) else None

    async def _find_there(self, session: SkahaSessionDir) -> bool:
        name = self._call_it(session.key)
        for there in await self._api.list_sessions():
            if there.name == name:
                session.write("id", there.id.encode())
                return True
        return False

    async def submit(self, job: Job, key: str) -> str:
        """Record the session, and launch it once."""
        if job.program.argv[:1] != (SKAHA,):
            raise PlatformRefused(platform=self.name, why="it runs containers and JupyterLab, and no programs")
        session = self._session(key)
        async with self._launching:
            if not session.is_submitted:
                await asyncio.to_thread(self._write_down, job, session)
            if not await self.find(key):
                await self._launch(session)
        return key

    def _write_down(self, job: Job, session: SkahaSessionDir) -> None:
        session.make()
        plan: dict[str, Any] = json.loads(job.program.files[SKAHA_PLAN])
        shape = job.amounts.shape
        seconds = max(0.0, (job.until - datetime.now(UTC)).total_seconds())
        cores, memory, gpus = self._sizes.fit(shape.cores, shape.memory, shape.gpus)
        plan |= {"cores": cores, "ram": memory, "gpus": gpus, "env": {**plan["env"], **job.program.environment}}
        session.running.touch(0o600)
        session.write_job(plan | {"seconds": seconds, "connects": job.program.connects, "output_limit": 1 << 30})

    async def _launch(self, session: SkahaSessionDir) -> None:
        job = session.read_job()
        image = job["image"] or self.notebook_image
        if not image:
            image = next(iter(await self._api.list_images("notebook")), "")
        if not image:
            raise PlatformRefused(platform=self.name, why="it has no image for notebook sessions")
        parameters = [("name", self._call_it(session.key)), ("image", image), ("type", job["type"])]
        parameters += [("cores", str(job["cores"])), ("ram", str(job["ram"]))]
        parameters += [("gpus", str(job["gpus"]))] if job["gpus"] else []
        if job["type"] == "headless":
            parameters += [("cmd", job["cmd"])] if job["cmd"] else []
            parameters += [("args", " ".join(job["args"]))] if job["args"] else []
            parameters += [("env", f"{name}={value}") for name, value in job["env"].items()]
        session.write("asked", b"")
        session.write("id", (await self._api.create(parameters)).encode())

    async def ask(self, ids: Sequence[str]) -> Mapping[str, JobState]:
        """Return the states of many jobs at once, by one list of all sessions."""
        sessions = [self._session(id) for id in ids]
        running = [session for session in sessions if session.is_submitted and not session.ended]
        if running:
            there = {each.id: each for each in await self._api.list_sessions()}
            for session in running:
                await self._look_at(session, there.get(session.id))
        return {session.key: self._state(session) for session in sessions}

    async def _look_at(self, session: SkahaSessionDir, there: SkahaSession | None) -> None:
        """Record what Skaha says of a session.

        Stop it if its time is over, and renew it if it would expire there too early.
        """
        if not session.id:
            return
        if there and there.state is State.RUNNING and not session.began:
            session.note_begin(there.started or datetime.now(UTC))
        by, until, now = session.cancelled_by, session.until, datetime.now(UTC)
        if there is None or there.state is State.ENDED:
            session.judge(end := session.verdict or await self._judge(session, there))
            if there:
                await self._api.remove(there.id)
            session.finish(end)
        elif by is None and until and now >= until:
            await self._keep_output(session)
            session.write("timeout", b"")
            await self._api.remove(there.id)
        elif there.expires and until and there.expires < until and there.expires - now < RENEW:
            await self._api.renew(there.id)
        if there:
            await self._note(session, there)

    async def _note(self, session: SkahaSessionDir, there: SkahaSession) -> None:
        words = there.connect and f"see:{there.connect}"
        if session.read_job().get("connects") and words:
            session.write("connector", words.encode())
        events = await self._api.read_view(there.id, "events") if there.state is State.QUEUED else b""
        lines = events.decode("utf-8", "replace").strip().splitlines()
        session.write("condition", (lines[-1] if lines else "").encode())

    async def _judge(self, session: SkahaSessionDir, there: SkahaSession | None) -> End:
        """Return how a session ended."""
        if there:
            await self._keep_output(session)
        if (session.root / "timeout").exists():
            return End(EndKind.TIMEOUT)
        if (by := session.cancelled_by) is not None:
            return End(EndKind.CANCELLED, by=by)
        if there is None:
            return End(EndKind.UNKNOWN, detail=GONE)
        if there.status in WELL:
            return End(EndKind.EXITED, code=0)
        events = (await self._api.read_view(there.id, "events")).decode("utf-8", "replace").strip().splitlines()
        last = f"; the last event was: {events[-1]}" if events else ""
        return End(EndKind.UNKNOWN, detail=UNTOLD.format(status=there.status, events=last))

    async def _keep_output(self, session: SkahaSessionDir) -> None:
        session.keep_output(await self._api.read_view(session.id, "logs"))

    def _state(self, session: SkahaSessionDir) -> JobState:
        """Return the state of a session by our records."""
        if end := session.read("end.json"):
            return read_end(end)
        if not session.is_submitted:
            return JobState(State.UNKNOWN)
        words = session.read_text("condition")
        if session.began is None:
            return JobState(State.QUEUED, condition=words)
        place, kind = session.read_text("connector"), session.read_job().get("connects")
        connector = Connector(kind, "AVAILABLE", "HTTP", place) if place and kind else None
        return JobState(State.RUNNING, started=session.began, condition=words, connector=connector)

    async def cancel(self, ids: Sequence[str], by: str) -> None:
        """Have Skaha delete these sessions, after saving their output."""
        for id in ids:
            session = self._session(id)
            if session.is_submitted and not session.ended:
                session.cancel(by)
                if session.id or (session.is_asked and await self._find_there(session)):
                    await self._keep_output(session)
                    await self._api.remove(session.id)
                else:
                    session.finish(End(EndKind.CANCELLED, by=by))

    async def extend(self, id: str, until: datetime) -> None:
        """Move the end of a job's time; it is renewed there at the next look."""
        session = self._session(id)
        if session.is_submitted and not session.ended:
            session.order("until", str(until.timestamp()))

    # Output and results

    async def output(self, key: str, stream: Literal["stdout", "stderr"], offset: int, limit: int) -> bytes:
        """Return part of a session's output; Skaha has one log of both streams."""
        session = self._session(key)
        if stream == "stdout" and session.id and not session.ended:
            await self._keep_output(session)
        return session.output(stream, offset, limit)

    async def output_size(self, key: str, stream: Literal["stdout", "stderr"]) -> int:
        """Return how much of a session's output is here."""
        return self._session(key).output_size(stream)

    async def results(self, key: str) -> Results:
        """Return no results, as its files stay in its owner's storage."""
        return Results()

    def read(self, key: str, path: str, offset: int = 0) -> AsyncIterator[bytes]:
        """Read a file from the session's local directory, which has no results."""
        return self._session(key).pieces(path, offset)

    async def clean(self, key: str) -> None:
        """Remove a session; raise PlatformRefused if it still runs."""
        session = self._session(key)
        if session.is_submitted and not session.ended:
            raise PlatformRefused(platform=self.name, why="the session still runs", hint="Cancel it first.")
        for there in await self._api.list_sessions():
            if there.name == self._call_it(key):
                await self._api.remove(there.id)
        await asyncio.to_thread(session.remove, self._home / "trash")

    async def list_left(self, age: timedelta = timedelta(0)) -> Sequence[str]:
        """List the sessions that Skaha has, and that aren't under way here."""
        begin, before = self._call_it("")[:-16], datetime.now(UTC) - age
        known = {name_session(path.name): path.name for path in (self._home / "sessions").iterdir()}
        left = []
        for there in await self._api.list_sessions():
            name = there.name.removeprefix(begin)
            key = known.get(name, name)
            if there.name.startswith(begin) and (not there.started or there.started <= before):
                left += [] if self._is_under_way(key) else [key]
        return left

    def _is_under_way(self, key: str) -> bool:
        session = self._session(key)
        return session.is_submitted and not session.ended
