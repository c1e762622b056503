"""Orders that only their own pilots follow: let go of jobs, and end."""

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

STOPPING = timedelta(seconds=20)  # for pilots to end when their owner stops them; after that they hear it when they ask
STOPPING_UNHEARD = timedelta(seconds=5)  # the same, if they can't be reached
VACATING = timedelta(seconds=4)  # for jobs to end by themselves, from SIGTERM on, when their pilots are to end
LETTING_GO = timedelta(seconds=15)  # for pilots to evict those that don't
LOOKING = 0.3  # seconds between two looks whether they have


@dataclass
class PilotOrders:
    """Stops pilots."""

    store: Store
    now: Clock
    signals: Signals
    secrets: SessionSecrets
    access_points: AccessPoints

    async def stop_pilots(self, lease: str, numbers: Collection[int] = ()) -> bool:
        """Have a lease's pilots (all, or these) end at once, by orders that only they follow; whether they have ended.

        First they let go of their jobs, while their startds are there to tell of it: a job's shadow that finds none
        would look for it until the job's lease is over. A pilot's master is known to the access point a moment after
        its slots, so the order to end is repeated.
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
        """Those of a lease's pilots that have not ended."""
        pilots = await self.store.read(lambda tx: tx.pilots.list(lease))
        return [pilot for pilot in pilots if pilot.ended is None and (not numbers or pilot.number in numbers)]

    async def _order(
        self, pilots: Sequence[Pilot], give: Callable[[AccessPoint, Sequence[str]], Awaitable[None]]
    ) -> bool:
        """Give an order to pilots, with the tokens that each of them asks for; whether they all heard it."""
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
        """Order them together: a job that one lets go of must not start on another that is about to end."""
        await LocalReach("access point").run(to_stop(point.gathering, masters))

    async def _let_go_of_jobs(self, point: AccessPoint, masters: Sequence[str]) -> None:
        """Have pilots take no more jobs and evict those that they have: in order, then by force; until they wait."""
        here = LocalReach("access point")
        await asyncio.gather(*(here.run(to_drain(point.gathering, master)) for master in masters))
        if await self._wait_until_idle(point, masters, VACATING):
            return
        await asyncio.gather(*(here.run(to_drain_no_more(point.gathering, master)) for master in masters))
        await asyncio.gather(*(here.run(to_drain(point.gathering, master, "-fast")) for master in masters))
        await self._wait_until_idle(point, masters, LETTING_GO)

    async def _wait_until_idle(self, point: AccessPoint, masters: Sequence[str], most: timedelta) -> bool:
        """Whether no job is on these pilots, within a time."""
        deadline, active = self.now() + most, to_queue(point.tools, runs_on(masters), ["ClusterId"])
        while True:
            jobs = await LocalReach("access point").run(active)
            if not jobs or self.now() >= deadline:
                return not jobs
            await self.signals.wait(LOOKING)
