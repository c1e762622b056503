"""Has a transfer service send a session's results directly from its system.

Each transfer is submitted once, polled, and resumed after a restart: the service's home records which task sends what.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from sublet.booking.model.request import Data
from sublet.data.tasks import watch_task
from sublet.kernel.errors import DataNotSent, DataNotThere
from sublet.kernel.faults import point
from sublet.movers.port import SIMPLE, Progress, TransferPhase, TransferService

FOLDER = "sent-tasks"  # in the service's home: the transfers that send each session's results
PART = ".part"  # suffix of files that are still being sent
STARTS = 2  # attempts with a transfer that its service has lost


@dataclass(frozen=True, slots=True)
class SentTask:
    """A transfer that sends results."""

    submission: str  # an idempotency key, saved before submission so that the transfer is never submitted twice
    task: str = ""  # saved after submission


@dataclass
class SentTasks:
    """The transfers that send one session's results."""

    home: Path
    session: str

    @property
    def folder(self) -> Path:
        """The directory that holds their records."""
        return self.home / FOLDER / self.session

    def _find_file(self, moves: Sequence[tuple[str, str]]) -> Path:
        return self.folder / f"{hashlib.sha256(json.dumps(moves).encode()).hexdigest()[:32]}.json"

    def read(self, moves: Sequence[tuple[str, str]]) -> SentTask | None:
        """Return the recorded transfer of these files, or None."""
        try:
            return SentTask(**json.loads(self._find_file(moves).read_text()))
        except (FileNotFoundError, TypeError, ValueError):
            return None

    def write(self, moves: Sequence[tuple[str, str]], task: SentTask | None) -> None:
        """Record the transfer of these files, or remove its record (None)."""
        file = self._find_file(moves)
        if task is None:
            file.unlink(missing_ok=True)
            return
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = file.with_suffix(".part")
        part.write_text(json.dumps(asdict(task)))
        part.replace(file)


async def send_by_service(
    tasks: SentTasks, mover: TransferService, moves: Sequence[tuple[str, str]], size: int, progress: Progress
) -> None:
    """Have the service send each file under a temporary name, and rename them when all are there; raise DataNotSent."""
    parts = [(source, f"{target}{PART}") for source, target in moves]
    data = Data("", SIMPLE, moves[0][1], size=size)
    try:
        for _ in range(STARTS):
            task = await _find_task(tasks, mover, parts)
            state = await watch_task(mover, data, task, lambda seen: progress(seen.done, size))
            if state.phase is not TransferPhase.UNKNOWN:
                break
            await asyncio.to_thread(tasks.write, parts, None)
        if state.phase is not TransferPhase.DONE:
            await mover.stop(data.location, task)
            await asyncio.to_thread(tasks.write, parts, None)
            raise DataNotSent(name=f"{len(moves)} files", location=moves[0][1], why=state.why)
        point("send.between")
        for (_, part), (_, target) in zip(parts, moves, strict=True):
            await mover.rename(part, target)
    except DataNotThere as error:
        why = str(error.values.get("why", error.clause))
        raise DataNotSent(name=f"{len(moves)} files", location=moves[0][1], why=why) from error


async def _find_task(tasks: SentTasks, mover: TransferService, moves: Sequence[tuple[str, str]]) -> str:
    """Return the task that moves these files: the recorded one, or a new one."""
    known = await asyncio.to_thread(tasks.read, moves)
    if known is None:
        known = SentTask(await mover.reserve(moves[0][1]))
        await asyncio.to_thread(tasks.write, moves, known)
    if not known.task:
        known = replace(known, task=await mover.submit(moves, known.submission))
        await asyncio.to_thread(tasks.write, moves, known)
    return known.task
