"""Has a service of transfers send a session's results from its system, past this machine and past the login.

Submitted once, watched, and taken up again after a restart: which task sends what is remembered in the service's home.
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

FOLDER = "sent-tasks"  # in the service's home: of each session, the transfers that send its results
PART = ".part"  # what is being sent has this at the end of its name
STARTS = 2  # of a transfer of which the service knows nothing any more


@dataclass(frozen=True, slots=True)
class SentTask:
    """A transfer that sends results."""

    submission: str  # remembered before it is submitted: by it the same transfer is never submitted twice
    task: str = ""  # remembered afterwards


@dataclass
class SentTasks:
    """The transfers that send one session's results."""

    home: Path
    session: str

    @property
    def folder(self) -> Path:
        """Where they are remembered."""
        return self.home / FOLDER / self.session

    def _find_file(self, moves: Sequence[tuple[str, str]]) -> Path:
        return self.folder / f"{hashlib.sha256(json.dumps(moves).encode()).hexdigest()[:32]}.json"

    def read(self, moves: Sequence[tuple[str, str]]) -> SentTask | None:
        """The one that moves this; None: there is none yet."""
        try:
            return SentTask(**json.loads(self._find_file(moves).read_text()))
        except (FileNotFoundError, TypeError, ValueError):
            return None

    def write(self, moves: Sequence[tuple[str, str]], task: SentTask | None) -> None:
        """Remember it; None: it is of no use any more."""
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
    """Have each file moved to its target, which has another name until all are whole; DataNotSent says why not."""
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
    """The task that moves this: the one that was remembered, else a new one."""
    known = await asyncio.to_thread(tasks.read, moves)
    if known is None:
        known = SentTask(await mover.reserve(moves[0][1]))
        await asyncio.to_thread(tasks.write, moves, known)
    if not known.task:
        known = replace(known, task=await mover.submit(moves, known.submission))
        await asyncio.to_thread(tasks.write, moves, known)
    return known.task
