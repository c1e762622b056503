"""One rule's trial on a live platform: it runs small jobs under keys of its own, waits, and cleans up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from sublet.booking.model.job import Job, JobState, Program, State
from sublet.booking.model.shape import Amounts, Shape
from sublet.kernel.errors import PlatformUnreachable
from sublet.platforms.port import Platform
from sublet.platforms.trials import WritesTrials

PATIENCE = 60.0  # the default of how many seconds a live platform has for each step
PAUSE = 0.02
MEMORY = 128 << 20


class Broken(Exception):
    """A rule does not hold; the words say what was seen."""


class ConformanceTrial:
    """One rule's trial on one platform: it runs jobs under keys of its own, and cleans up."""

    def __init__(self, platform: Platform, patience: float = PATIENCE) -> None:
        """Prepare a trial without running anything; each wait lasts at most `patience` seconds."""
        self.platform, self.patience = platform, patience
        self.keys: list[str] = []

    def key(self) -> str:
        """Return a new key."""
        self.keys.append(f"check-{uuid4()}")
        return self.keys[-1]

    async def submit(self, *argv: str, seconds: float = 0, code: int = 0, takes: str = "1h") -> str:
        """Submit a small job; `code` and `takes` say how a simulated job exits and how long it takes."""
        return await self.platform.submit(self.job(*argv, seconds=seconds, code=code, takes=takes), self.key())

    def job(self, *argv: str, seconds: float = 0, code: int = 0, takes: str = "1h") -> Job:
        """Make a small job; its time limit is `patience` unless `seconds` is given."""
        plain = Program(argv, environment={"SUBLET_PLAY_TAKES": takes, "SUBLET_PLAY_EXIT": str(code)})
        return Job(
            program=self.platform.write_trial(argv) if isinstance(self.platform, WritesTrials) else plain,
            amounts=Amounts(Shape(1, MEMORY)),
            nodes=(),
            until=datetime.now(UTC) + timedelta(seconds=seconds or self.patience),
            warn=timedelta(0),
        )

    async def state(self, job: str) -> JobState:
        """Ask the platform for a job's state."""
        return (await self.platform.ask([job]))[job]

    async def until(self, what: str, seen: Callable[[], Awaitable[object]]) -> None:
        """Wait until `seen` returns something true; raise Broken after `patience`.

        An unreachable platform is asked again.
        """
        last: object = None
        try:
            async with asyncio.timeout(self.patience):
                while not last or isinstance(last, PlatformUnreachable):
                    try:
                        last = await seen()
                    except PlatformUnreachable as error:
                        last = error
                    await asyncio.sleep(PAUSE)
        except TimeoutError:
            raise Broken(f"waited {self.patience:.0f} s for {what}, and saw {last}") from None

    async def wait_for_start(self, job: str) -> JobState:
        """Wait until a job runs or has already ended, and return its state."""
        return await self._wait_for(job, "start", State.RUNNING, State.ENDED)

    async def wait_for_end(self, job: str) -> JobState:
        """Wait until a job has ended, and return its state."""
        state = await self._wait_for(job, "end", State.ENDED)
        if state.end is None:
            raise Broken("it has ended, and nothing says how")
        return state

    async def _wait_for(self, job: str, what: str, *states: State) -> JobState:
        state = JobState(State.UNKNOWN)

        async def is_so() -> bool:
            nonlocal state
            state = await self.state(job)
            return state.state in states

        await self.until(f"the job's {what}", is_so)
        return state

    async def clean(self) -> None:
        """Stop and remove everything that the trial ran."""
        for key in self.keys:
            if (job := await self.platform.find(key)) is not None:
                await self.platform.cancel([job], "sublet platform check")
                await self.wait_for_end(job)
            await self.remove(key)

    async def remove(self, key: str) -> None:
        """Clean up after one job, once the platform has released everything that it used."""

        async def is_removed() -> bool:
            await self.platform.clean(key)
            return True

        await self.until("it to be gone", is_removed)
