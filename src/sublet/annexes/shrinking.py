"""Shrinking of a lease: the pilots of some nodes end, and the nodes are given back to the system."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sublet.annexes.annexes import Annexes
from sublet.annexes.leases import Leases
from sublet.annexes.model.annex import Annex, Lease
from sublet.annexes.pilot_orders import PilotOrders
from sublet.booking.model.events import EventKind
from sublet.booking.platforms.known import KnownPlatforms
from sublet.booking.signals import Signals
from sublet.kernel.clock import Clock
from sublet.kernel.errors import BadRequest, NoLease, NotFound, PlatformRefused, PlatformUnreachable
from sublet.people.model.person import Person
from sublet.store.store import Store
from sublet.store.tx import Tx

GIVEN_BACK = "it was given back"
FIRST = 0  # the node whose pilot starts the others


@dataclass
class Shrinking:
    """Gives back some nodes of a lease, while the others continue."""

    store: Store
    now: Clock
    platforms: KnownPlatforms
    signals: Signals
    leases: Leases
    pilot_orders: PilotOrders
    annexes: Annexes

    async def give_back(self, name: str, numbers: Collection[int], person: Person) -> tuple[Annex, Lease]:
        """End the pilots on these nodes of a lease, so that their jobs are queued again, and give the nodes back."""
        annex, lease = await self._only_lease(name, person)
        pilots = await self.store.read(lambda tx: tx.pilots.list(lease.id))
        there = {pilot.number: pilot.node for pilot in pilots if pilot.ended is None}
        full = f"{annex.name}#{lease.number}"
        for number in numbers:
            if number not in there:
                hint = f"`sublet annex status {full}` lists them."
                raise NotFound(f"{full} has no node {number} that is up.", hint=hint)
        if len(set(numbers)) == len(there):
            raise BadRequest(f"These are all nodes of {full}.", hint=f"sublet annex shutdown {full}")
        if FIRST in numbers:
            raise BadRequest(f"Node {FIRST} of {full} carries the others.", hint="End another one, or the whole lease.")
        session = await self.leases.session_of(lease)
        if session is None:
            raise NoLease(name=full, wanted="runs")
        if not await self.pilot_orders.stop_pilots(lease.id, numbers):
            raise PlatformUnreachable(platform=full, why="not all of these nodes confirmed that they will end")
        try:
            await self.platforms.of(session).give_back(session.job, [there[number] for number in numbers])
        except PlatformRefused as error:
            hint = "They take no jobs any more, but stay with the lease, and are charged, until it ends."
            raise PlatformRefused(error.message, hint=hint) from error
        await self.store.write(lambda tx: _record_given_back(tx, annex, lease, numbers, self.now()))
        await self.signals.announce()
        return annex, lease

    async def _only_lease(self, name: str, person: Person) -> tuple[Annex, Lease]:
        annex, leases = await self.annexes.leases(name, person)
        live = [lease for lease in leases if lease.ended is None]
        if not live:
            raise NoLease(name=name, wanted="runs")
        if len(live) > 1:
            names = ", ".join(f"{annex.name}#{lease.number}" for lease in live)
            raise BadRequest(f"{name} has several leases.", hint=f"Say of which the nodes are: {names}")
        return annex, live[0]


def _record_given_back(tx: Tx, annex: Annex, lease: Lease, numbers: Collection[int], now: datetime) -> None:
    for number in numbers:
        tx.pilots.explain(lease.id, number, GIVEN_BACK)
    nodes = ", ".join(map(str, sorted(numbers)))
    tx.events.add(now, lease.id, annex.person, EventKind.LEASE_SHRUNK, f"without {nodes}")
