"""A site that fetches resource requests itself: they are kept here until its own operator takes them.

Nobody signs in there. In the platform's own directory, each request has a directory:

    requests/KEY/job.json    how many nodes, of which size, for how long
    requests/KEY/files.tar   its files
    requests/KEY/taken       who took it (a digest);  began: something of it runs;  ended.json: how it ended
    requests/KEY/cancelled   who cancelled it
"""

from __future__ import annotations

import asyncio
import io
import json
import shutil
import tarfile
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import PrivateAttr

from sublet.booking.model.job import Job, JobState, State
from sublet.booking.model.offer import Answer, Offer, Predicted, Reason
from sublet.booking.model.request import Request
from sublet.booking.model.session import End, EndKind
from sublet.booking.model.shape import Amounts, Shape
from sublet.kernel.errors import NotFound, PlatformRefused
from sublet.platforms.port import Platform, Results, Survey
from sublet.platforms.sessiondir import KEY

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class InvitedRequest:
    """A request that nobody has taken yet."""

    key: str
    amounts: Amounts

    @property
    def line(self) -> str:
        """The request as the site reads it."""
        return " ".join(map(str, (self.key, *write_for_site(self.amounts).values())))


def write_for_site(amounts: Amounts) -> dict[str, int]:
    """Write amounts for a site, in this order: memory in MiB per node, time in seconds."""
    mib, seconds = -(-amounts.shape.memory // MIB), max(1, round(amounts.time.total_seconds()))
    each = amounts.shape
    return {"nodes": amounts.nodes, "cores": each.cores, "memory": mib, "gpus": each.gpus, "seconds": seconds}


def read_for_site(numbers: Mapping[str, int]) -> Amounts:
    """Read amounts that were written for a site."""
    shape = Shape(numbers["cores"], numbers["memory"] * MIB, numbers["gpus"])
    return Amounts(shape, numbers["nodes"], timedelta(seconds=numbers["seconds"]))


class Invited(Platform):
    """A site whose operator answers requests for leases."""

    kind: ClassVar[str] = "invited"
    terms: ClassVar[Literal["predicted"]] = "predicted"
    has_queues: ClassVar[bool] = True
    _home: Path = PrivateAttr()

    async def open(self, home: Path) -> None:
        """Set and create the directory of the requests."""
        self._home = home / "requests"
        self._home.mkdir(mode=0o700, parents=True, exist_ok=True)

    async def survey(self) -> Survey:
        """Return an empty survey, as the site doesn't say what it has."""
        return Survey(datetime.now(UTC), ())

    async def offers(self, request: Request, ways: Sequence[str], now: datetime) -> Answer:
        """Return an offer for a lease, which starts as soon as the site takes it."""
        if request.executable is None or request.executable.kind != "pilot":
            why = f"{self.name} takes requests for leases, and nothing else."
            return Answer(reasons=(Reason("urn:not-supported", "executable.kind", why, platform=self.name),))
        wanted = request.compute
        offer = Offer(
            platform=self.name,
            way=ways[0],
            start=now,
            latest_start=now,
            duration=request.duration,
            nodes=(),
            shape=wanted.least,
            terms=Predicted(p10=now, p50=now, p90=now, samples=0, as_of=now),
            why=f"when {self.name} takes it",
            count=wanted.nodes.min,
        )
        return Answer(offers=(offer,))

    # Requests

    async def place(self, key: str) -> Path | None:
        """Return None, as no data is staged."""
        return None

    async def find(self, key: str) -> str | None:
        """Return the key if the request exists."""
        return key if self._of(key).is_dir() else None

    async def submit(self, job: Job, key: str) -> str:
        """Write a request for the site to take."""
        await asyncio.to_thread(self._lay_down, job, self._of(key))
        return key

    def _lay_down(self, job: Job, place: Path) -> None:
        part = place.with_name(f".{place.name}")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(mode=0o700)
        amounts = replace(job.amounts, time=job.until - datetime.now(UTC))
        (part / "job.json").write_text(json.dumps(write_for_site(amounts)))
        (part / "files.tar").touch(mode=0o600)
        (part / "files.tar").write_bytes(pack(job.program.files))
        if not place.exists():
            part.rename(place)

    def _of(self, key: str) -> Path:
        if not KEY.fullmatch(key):
            raise PlatformRefused(platform=self.name, why=f"{key!r} can't be the name of a request")
        return self._home / key

    async def ask(self, ids: Sequence[str]) -> Mapping[str, JobState]:
        """Return the states of requests, as far as the site has reported."""
        return await asyncio.to_thread(lambda: {id: self._state(id) for id in ids})

    def _state(self, id: str) -> JobState:
        place = self._of(id)
        if not place.is_dir():
            return JobState(State.UNKNOWN)
        began = place / "began"
        started = datetime.fromtimestamp(began.stat().st_mtime, UTC) if began.exists() else None
        if (place / "ended.json").exists():
            record = json.loads((place / "ended.json").read_text())
            when = datetime.fromtimestamp(record["at"], UTC)
            return JobState(State.ENDED, End(EndKind.EXITED, code=record["code"]), started=started, ended=when)
        if (place / "cancelled").exists():
            return JobState(State.ENDED, End(EndKind.CANCELLED, by=(place / "cancelled").read_text()), started=started)
        if started:
            return JobState(State.RUNNING, started=started)
        taken = (place / "taken").exists()
        return JobState(State.QUEUED, condition=f"{self.name} has taken it" if taken else f"waits for {self.name}")

    async def cancel(self, ids: Sequence[str], by: str) -> None:
        """Withdraw requests; running pilots notice it when they next ask."""
        for id in ids:
            if self._of(id).is_dir() and not (self._of(id) / "cancelled").exists():
                (self._of(id) / "cancelled").write_text(by)

    async def extend(self, id: str, until: datetime) -> None:
        """Do nothing, as the site decides on the time."""

    async def output(self, key: str, stream: Literal["stdout", "stderr"], offset: int, limit: int) -> bytes:
        """Return what the site reported about the end."""
        file = self._of(key) / stream
        return (await asyncio.to_thread(file.read_bytes))[offset : offset + limit] if file.exists() else b""

    async def results(self, key: str) -> Results:
        """Return no results, as nothing comes from there."""
        return Results()

    async def read(self, key: str, path: str, offset: int = 0) -> AsyncIterator[bytes]:
        """Raise NotFound, as nothing comes from there."""
        raise NotFound(noun="result", name=path)
        yield b""

    async def clean(self, key: str) -> None:
        """Remove a request."""
        await asyncio.to_thread(shutil.rmtree, self._of(key), ignore_errors=True)

    # Called by the site

    def list_wanted(self) -> list[InvitedRequest]:
        """List the requests that nobody has taken yet, the oldest first."""
        requests = []
        for place in sorted(self._home.glob("[!.]*"), key=lambda path: path.stat().st_mtime):
            if self._state(place.name).state is State.QUEUED and not (place / "taken").exists():
                amounts = read_for_site(json.loads((place / "job.json").read_text()))
                requests.append(InvitedRequest(place.name, amounts))
        return requests

    def take(self, key: str, who: str) -> bytes:
        """Give a request to the first who asks, and again to the same one; return its files, as a tar."""
        place = self._of(key)
        if not place.is_dir() or self._state(key).state is State.ENDED:
            raise PlatformRefused(platform=self.name, why="there is no such request, or not any more")
        try:
            with (place / "taken").open("x") as file:
                file.write(who)
        except FileExistsError:
            if (place / "taken").read_text() != who:
                raise PlatformRefused(platform=self.name, why="it was taken already") from None
        return (place / "files.tar").read_bytes()

    def began(self, key: str) -> None:
        """Record that something of the request runs."""
        if self._of(key).is_dir():
            (self._of(key) / "began").touch()

    def note_end(self, key: str, code: int, words: str) -> None:
        """Record the end of the request."""
        place = self._of(key)
        if place.is_dir() and not (place / "ended.json").exists():
            (place / "stderr").write_text(words)
            part = place / "ended.part"
            part.write_text(json.dumps({"code": code, "at": datetime.now(UTC).timestamp()}))
            part.rename(place / "ended.json")


def pack(files: Mapping[str, bytes]) -> bytes:
    """Pack files into a tar, readable only by their owner."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o600
            archive.addfile(entry, io.BytesIO(content))
    return made.getvalue()
