"""Reservations on a system, each under the key of the session that may come: made once, found again, given up.

reservations/KEY/owner   the service that made it;  id: what the scheduler calls it
reservations/KEY/await.sh  what a reservation runs that is itself a job: it waits for the session, and becomes its job
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from sublet.kernel.errors import PlatformUnreachable, SubletError
from sublet.kernel.faults import point
from sublet.platforms.batch.commands import read_submitted
from sublet.platforms.batch.failures import Failures
from sublet.platforms.batch.guest import GuestDirectory
from sublet.platforms.batch.scheduler import Scheduler
from sublet.platforms.batch.scripts import read_script, script
from sublet.platforms.batch.submitting import UNSURE
from sublet.platforms.sessiondir import KEY
from sublet.reach.port import Command, Reach, as_is

OFTEN = 3600.0  # seconds between two looks at the system: what this service does itself, it knows
AWAIT = "await"
LONG_AGO = datetime.min.replace(tzinfo=UTC)  # so that nobody waits for its offer to be written down


@dataclass(frozen=True, slots=True)
class ReservationAnswer:
    """What came of asking for one: its number, or the scheduler's words for why not."""

    id: str = ""
    refusal: str = ""


@dataclass
class Reservations:
    """Those of one service on one system."""

    scheduler: Scheduler
    failures: Failures
    reach: Reach
    guest: GuestDirectory
    made: dict[str, datetime] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)  # by sessions that were submitted into them
    _listed_at: float = float("-inf")
    _late: set[asyncio.Task[None]] = field(default_factory=set)  # asked for, and nobody waits for them any more

    async def make_within(self, key: str, words: Sequence[str], limit: timedelta) -> ReservationAnswer | None:
        """Ask the scheduler for one; None if it takes longer, and then it is given up as soon as it is there."""
        asked = asyncio.create_task(self.make(key, words))
        try:
            async with asyncio.timeout(limit.total_seconds()):
                return await asyncio.shield(asked)
        except TimeoutError:
            self._give_up_late(key, asked)
            return None
        except asyncio.CancelledError:
            self._give_up_late(key, asked)
            raise

    def _give_up_late(self, key: str, asked: asyncio.Task[ReservationAnswer]) -> None:
        async def give_up() -> None:
            with contextlib.suppress(SubletError):
                answer = await asked
                if not answer.refusal:
                    self.forsake([key])
                    await self.give_up([key])

        late = asyncio.create_task(give_up())
        self._late.add(late)
        late.add_done_callback(self._late.discard)

    def forsake(self, keys: Sequence[str]) -> None:
        """Nobody wants them: whoever compares them with what is offered need not wait for that to be written down."""
        self.made |= dict.fromkeys(keys, LONG_AGO)

    def close(self) -> None:
        """Let go of those that are still being asked for: whoever opens this next finds them there."""
        for late in self._late:
            late.cancel()

    async def make(self, key: str, words: Sequence[str]) -> ReservationAnswer:
        """Ask the scheduler for one."""
        root = await self.guest.root()
        argv = script("reserve", root, self.guest.check_key(key), self.guest.owner, *words, package=self.package)
        self.made[key] = datetime.now(UTC)  # also if this is cut off: then it is given up like any other
        point("reserve.before")
        outcome = await self.reach.run(Command(argv, as_is, stdin=read_script(AWAIT).encode(), seconds=60, calls=2))
        point("reserve.after")
        if not outcome.code:
            return ReservationAnswer(read_submitted(outcome.text).id)
        failure = self.failures.explain(outcome)
        if outcome.code != UNSURE:
            self.made.pop(key, None)  # it may have been given up meanwhile
        if outcome.code == UNSURE or isinstance(failure, PlatformUnreachable):
            raise PlatformUnreachable(platform=self.failures.platform, why=outcome.complaint)
        return ReservationAnswer(refusal=outcome.complaint)

    @property
    def package(self) -> str:
        """Where the scheduler's own pieces are."""
        return self.scheduler.package

    async def list_made(self) -> Mapping[str, datetime]:
        """Those that were not given up; the system is asked seldom."""
        if time.monotonic() - self._listed_at >= OFTEN:
            argv = script("reservations", await self.guest.root(), self.guest.owner)
            ages = await self.reach.run(Command(argv, self.failures.reading(read_ages)))
            self._listed_at = time.monotonic()
            now = datetime.now(UTC)
            self.made |= {key: now - age for key, age in ages.items() if key not in self.made}
        return dict(self.made)

    @property
    def open(self) -> int:
        """How many are held for offers that nobody has taken."""
        return len(self.made.keys() - self.taken)

    async def give_up(self, keys: Sequence[str]) -> None:
        """Cancel them there."""
        argv = script("give_up", await self.guest.root(), *map(self.guest.check_key, keys), package=self.package)
        point("give_up.before")
        await self.reach.run(Command(argv, self.failures.reading(str), seconds=60, calls=len(keys)))
        point("give_up.after")
        for key in keys:
            self.made.pop(key, None)
            self.taken.discard(key)


def read_ages(text: str) -> dict[str, timedelta]:
    """How long ago each was made, as `reservations.sh` says it: `KEY SECONDS`."""
    lines = [line.split() for line in text.splitlines()]
    return {
        words[0]: timedelta(seconds=int(words[1]))
        for words in lines
        if len(words) == 2 and KEY.fullmatch(words[0]) and words[1].isdecimal()
    }
