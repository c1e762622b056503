"""Hand-over of a session that has not begun to another person, if both agree and the rules allow it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sublet.booking.model.handover import HandOver
from sublet.booking.model.session import Session
from sublet.booking.ports import AcceptReview, Admission, Names
from sublet.booking.session_endings import require_session
from sublet.booking.sessions import Sessions
from sublet.booking.signals import Signals
from sublet.booking.transfer import check_transferable, transfer
from sublet.kernel.authority import Authority
from sublet.kernel.clock import Clock
from sublet.kernel.errors import BadRequest, NotAllowed, NotFound, NotYours
from sublet.people.model.person import Person
from sublet.store.store import Store
from sublet.store.tx import Tx


@dataclass
class HandOvers:
    """Hand-overs of sessions from one person to another."""

    store: Store
    now: Clock
    authority: Authority
    names: Names
    signals: Signals
    sessions: Sessions
    admissions: Sequence[Admission]
    reviews: Sequence[AcceptReview]

    async def give(self, name: str, person: Person, to: str) -> HandOver:
        """Offer one of the person's own sessions to someone; nothing changes until they take it."""
        self.authority.require_gateway()
        session = await self.sessions.get_to_change(name, person)
        if session.person != person.name:
            raise NotYours(noun="session", hint="Only its owner can give a session away.")
        offerset = await self.sessions.offerset_of(session)
        check_transferable(session, offerset)
        taker = await self.names.find_name(to)
        if taker == person.name:
            raise BadRequest(detail="it is yours already", hint="Name someone else.")
        offered = HandOver(session.id, person.name, taker, self.now())
        await self.store.write(lambda tx: tx.handovers.put(offered))
        return offered

    async def list_own(self, person: Person) -> Sequence[HandOver]:
        """List the hand-overs that a person offers or could take."""
        return await self.store.read(lambda tx: tx.handovers.list(person.name))

    async def take(self, name: str, person: Person) -> Session:
        """Take over a session: rules, quotas and budgets are checked for the taker, who is charged from then on."""
        offered = await self._find(name, person)
        if offered.taker != person.name:
            raise NotYours(noun="session", hint="Only the person it is offered to can take it.")
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
        """Withdraw or decline a hand-over."""
        offered = await self._find(name, person)
        await self.store.write(lambda tx: tx.handovers.remove(offered.session))

    def _take(self, tx: Tx, offered: HandOver) -> Session:
        now = self.now()
        if tx.handovers.get(offered.session) != offered:
            raise NotFound(noun="hand-over", name=offered.session, hint="It has been withdrawn.")
        return transfer(tx, offered.session, offered.taker, self.admissions, now)

    async def _find(self, name: str, person: Person) -> HandOver:
        offers = [each for each in await self.list_own(person) if each.session.startswith(name.lower())]
        if len(offers) != 1 or not name:
            raise NotFound(noun="hand-over", name=name, hint="`sublet handover list` lists what you can take or give.")
        return offers[0]
