"""Leases: record and submit them, cancel queued ones, and end running ones."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import NAMESPACE_URL, uuid4, uuid5
from weakref import WeakValueDictionary

from sublet.annexes.access_point import AccessPoints
from sublet.annexes.annexes import Annexes, annex_named, whole
from sublet.annexes.lease_plans import LeasePlans, WantedLease
from sublet.annexes.model.annex import Annex, Details, Lease
from sublet.annexes.model.lease_state import PENDING
from sublet.annexes.model.leasing import LeasePlan
from sublet.annexes.model.pilot import MEANING
from sublet.annexes.pilot_claims import Pilots
from sublet.annexes.pilot_orders import PilotOrders
from sublet.annexes.splits import Splits
from sublet.booking.asking import Asking
from sublet.booking.direct import Direct
from sublet.booking.documents.amounts import write_amounts
from sublet.booking.documents.kinds import NODE_COMPUTE
from sublet.booking.model.amounts import duration_iso
from sublet.booking.model.ends import end_sentence
from sublet.booking.model.events import EventKind
from sublet.booking.model.giving_way import Precedence
from sublet.booking.model.phases import OVER, Phase
from sublet.booking.model.session import EndKind, OfferSet, Session
from sublet.booking.model.shape import SIZES
from sublet.booking.platforms.systems import find_system
from sublet.booking.presenter import Presenter
from sublet.booking.sessions import Sessions
from sublet.booking.signals import Signals
from sublet.kernel.clock import Clock
from sublet.kernel.errors import (
    AnnexInUse,
    LeaseRefused,
    LoginNeeded,
    NoLease,
    NotAllowedNow,
    NotFound,
    NotPending,
    SubletError,
)
from sublet.kernel.faults import point
from sublet.kernel.log import log
from sublet.kernel.settings import Settings
from sublet.people.model.person import Person
from sublet.store.store import Store
from sublet.store.tx import Tx

FLAGS = {f"compute.{name}.min": f"--{name}" for name in SIZES} | {"schedule.duration": "--lifetime"}
NOTHING_SENT = "nothing was sent"


@dataclass
class Leases:
    """Makes and ends leases. A lease is a session of kind pilot, and is submitted, polled and ended like any."""

    settings: Settings
    store: Store
    now: Clock
    presenter: Presenter
    signals: Signals
    lease_plans: LeasePlans
    pilots: Pilots
    pilot_orders: PilotOrders
    splits: Splits
    access_points: AccessPoints
    annexes: Annexes
    asking: Asking
    sessions: Sessions
    direct: Direct

    making: set[str] = field(default_factory=set)  # leases that this process is about to submit
    ending: dict[str, str] = field(default_factory=dict)  # leases that are being shut down → by whom
    key_locks: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    async def lease(
        self, name: str, wanted: WantedLease, person: Person, *, more: bool, key: str | None = None
    ) -> tuple[Annex, Lease, Session]:
        """Record a resource request and submit it; without `more`, the annex must not have a live lease.

        A repeated idempotency key returns the lease that was made under it, unless that couldn't be submitted.
        """
        if key is None:
            return await self._make(str(uuid4()), name, wanted, person, more=more)
        request, now = repr((name, wanted, more)), self.now()

        def find(tx: Tx) -> tuple[Lease | None, str]:
            tx.keys.bind(person.name, "lease", key, request, now)
            return _find_made_under(tx, person, key)

        lock = self.key_locks.setdefault(f"{person.name} {key}", asyncio.Lock())
        async with lock:  # of two concurrent calls, the second sees the lease of the first
            lease, id = await self.store.write(find)
            if lease is None:
                return await self._make(id, name, wanted, person, more=more)
        annex, session = await self.store.read(lambda tx: (tx.annexes.get(lease.annex), tx.sessions.get(lease.session)))
        if annex is None or session is None:
            raise NotFound(noun="session", name=lease.session[:8])
        return annex, lease, session

    async def _make(
        self, id: str, name: str, wanted: WantedLease, person: Person, *, more: bool
    ) -> tuple[Annex, Lease, Session]:
        made, _ = await self.lease_plans.plan_lease(name, wanted, person)
        if made.refused:
            raise _refusal(made)
        await self.access_points.access_point(made.details.system)
        self.making.add(id)
        try:
            annex, lease = await self.store.write(lambda tx: self._record(tx, id, name, made.details, person, more))
            log.info("lease.asked", lease=id, annex=annex.id, person=person.name, system=made.details.system)
            point("lease.recorded")
            try:
                session = await self._send(annex, lease, person)
                return annex, replace(lease, session=session.id), session
            except SubletError as error:
                await self.end_lease(lease, f"it was not sent: {error.message}")
                raise
        finally:
            self.making.discard(id)

    def _record(self, tx: Tx, id: str, name: str, details: Details, person: Person, more: bool) -> tuple[Annex, Lease]:
        """Record the lease, and the annex if it is new, in one transaction; of two concurrent calls one fails."""
        now = self.now()
        annex = tx.annexes.find_named(person.name, name)
        if annex is None:
            if more:
                annex_named(tx, whole(name), person)
            annex = Annex(str(uuid4()), person.name, name, now)
            tx.annexes.add(annex)
        live = [lease for lease in tx.leases.list(annex.id) if lease.ended is None]
        if live and not more:
            raise AnnexInUse(name=name, leases=", ".join(f"{name}#{lease.number}" for lease in live))
        lease = Lease(id, annex.id, tx.leases.next_number(annex.id), details, now)
        tx.leases.add(lease)
        tx.events.add(now, id, person.name, EventKind.LEASE_ASKED, f"{name}#{lease.number}")
        return annex, lease

    async def _send(self, annex: Annex, lease: Lease, person: Person) -> Session:
        """Request the nodes and accept an offer; the session's id is recorded before it is accepted."""
        document = self._document(annex, lease)
        text = json.dumps(document)
        asked = await self.asking.understand(document, person, text, "application/json")
        offerset = await self.asking.ask(person, replace(asked, precedence=Precedence(firm=True)))
        point("lease.offered")
        if not offerset.offers:
            raise _no_offers(lease.details.system, offerset)
        session = _choose_offer(offerset.offers).id
        await self.store.write(lambda tx: _record_sent(tx, lease, session))
        point("lease.sent")
        accepted = await self.direct.accept_of(offerset, session, person)
        point("lease.accepted")
        return accepted

    def _document(self, annex: Annex, lease: Lease) -> dict[str, Any]:
        """Return the resource request as a request document; the queue in the scheduler's own terms."""
        details = lease.details
        queue = find_system(self.settings, details.system).find_queue(details.queue)
        words = queue.words if queue else {"partition": details.queue}
        own = details.scheduler
        where = {"queue": words.get("partition"), "qos": own.qos or words.get("qos"), "project": details.project}
        return {
            "executable": {
                "kind": "pilot",
                "name": f"{annex.name}#{lease.number}",
                "lease": lease.id,
                "carry": lease.details.carry or self.splits.usual_carry(lease.details.system),
            },
            "compute": {"kind": NODE_COMPUTE, **write_amounts(details.amounts)},
            "schedule": {"requested": {"duration": duration_iso(details.lifetime)}} if details.lifetime else {},
            "platform": details.system,
            **own.document(),
            **{name: value for name, value in where.items() if value},
        }

    async def end_lease(self, lease: Lease, why: str, at: datetime | None = None) -> bool:
        """Mark a lease and its pilots as ended; return whether it hadn't ended before."""
        now = self.now()

        def end(tx: Tx) -> bool:
            annex = tx.annexes.get(lease.annex)
            if not tx.leases.end(lease.id, at or now, why):
                return False
            for pilot in tx.pilots.list(lease.id):
                tx.pilots.end(lease.id, pilot.number, at or now, "its lease ended")
            tx.events.add(now, lease.id, annex.person if annex else "", EventKind.LEASE_ENDED, why)
            return True

        ended = await self.store.write(end)
        if ended:
            log.info("lease.ended", lease=lease.id, why=why)
            await self.signals.announce()
        return ended

    async def cancel_lease(self, name: str, person: Person) -> tuple[Annex, Sequence[Lease]]:
        """Cancel queued resource requests: one, or all that a name means."""
        annex, leases = await self.annexes.leases(name, person)
        live = [(lease, await self.session_of(lease)) for lease in leases if lease.ended is None]
        begun = await self.store.read(lambda tx: {lease.id for lease, _ in live if tx.pilots.list(lease.id)})
        waiting = [
            (lease, session)
            for lease, session in live
            if session is None or (session.phase in PENDING and lease.id not in begun)
        ]
        if not waiting:
            if live:
                raise NotPending(lease=f"{annex.name}#{live[0][0].number}", state="has started")
            raise NoLease(name=name, wanted="waits")
        for lease, session in waiting:
            await self._give_up(lease, session, person)
        return annex, await self._read_again([lease for lease, _ in waiting])

    async def shutdown(self, name: str, person: Person) -> tuple[Annex, Sequence[Lease]]:
        """End leases, whatever their state: one, or all that a name means."""
        annex, leases = await self.annexes.leases(name, person)
        live = [lease for lease in leases if lease.ended is None]
        if not live:
            raise NoLease(name=name, wanted="runs or waits")
        await asyncio.gather(*(self._shut_down(lease, person) for lease in live))
        return annex, await self._read_again(live)

    async def _shut_down(self, lease: Lease, person: Person) -> None:
        """Order a lease's pilots to end, so that its jobs are queued again at once; then cancel its session."""
        session = await self.session_of(lease)
        if session and session.phase not in OVER:
            self.ending[lease.id] = person.name
            await self.pilot_orders.stop_pilots(lease.id)
            session = await self.session_of(lease)
        await self._give_up(lease, session, person)

    async def _give_up(self, lease: Lease, session: Session | None, person: Person) -> None:
        """Cancel a lease's session; end the lease at once if it has no session, or an ended one."""
        if session and session.phase not in OVER:
            try:
                session = await self.sessions.cancel(session.id, person)
            except NotAllowedNow:  # it ended by itself at this moment
                session = await self.session_of(lease)
        if session is None:
            await self.end_lease(lease, f"it was taken back by {person.name}")
        elif session.phase in OVER:
            await self.end_with(lease, session)

    async def end_with(self, lease: Lease, session: Session) -> bool:
        """End a lease because its session has ended, with the reason that a pilot gave if there is one."""
        words = end_of(session)
        exited = bool(session.end and session.end.kind is EndKind.EXITED)
        who = self.ending.pop(lease.id, session.cancel_by if exited else "")
        if lease.why:  # its nodes were given back because no pilot was left
            words = lease.why
        elif who and (session.started or exited):
            words = f"{who} shut it down"
        elif session.end and exited and (complaint := await self.pilots.last_words(session)):
            words = f"{words}: {complaint}" if session.end.code in MEANING else complaint
        return await self.end_lease(lease, words, session.ended)

    async def lease_name(self, session: str, person: Person) -> str:
        """Return `annex#number` of a session's lease, or an empty string if it isn't a lease."""
        id = (await self.sessions.get(session, person)).id

        def find(tx: Tx) -> str:
            lease = tx.leases.of_session(id)
            annex = tx.annexes.get(lease.annex) if lease else None
            return f"{annex.name}#{lease.number}" if lease and annex else ""

        return await self.store.read(find)

    async def session_of(self, lease: Lease) -> Session | None:
        """Return a lease's session; None before it is submitted, and after the session was purged."""
        if not lease.session:
            return None
        session = await self.store.read(lambda tx: tx.sessions.get(lease.session))
        return self.presenter.with_connectors(session) if session else None

    async def _read_again(self, leases: Sequence[Lease]) -> Sequence[Lease]:
        """Return the same leases in their current state."""
        reread = await self.store.read(lambda tx: [tx.leases.get(lease.id) for lease in leases])
        return [lease for lease in reread if lease]


def end_of(session: Session) -> str:
    """Describe how a lease's session ended; the text is kept after the session is purged."""
    if session.phase in (Phase.EXPIRED, Phase.REJECTED) or (session.end is None and session.started is None):
        return NOTHING_SENT
    if session.end is None:
        return ""
    meaning = MEANING.get(session.end.code or 0) if session.end.kind is EndKind.EXITED else None
    return meaning or end_sentence(session.end)


def _record_sent(tx: Tx, lease: Lease, session: str) -> None:
    """Record a lease's session, unless the lease was cancelled meanwhile."""
    now = tx.leases.get(lease.id)
    if now is None or now.ended:
        raise LeaseRefused(why="it was taken back before it was sent.")
    tx.leases.send(lease.id, session)


def _choose_offer(offers: Sequence[Session]) -> Session:
    """Choose the first offer or, if that reserves nodes for later, the earliest: a lease may start at any time."""
    return min(offers, key=lambda each: each.offer.start) if offers[0].offer.reservation else offers[0]


def _refusal(made: LeasePlan) -> LeaseRefused:
    wrong = [row for row in made.rows if row.state == "error"]
    why = " ".join(row.message or f"{row.field} {row.value} is not possible." for row in wrong)
    nearest = "; ".join(row.nearest for row in wrong if row.nearest)
    return LeaseRefused(why=why, hint=f"Possible: {nearest}." if nearest else "")


def _no_offers(system: str, offerset: OfferSet) -> SubletError:
    """Return the error for a system that made no offers."""
    login = next((reason for reason in offerset.reasons if reason.kind == f"urn:{LoginNeeded().code}"), None)
    if login:
        return LoginNeeded(login.message, hint=login.nearest, platform=system)
    why = " ".join(reason.message for reason in offerset.reasons) or f"{system} offers nothing."
    nearest = [
        f"{FLAGS.get(reason.field, '')} {reason.nearest}".strip() for reason in offerset.reasons if reason.nearest
    ]
    return LeaseRefused(why=why, hint=f"Possible: {'; '.join(dict.fromkeys(nearest))}." if nearest else "")


def _find_made_under(tx: Tx, person: Person, key: str) -> tuple[Lease | None, str]:
    """Return the lease that was made under a key, unless it couldn't be submitted, and the id of the next lease."""
    number = 0
    while True:
        id = str(uuid5(NAMESPACE_URL, f"lease {number} {person.name} {key}"))
        lease = tx.leases.get(id)
        if lease is None or lease.session:
            return lease, id
        number += 1
