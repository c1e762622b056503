"""The state of annexes: recorded facts, with what the access point currently knows about nodes and jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sublet.annexes.access_point import AccessPoints
from sublet.annexes.annexes import Annexes
from sublet.annexes.leases import Leases
from sublet.annexes.model.annex import Annex, Lease, Pilot
from sublet.annexes.model.lease_state import AnnexState, JobCounts, LeaseState, Slots, nodes_of, state_of
from sublet.annexes.model.leasing import queue_of
from sublet.annexes.pilots.access_point import read_access_point
from sublet.annexes.pilots.occupancy import to_jobs, to_occupancy
from sublet.annexes.shrinking import GIVEN_BACK
from sublet.annexes.splits import Splits
from sublet.booking.model.events import Event
from sublet.booking.model.session import Session
from sublet.booking.platforms.systems import find_system
from sublet.kernel.clock import Clock
from sublet.kernel.errors import SubletError
from sublet.kernel.settings import Settings
from sublet.people.model.person import Person
from sublet.reach.local import LocalReach
from sublet.store.store import Store
from sublet.systems.model.allocation import Cost, cost_of
from sublet.systems.model.system import System


@dataclass(frozen=True, slots=True)
class Heard:
    """What the access point reports about nodes and jobs; `trouble` is why it doesn't answer."""

    slots: Sequence[Slots] | None = None
    jobs: Mapping[str, JobCounts] | None = None
    trouble: str = ""
    systems: dict[str, System] = field(default_factory=dict)


@dataclass
class AnnexStatus:
    """Determines the state of annexes."""

    settings: Settings
    store: Store
    now: Clock
    leases: Leases
    splits: Splits
    access_points: AccessPoints
    annexes: Annexes

    async def annex_states(self, person: Person) -> list[AnnexState]:
        """Return all of a person's annexes, with their live leases."""
        annexes = await self.annexes.annexes(person)
        heard = await self.hear()
        return [await self._annex_state(annex, await self._live(annex), heard) for annex in annexes]

    async def annex_state(self, name: str, person: Person) -> AnnexState:
        """Return an annex with its live leases; or with those that a name means, ended or not."""
        annex, leases = await self.annexes.leases(name, person)
        if name == annex.name:
            leases = [lease for lease in leases if lease.ended is None]
        return await self.state_of_leases(annex, leases)

    async def annex_history(self, name: str, person: Person) -> tuple[AnnexState, list[Event]]:
        """Return all leases that a name means, and their events."""
        annex, leases = await self.annexes.leases(name, person)
        ids = [annex.id, *(id for lease in leases for id in (lease.id, lease.session) if id)]
        events = await self.store.read(lambda tx: [event for id in ids for event in tx.events.after(session=id)])
        return await self.state_of_leases(annex, leases), sorted(events, key=lambda event: event.id)

    async def hear(self) -> Heard:
        """Query the access point, if there is one."""
        try:
            if self.access_points.point is None and not await asyncio.to_thread(read_access_point, self.settings.home):
                return Heard(trouble="there is no access point yet; `sublet annex setup` makes one")
            point, here = await self.access_points.access_point(), LocalReach("access point")
            slots, jobs = await asyncio.gather(here.run(to_occupancy(point.gathering)), here.run(to_jobs(point.tools)))
        except SubletError as error:
            return Heard(trouble=error.message)
        return Heard(slots, jobs)

    async def state_of_leases(self, annex: Annex, leases: Sequence[Lease]) -> AnnexState:
        """Return the state of some leases of an annex."""
        return await self._annex_state(annex, leases, await self.hear())

    async def _live(self, annex: Annex) -> list[Lease]:
        leases = await self.store.read(lambda tx: tx.leases.list(annex.id))
        return [lease for lease in leases if lease.ended is None]

    async def _annex_state(self, annex: Annex, leases: Sequence[Lease], heard: Heard) -> AnnexState:
        states = tuple([await self._lease_state(lease, heard) for lease in leases])
        jobs = None if heard.jobs is None else heard.jobs.get(annex.id, JobCounts())
        return AnnexState(annex, states, jobs, heard.trouble)

    async def _lease_state(self, lease: Lease, heard: Heard) -> LeaseState:
        session = await self.leases.session_of(lease)
        pilots = await self.store.read(lambda tx: tx.pilots.list(lease.id))
        slots = None if heard.slots is None else [slot for slot in heard.slots if slot.lease == lease.id]
        nodes = nodes_of(pilots, slots, self.now())
        state, why = state_of(lease, session, nodes)
        if state in ("up", "dead", "starting") and session:
            why = await self.splits.describe_carrying(lease.id, session.offer.platform) or why
        return LeaseState(lease, state, why, session, nodes, await self._cost(lease, session, pilots, heard))

    async def _cost(self, lease: Lease, session: Session | None, pilots: Sequence[Pilot], heard: Heard) -> Cost | None:
        """Return the cost of a lease so far."""
        if session is None:
            return None
        name = lease.details.system
        if name not in heard.systems:
            heard.systems[name] = await asyncio.to_thread(find_system, self.settings, name)
        lasted = average_time(session, pilots, lease.details.amounts.nodes, self.now())
        return cost_of(lease.details, queue_of(lease.details, heard.systems[name]), lasted)


def average_time(session: Session, pilots: Sequence[Pilot], nodes: int, now: datetime) -> timedelta:
    """Return how long a lease has had its nodes, on average; nodes count until they were given back."""
    started = session.started or min((pilot.claimed for pilot in pilots), default=None)  # until its system reports it
    if started is None:
        return timedelta(0)
    end = session.ended or now
    spared = sum(
        (end - pilot.ended for pilot in pilots if pilot.ended and pilot.why == GIVEN_BACK and pilot.ended < end),
        timedelta(0),
    )
    return max(end - started - spared / nodes, timedelta(0))
