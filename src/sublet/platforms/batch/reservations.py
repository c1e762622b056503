"""Reservations on a system, each under the key of a future session: made once, found again, given up.

reservations/KEY/owner     the service that made it;  id: the scheduler's ID of it
reservations/KEY/await.sh  run by a reservation that is itself a job: it waits for the session, and becomes its job
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

OFTEN = 3600.0  # seconds between two listings on the system: this service knows what it did itself
AWAIT = "await"
LONG_AGO = datetime.min.replace(tzinfo=UTC)  # old enough that nobody waits for its offer to be saved


@dataclass(frozen=True, slots=True)
class ReservationAnswer:
    """The answer to a reservation: its ID, or the scheduler's reason for refusing it."""

    id: str = ""
    refusal: str = ""


@dataclass
class Reservations:
    """The reservations of one service on one system."""

    scheduler: Scheduler
    failures: Failures
    reach: Reach
    guest: GuestDirectory
    made: dict[str, datetime] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)  # used by sessions that were submitted into them
    _listed_at: float = float("-inf")
    _late: set[asyncio.Task[None]] = field(default_factory=set)  # requests still under way that nobody waits for

    async def make_within(self, key: str, words: Sequence[str], limit: timedelta) -> ReservationAnswer | None:
        """Make a reservation; return None if it takes longer than `limit`, and give it up as soon as it exists."""
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
        """Mark reservations as unwanted, so that cleaning up needn't wait for their offers to be saved."""
        self.made |= dict.fromkeys(keys, LONG_AGO)

    def close(self) -> None:
        """Stop waiting for late reservations; the next run of the service finds them on the system."""
        for late in self._late:
            late.cancel()

    async def make(self, key: str, words: Sequence[str]) -> ReservationAnswer:
        """Ask the scheduler to make a reservation."""
        root = await self.guest.root()
        argv = script("reserve", root, self.guest.check_key(key), self.guest.owner, *words, package=self.package)
        self.made[key] = datetime.now(UTC)  # recorded first: if this is interrupted, it is given up like any other
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
        """The package with the scheduler's own shell scripts."""
        return self.scheduler.package

    async def list_made(self) -> Mapping[str, datetime]:
        """Return the reservations that weren't given up, and when each was made; the system is asked rarely."""
        if time.monotonic() - self._listed_at >= OFTEN:
            argv = script("reservations", await self.guest.root(), self.guest.owner)
            ages = await self.reach.run(Command(argv, self.failures.reading(read_ages)))
            self._listed_at = time.monotonic()
            now = datetime.now(UTC)
            self.made |= {key: now - age for key, age in ages.items() if key not in self.made}
        return dict(self.made)

    @property
    def open(self) -> int:
        """How many reservations are held for offers that nobody has accepted."""
        return len(self.made.keys() - self.taken)

    async def give_up(self, keys: Sequence[str]) -> None:
        """Cancel these reservations on the system."""
        argv = script("give_up", await self.guest.root(), *map(self.guest.check_key, keys), package=self.package)
        point("give_up.before")
        await self.reach.run(Command(argv, self.failures.reading(str), seconds=60, calls=len(keys)))
        point("give_up.after")
        for key in keys:
            self.made.pop(key, None)
            self.taken.discard(key)


def read_ages(text: str) -> dict[str, timedelta]:
    """Read each reservation's age from the output of `reservations.sh`: `KEY SECONDS`."""
    lines = [line.split() for line in text.splitlines()]
    return {
        words[0]: timedelta(seconds=int(words[1]))
        for words in lines
        if len(words) == 2 and KEY.fullmatch(words[0]) and words[1].isdecimal()
    }
