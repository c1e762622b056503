"""The package that someone writes for such a system."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import ClassVar, Literal

from sublet.booking.model.job import Job
from sublet.booking.model.session import EndKind
from sublet.platforms.batch.commands import to_move_end
from sublet.platforms.batch.failures import Failures
from sublet.platforms.batch.job import Submission, header_script
from sublet.platforms.batch.reserving_platform import ReservingPlatform
from sublet.platforms.batch.scheduler import Rows, Scheduler
from sublet.platforms.batch.states import QueueRow, StateTable
from sublet.platforms.port import Survey
from sublet.reach.port import Command

JOB = re.compile(r"^\s*(\d+) .*job\.sh \S*/sessions/([0-9a-f-]+)$", re.MULTILINE)
STATES = StateTable("Toy", {"W": "waits"}, {"R": ""}, {"K": (EndKind.CANCELLED, "")})


def read_processes(text: str) -> Rows:
    """The jobs in `ps`."""
    return {key: QueueRow(f"{id}.toy", key, "R", queue="all") for id, key in JOB.findall(text)}


def to_queue(failures: Failures) -> Command[Rows]:
    """The jobs that run."""
    return Command(("ps", "-ww", "-eo", "pid=,args="), failures.reading(read_processes), calls=1)


def to_remember(ids: Sequence[str], keys: Sequence[str]) -> list[Command[Rows]]:
    """It remembers nothing."""
    return []


TOY = Scheduler(
    title="Toy",
    package="tests.toybatch",
    states=STATES,
    away=re.compile("server is away"),
    to_queue=to_queue,
    to_remember=to_remember,
    survey={},
    needed=(),
    can_pause=True,
)


class Toy(ReservingPlatform):
    """A machine with it."""

    kind: ClassVar[str] = "toy"
    scheduler: ClassVar[Scheduler] = TOY
    terms: ClassVar[Literal["booked", "predicted", "remote"]] = "predicted"

    async def survey(self) -> Survey:
        """What there is."""
        await self._look_around()
        return Survey(datetime.now(UTC), (), self._surveyor.disk(), self._surveyor.tools())

    async def submit(self, job: Job, key: str) -> str:
        """Submit with a line for the scheduler in the job's head."""
        time = job.until - datetime.now(UTC)
        queue = job.scheduler.queue
        head = header_script("#TOY", [f"-q {queue}"] if queue else [], await self.session_directory(key))
        words = (f"--{queue}",) if queue else ()
        if job.reservation:
            words = ("--reserved",)
            self.take_reservation(job.reservation)
        amounts = replace(job.amounts, time=time)
        told = Submission(words, amounts, time + timedelta(minutes=1), files={"batch.sh": head})
        return await self.submit_once(job, key, told)

    async def extend(self, id: str, until: datetime) -> None:
        """Nothing but the job's own clock ends it."""
        if await self.must_move_end(id, until):
            await self.reach.run(to_move_end(self.failures, await self.root(), id, round(until.timestamp())))
