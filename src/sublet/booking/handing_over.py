"""Hand-over: a session that has not begun becomes a colleague's, if both want it and the rules let the colleague."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sublet.booking.model.events import EventKind
from sublet.booking.model.handover import HandOver
from sublet.booking.model.phases import Phase
from sublet.booking.model.refused_moves import refuse_move
from sublet.booking.model.session import OfferSet, Session
from sublet.booking.ports import AcceptReview, Admission, Names
from sublet.booking.session_endings import require_moved, require_session
from sublet.booking.sessions import Sessions
from sublet.booking.signals import Signals
from sublet.kernel.authority import Authority
from sublet.kernel.clock import Clock
from sublet.kernel.db.audit import AuditEntry
from sublet.kernel.errors import BadRequest, NotAllowed, NotFound, NotHandable, NotYours
from sublet.people.model.person import Person
from sublet.store.store import Store
from sublet.store.tx import Tx

UNBEGUN = frozenset({Phase.ACCEPTED, Phase.WAITING})


@dataclass
class HandOvers:
    """Sessions that one person wants to give to another."""

    store: Store
    now: Clock
    authority: Authority
    names: Names
    signals: Signals
    sessions: Sessions
    admissions: Sequence[Admission]
    reviews: Sequence[AcceptReview]

    async def give(self, name: str, person: Person, to: str) -> HandOver:
        """Offer a session of one's own to someone; nothing changes until they take it."""
        self.authority.require_gateway()
        session = await self.sessions.get_to_change(name, person)
        if session.person != person.name:
            raise NotYours(noun="session", hint="Only its owner can give a session away.")
        offerset = await self.sessions.offerset_of(session)
        _check(session, offerset)
        taker = await self.names.find_name(to)
        if taker == person.name:
            raise BadRequest(detail="it is yours already", hint="Name someone else.")
        offered = HandOver(session.id, person.name, taker, self.now())
        await self.store.write(lambda tx: tx.handovers.put(offered))
        return offered

    async def list_own(self, person: Person) -> Sequence[HandOver]:
        """What someone wants to give, or could take."""
        return await self.store.read(lambda tx: tx.handovers.list(person.name))

    async def take(self, name: str, person: Person) -> Session:
        """Make it one's own: rules, quotas and budgets are checked for the taker, who is charged from then on."""
        offered = await self._find(name, person)
        if offered.taker != person.name:
            raise NotYours(noun="session", hint="It is for whoever was named to take it.")
        before = await self.store.read(lambda tx: require_session(tx, offered.session))
        mine = replace(before, person=person.name)
        try:
            for review in self.reviews:
                await review.review("accept", person, mine, mine.offer)
            taken = await self.store.write(lambda tx: self._take(tx, offered))
        except NotAllowed as error:
            for admission in self.admissions:
                await admission.note_refusal("take", person, error, session=offered.session)
            raise
        await self.signals.announce()
        return taken

    async def drop(self, name: str, person: Person) -> None:
        """Withdraw, or decline."""
        offered = await self._find(name, person)
        await self.store.write(lambda tx: tx.handovers.remove(offered.session))

    def _take(self, tx: Tx, offered: HandOver) -> Session:
        now = self.now()
        if tx.handovers.get(offered.session) != offered:
            raise NotFound(noun="hand-over", name=offered.session, hint="It was withdrawn meanwhile.")
        session = require_session(tx, offered.session)
        offerset = tx.offersets.get(session.offerset)
        if offerset is None:
            raise NotFound(noun="offer set", name=session.offerset)
        _check(session, offerset)
        tx.handovers.give_up_claims(session)
        mine = replace(session, person=offered.taker)
        for admission in self.admissions:
            admission.admit(tx, mine, now)
        tx.handovers.hand_over(session, offered.taker)
        detail = {"from": offered.giver}
        tx.audit.add(AuditEntry(now, offered.taker, "session.take", "session", session.id, detail))
        text = f"from {offered.giver} to {offered.taker}"
        for who in (offered.giver, offered.taker):
            tx.events.add(now, session.id, who, EventKind.HANDED_OVER, text, session.phase)
        return require_moved(tx.sessions.get(session.id), session.id)

    async def _find(self, name: str, person: Person) -> HandOver:
        offers = [each for each in await self.list_own(person) if each.session.startswith(name.lower())]
        if len(offers) != 1 or not name:
            raise NotFound(noun="hand-over", name=name, hint="`sublet handover list` lists what you can take or give.")
        return offers[0]


def _check(session: Session, offerset: OfferSet) -> None:
    """Refuse what has begun, and what needs something that is its owner's alone."""
    if session.phase not in UNBEGUN or session.cancel_by:
        raise refuse_move(session.phase, "handed over", session.id)
    request = offerset.request
    needs = {"data": request.data, "outputs": request.outputs, "places": request.places}
    own = [name for name, needed in needs.items() if needed]
    own += ["sessions that it waits for"] if session.offer.after else []
    own += ["an annex"] if session.kind == "pilot" else []
    if own:
        raise NotHandable(session=session.id[:8], what=", ".join(own))
