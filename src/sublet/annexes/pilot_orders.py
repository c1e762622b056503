"""Orders to pilots, which only the lease's owner can give: release jobs, and end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta

from sublet.annexes.access_point import AccessPoints
from sublet.annexes.model.annex import Pilot
from sublet.annexes.pilots.access_point import AccessPoint
from sublet.annexes.pilots.bundle import master_name, pilot_name
from sublet.annexes.pilots.keys import order_token
from sublet.annexes.pilots.queue import runs_on
from sublet.booking.session_secrets import SessionSecrets
from sublet.booking.signals import Signals
from sublet.kernel.clock import Clock
from sublet.kernel.errors import SubletError
from sublet.kernel.log import log
from sublet.platforms.htcondor.commands import to_queue
from sublet.platforms.htcondor.slots import to_drain, to_drain_no_more, to_stop
from sublet.reach.local import LocalReach
from sublet.store.store import Store

STOPPING = timedelta(seconds=20)  # for pilots to end when ordered; later they learn it at their next request
STOPPING_UNHEARD = timedelta(seconds=5)  # the same, if they can't be reached
VACATING = timedelta(seconds=4)  # for jobs to end after SIGTERM, when their pilots are to end
LETTING_GO = timedelta(seconds=15)  # for pilots to evict the jobs that don't
LOOKING = 0.3  # seconds between checks whether they have


@dataclass
class PilotOrders:
    """Stops pilots."""

    store: Store
    now: Clock
    signals: Signals
    secrets: SessionSecrets
    access_points: AccessPoints

    async def stop_pilots(self, lease: str, numbers: Collection[int] = ()) -> bool:
        """Order a lease's pilots (all, or these) to end at once; return whether they have ended.

        First they release their jobs, while their startds still run and can report it: a job's shadow that finds no
        startd would look for it until the job's lease expires. The access point learns of a pilot's master a moment
        after its slots, so the order to end is repeated.
        """
        is_heard = await self._order(await self._pilots_left(lease, numbers), self._let_go_of_jobs)
        deadline = self.now() + (STOPPING if is_heard else STOPPING_UNHEARD)
        while left := await self._pilots_left(lease, numbers):
            await self._order(left, self._end)
            if self.now() >= deadline:
                return False
            await self.signals.wait(1.0)
        return True

    async def _pilots_left(self, lease: str, numbers: Collection[int]) -> list[Pilot]:
        """Return the lease's pilots, or those of these numbers, that haven't ended."""
        pilots = await self.store.read(lambda tx: tx.pilots.list(lease))
        return [pilot for pilot in pilots if pilot.ended is None and (not numbers or pilot.number in numbers)]

    async def _order(
        self, pilots: Sequence[Pilot], give: Callable[[AccessPoint, Sequence[str]], Awaitable[None]]
    ) -> bool:
        """Give an order to pilots, with the token that each of them requires; return whether it was delivered."""
        names = [pilot_name(pilot.lease, pilot.number) for pilot in pilots]
        try:
            point = await self.access_points.access_point()
            for name, pilot in zip(names, pilots, strict=True):
                point.keep_token(name, order_token(self.secrets.key(), pilot.lease, pilot.number, self.now()))
            try:
                await give(point, [master_name(pilot.lease, pilot.number) for pilot in pilots])
            finally:
                for name in names:
                    point.drop_token(name)
        except SubletError as error:
            log.info("pilots.not-ordered", pilots=names, why=error.message)
            return False
        return True

    async def _end(self, point: AccessPoint, masters: Sequence[str]) -> None:
        """Order all pilots at once, so that a job which leaves one can't start on another that is about to end."""
        await LocalReach("access point").run(to_stop(point.gathering, masters))

    async def _let_go_of_jobs(self, point: AccessPoint, masters: Sequence[str]) -> None:
        """Have pilots take no more jobs and evict their jobs, first gracefully, then by force; wait for that."""
        here = LocalReach("access point")
        await asyncio.gather(*(here.run(to_drain(point.gathering, master)) for master in masters))
        if await self._wait_until_idle(point, masters, VACATING):
            return
        await asyncio.gather(*(here.run(to_drain_no_more(point.gathering, master)) for master in masters))
        await asyncio.gather(*(here.run(to_drain(point.gathering, master, "-fast")) for master in masters))
        await self._wait_until_idle(point, masters, LETTING_GO)

    async def _wait_until_idle(self, point: AccessPoint, masters: Sequence[str], most: timedelta) -> bool:
        """Wait until no job is on these pilots; return whether that happened in time."""
        deadline, active = self.now() + most, to_queue(point.tools, runs_on(masters), ["ClusterId"])
        while True:
            jobs = await LocalReach("access point").run(active)
            if not jobs or self.now() >= deadline:
                return not jobs
            await self.signals.wait(LOOKING)
