"""Reconciles leases: each ends with its session, none stays unsubmitted, and none runs without pilots."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sublet.annexes.leases import NOTHING_SENT, Leases
from sublet.annexes.model.annex import Lease, Pilot
from sublet.annexes.model.lease_state import SILENT, nodes_of
from sublet.annexes.status import AnnexStatus
from sublet.booking.model.phases import OVER, STARTED, Phase
from sublet.booking.model.session import Session
from sublet.booking.session_endings import SessionEndings
from sublet.booking.signals import Signals
from sublet.kernel.clock import Clock
from sublet.people.model.person import Person
from sublet.store.store import Store
from sublet.store.tx import Tx

EVERY = timedelta(seconds=1)
UNSENT = timedelta(minutes=5)  # how long submitting a lease may take, by this process or another
UNCLAIMED = timedelta(minutes=5)  # how long running nodes may take until a pilot fetches its configuration
GONE = timedelta(seconds=20)  # how long a session may go on after its last pilot has ended


@dataclass
class LeaseWatch:
    """Checks every lease that hasn't ended, at intervals and when the service has started."""

    store: Store
    now: Clock
    signals: Signals
    leases: Leases
    status: AnnexStatus
    endings: SessionEndings

    _began: datetime | None = None  # when this process first checked; it couldn't hear pilots before
    _looked: datetime | None = None
    _listening: dict[str, asyncio.Task[None]] = field(default_factory=dict)  # lease → a check for silence

    async def look_after(self, now: datetime) -> None:
        """Check all leases, if it is time."""
        if self._looked and abs(now - self._looked) < EVERY:
            return
        first, self._looked = self._looked is None, now
        self._began = self._began or now
        for lease in await self.store.read(lambda tx: tx.leases.live()):
            if lease.id not in self.leases.making:
                await self._look_at(lease, now, first=first)

    async def _look_at(self, lease: Lease, now: datetime, *, first: bool) -> None:
        session = await self.leases.session_of(lease)
        if session is None:
            if lease.session:
                await self.leases.end_lease(lease, "its session was forgotten")
            elif first or now - lease.created >= UNSENT:
                await self.leases.end_lease(lease, NOTHING_SENT)
        elif session.phase is Phase.OFFERED and (first or now - lease.created >= UNSENT):
            await self.store.write(
                lambda tx: self.endings.decline(tx, session.id, Phase.CANCELLED, _because("it was not sent"))
            )
            await self.leases.end_lease(lease, NOTHING_SENT)
        elif session.phase in OVER:
            await self.leases.end_with(lease, session)
        elif session.cancel_by:
            pilots = await self.store.read(lambda tx: tx.pilots.list(lease.id))
            if all_gone(pilots, lease.details.amounts.nodes, now):  # its system may be unreachable for a while
                await self.leases.end_lease(lease, lease.why or f"{session.cancel_by} shut it down")
        elif session.phase in STARTED:
            await self._check_pilots(lease, session, now)

    async def _check_pilots(self, lease: Lease, session: Session, now: datetime) -> None:
        """End a lease without pilots, since a multi-node job whose first node died never ends by itself."""
        pilots = await self.store.read(lambda tx: tx.pilots.list(lease.id))
        if why := without_pilots(pilots, session.started or now, now):
            await self._release(lease, session, why)
        elif silent(pilots, self._began or now, now) and lease.id not in self._listening:
            task = asyncio.create_task(self._listen(lease, session, pilots), name=f"lease {lease.id}")
            self._listening[lease.id] = task
            task.add_done_callback(lambda _: self._listening.pop(lease.id, None))

    async def _listen(self, lease: Lease, session: Session, pilots: list[Pilot]) -> None:
        """End a lease whose pilots are silent, if the access point doesn't hear its nodes either."""
        heard = await self.status.hear()
        if heard.slots is None:
            return
        slots = [slot for slot in heard.slots if slot.lease == lease.id]
        if all(node.state in ("dead", "ended") for node in nodes_of(pilots, slots, self.now())):
            await self._release(lease, session, "its nodes no longer report")

    async def _release(self, lease: Lease, session: Session, why: str) -> None:
        """Give back the nodes of a lease that can run no jobs, and record why."""

        def release(tx: Tx) -> None:
            tx.leases.explain(lease.id, why)
            self.endings.cancel(tx, session.id, _because(why))

        await self.store.write(release)
        await self.signals.announce()


def without_pilots(pilots: list[Pilot], started: datetime, now: datetime) -> str:
    """Return why no pilot is left, in the pilots' words if there are any; empty if pilots are, or may be, running."""
    if not pilots:
        return "no pilot reported" if now - started >= UNCLAIMED else ""
    ends = [pilot.ended for pilot in pilots if pilot.ended]
    if len(ends) < len(pilots) or now - max(ends) < GONE:
        return ""
    reasons = dict.fromkeys(pilot.why for pilot in pilots if pilot.why)
    return "; ".join(reasons) or "its pilots were gone"


def all_gone(pilots: list[Pilot], nodes: int, now: datetime) -> bool:
    """Whether every node of a lease had a pilot that reported its end some time ago."""
    ends = [pilot.ended for pilot in pilots if pilot.ended]
    return len(ends) == len(pilots) >= nodes and now - max(ends) >= GONE


def silent(pilots: list[Pilot], began: datetime, now: datetime) -> bool:
    """Whether no pilot that hasn't ended has called for long, although it could have."""
    there = [pilot for pilot in pilots if pilot.ended is None]
    return bool(there) and all(now - max(pilot.seen or pilot.claimed, began) >= SILENT for pilot in there)


def _because(why: str) -> Person:
    return Person(f"sublet, because {why}", operator=True)
