"""More time for a session at another broker: charged here, granted there, and recorded here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sublet.booking.keyed_acts import KeyedAct
from sublet.booking.model.events import EventKind
from sublet.booking.model.limits import drop_unaffordable
from sublet.booking.model.marks import Mark, set_condition
from sublet.booking.model.offer import Answer, Offer, Quote
from sublet.booking.model.phases import GOING_ON, OVER
from sublet.booking.model.refused_moves import refuse_move
from sublet.booking.model.session import Session
from sublet.booking.model.starts import instant
from sublet.booking.platforms.known import KnownPlatforms
from sublet.booking.ports import AcceptReview, Admission
from sublet.booking.recorded_clock import read_recorded_now
from sublet.booking.session_endings import require_moved, require_session, write_down
from sublet.booking.signals import Signals
from sublet.kernel.clock import Clock
from sublet.kernel.errors import BadRequest, NotAllowed, OverCostLimit, SubletError
from sublet.kernel.faults import point
from sublet.kernel.log import log
from sublet.people.model.person import Person
from sublet.platforms.brokering import PassesOn
from sublet.store.store import Store
from sublet.store.tx import Tx


@dataclass
class Lengthening:
    """Extends sessions at other brokers.

    The extra time is charged before the other broker is asked, and refunded if that broker refuses, so that nobody
    gets more time than they may have. If the service is killed in between, the loop records the end that the other
    broker reports.
    """

    store: Store
    now: Clock
    platforms: KnownPlatforms
    signals: Signals
    admissions: Sequence[Admission]
    reviews: Sequence[AcceptReview] = ()

    async def extend(
        self,
        session: Session,
        person: Person,
        until: datetime | None = None,
        by: timedelta | None = None,
        keyed: KeyedAct | None = None,
    ) -> Session:
        """Move the end of a session's time, at its broker and here."""
        offer = self._plan(session, until, by)
        try:
            for review in self.reviews:
                await review.review("extend", person, session, offer)
            changed = await self._lengthen(session, offer, person, keyed)
        except NotAllowed as error:
            for admission in self.admissions:
                await admission.note_refusal("extend", person, error, session=session.id)
            raise
        await self.signals.announce()
        return changed

    def _plan(self, session: Session, until: datetime | None, by: timedelta | None) -> Offer:
        """Return the session's offer with the new end; raise BadRequest if that is no later than the present end."""
        if session.phase not in GOING_ON:
            raise refuse_move(session.phase, "extended", session.id)
        offer, end = session.offer, find_end(session)
        longer = by if by is not None else (until or end) - end
        if longer <= timedelta(0):
            raise BadRequest(detail=f"the new end must be after the present one, {instant(end)}")
        duration = find_length(session) + longer
        share = duration / offer.duration
        return replace(
            offer,
            duration=duration,
            costs=_scale(offer.costs, share),
            compute_costs=_scale(offer.compute_costs, share),
            storage_costs={name: _scale(costs, share) for name, costs in offer.storage_costs.items()},
        )

    async def _lengthen(self, session: Session, offer: Offer, person: Person, keyed: KeyedAct | None) -> Session:
        """Extend a session at its broker to the duration of this offer, and record it."""
        broker = self.platforms.of(session)
        if not isinstance(broker, PassesOn):
            raise TypeError(f"{session.offer.platform} is no broker")
        await self.store.write(lambda tx: self._charge(tx, session.id, offer))
        point("lengthen.before")
        try:
            costs = await broker.lengthen(session.id, offer.duration)
        except SubletError:
            await self._give_back(session)
            raise
        point("lengthen.after")
        final = replace(offer, costs=costs) if costs else offer
        return await self.store.write(lambda tx: self._record(tx, session, final, person, keyed))

    def _charge(self, tx: Tx, id: str, offer: Offer) -> None:
        session = require_session(tx, id)
        if session.phase in OVER:
            raise refuse_move(session.phase, "extended", id)
        offerset = tx.offersets.get(session.offerset)
        dear = drop_unaffordable(Answer((offer,)), offerset.request, offer.platform).reasons if offerset else ()
        if dear:
            end = find_end(session) + offer.duration - find_length(session)
            raise OverCostLimit(until=instant(end), why=dear[0].message)
        for admission in self.admissions:
            admission.admit_longer(tx, session, offer, read_recorded_now(tx, self.now()))

    async def _give_back(self, session: Session) -> None:
        """Charge the session's previous amount again; if that is refused, the higher charge stays."""
        try:
            await self.store.write(lambda tx: self._charge(tx, session.id, session.offer))
        except SubletError as error:
            level = log.info if isinstance(error, NotAllowed) else log.warning
            level("session.charge_kept", session=session.id, why=error.message)

    def _record(self, tx: Tx, before: Session, offer: Offer, person: Person, keyed: KeyedAct | None) -> Session:
        now, session = read_recorded_now(tx, self.now()), require_session(tx, before.id)
        if keyed and not keyed.note(tx, now):
            return session
        until = find_end(before) + (offer.duration - find_length(before))
        write_down(tx, now, person, "extend", session)
        tx.events.add(now, session.id, session.person, EventKind.EXTENDED, f"until {instant(until)}", session.phase)
        changes = set_condition("", session.marks - {Mark.WARNED})
        end = until if session.until else None  # before it runs, nobody knows when its time ends
        changed = tx.sessions.change(session.id, now=now, until=end, offer=offer, due=now, **changes)
        return require_moved(changed, session.id)


def find_end(session: Session) -> datetime:
    """Return when a session's time ends, as far as is known."""
    return session.until or (session.started or session.start or session.offer.start) + session.offer.duration


def find_length(session: Session) -> timedelta:
    """Return a session's total duration, as its broker last reported it or, before it runs, as it was offered."""
    return session.until - session.started if session.until and session.started else session.offer.duration


def _scale(costs: Sequence[Quote], share: float) -> tuple[Quote, ...]:
    return tuple(replace(quote, min=quote.min * share, max=quote.max * share) for quote in costs)
