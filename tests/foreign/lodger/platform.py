"""A lodging: plain processes, one directory for each session."""

import asyncio
import shutil
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field, PrivateAttr

from sublet.booking.model.job import Job, JobState, State
from sublet.booking.model.offer import Node
from sublet.booking.model.session import End, EndKind
from sublet.platforms.port import Platform, ResultFile, Results, Survey

GIB = 1 << 30
RUN = 'cd "$1" && shift && "$@" >../stdout 2>../stderr; echo $? >../ended.part && mv ../ended.part ../ended'


class Lodging(Platform):
    """Runs what it is given at once."""

    kind: ClassVar[str] = "lodging"
    terms: ClassVar[Literal["booked", "predicted", "remote"]] = "booked"
    beds: int = Field(default=4, ge=1, description="How many cores it has.")
    _home: Path = PrivateAttr()
    _running: dict[str, subprocess.Popen[bytes]] = PrivateAttr(default_factory=dict)

    async def open(self, home: Path) -> None:
        """Sessions are in its own directory."""
        self._home = home

    async def survey(self) -> Survey:
        """One node, with a stage."""
        return Survey(datetime.now(UTC), (Node("attic", self.beds, 4 * GIB, 0),), tools={"stage": "oak"})

    async def place(self, key: str) -> Path | None:
        """The directory of a session."""
        place = self._home / key
        (place / "work").mkdir(parents=True, exist_ok=True)
        return place

    async def find(self, key: str) -> str | None:
        """Whether it was begun."""
        return key if (self._home / key / "begun").exists() else None

    async def submit(self, job: Job, key: str) -> str:
        """Begin it, once."""
        place = await self.place(key)
        assert place
        if not await self.find(key):
            (place / "begun").touch()
            words = ["sh", "-c", RUN, "lodging", str(place / "work"), *job.program.argv]
            self._running[key] = await asyncio.to_thread(subprocess.Popen, words)
        return key

    async def ask(self, ids: Sequence[str]) -> Mapping[str, JobState]:
        """Whether they have ended."""
        return {id: self._state(id) for id in ids}

    def _state(self, key: str) -> JobState:
        begun, ended = self._home / key / "begun", self._home / key / "ended"
        if not begun.exists():
            return JobState(State.UNKNOWN)
        started = datetime.fromtimestamp(begun.stat().st_mtime, UTC)
        if not ended.exists():
            return JobState(State.RUNNING, started=started)
        if process := self._running.pop(key, None):
            process.wait()
        over = datetime.fromtimestamp(ended.stat().st_mtime, UTC)
        return JobState(State.ENDED, End(EndKind.EXITED, int(ended.read_text())), started, over)

    async def cancel(self, ids: Sequence[str], by: str) -> None:
        """Stop them."""
        for id in ids:
            if process := self._running.get(id):
                process.kill()

    async def extend(self, id: str, until: datetime) -> None:
        """Nobody is ever asked to leave."""

    async def output(self, key: str, stream: Literal["stdout", "stderr"], offset: int, limit: int) -> bytes:
        """What it printed."""
        file = self._home / key / stream
        return file.read_bytes()[offset : offset + limit] if file.exists() else b""

    async def results(self, key: str) -> Results:
        """What it left."""
        work, now = self._home / key / "work", datetime.now(UTC)
        return Results(tuple(ResultFile(file.name, file.stat().st_size, now) for file in work.glob("*.txt")))

    async def read(self, key: str, path: str, offset: int = 0) -> AsyncIterator[bytes]:
        """One of those."""
        yield (self._home / key / "work" / path).read_bytes()[offset:]

    async def clean(self, key: str) -> None:
        """Nothing stays."""
        shutil.rmtree(self._home / key, ignore_errors=True)

    async def left(self, age: timedelta = timedelta(0)) -> Sequence[str]:
        """Nothing is left behind."""
        return ()
