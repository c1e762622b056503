"""Hand-overs of sessions, and everything that changes owner with them."""

from __future__ import annotations

from sqlalchemy import delete, insert, null, or_, select, update

from sublet.access.store.tables import charges, draws, uses
from sublet.booking.model.handover import HandOver
from sublet.booking.model.session import Session
from sublet.booking.model.timeline import micros, moment
from sublet.booking.store.tables import handovers, offersets, sessions
from sublet.kernel.db.sql import Sql, bind, plain
from sublet.people.store.tables import tokens

H = handovers.c
COLUMNS = (H.session, H.giver, H.taker, H.created)
GET = select(*COLUMNS).where(H.session == bind("of_session"))
OF = select(*COLUMNS).where(or_(H.giver == bind("of_person"), H.taker == bind("of_person"))).order_by(H.created)
ADD = insert(handovers)
REMOVE = delete(handovers).where(H.session == bind("of_session"))


class HandOverStore:
    """Hand-overs, as one transaction sees and changes them."""

    def __init__(self, sql: Sql) -> None:
        """Use this transaction."""
        self._sql = sql

    def put(self, offered: HandOver) -> None:
        """Offer a session to someone, in place of an earlier hand-over."""
        self.remove(offered.session)
        people = {"giver": plain(offered.giver), "taker": plain(offered.taker)}
        self._sql.change(ADD, {"session": offered.session, **people, "created": micros(offered.created)})

    def get(self, session: str) -> HandOver | None:
        """Return the hand-over of a session, or None."""
        row = self._sql.row(GET, {"of_session": session})
        return HandOver(row[0], row[1], row[2], moment(row[3])) if row else None

    def list(self, person: str) -> list[HandOver]:
        """List the hand-overs that a person offers, or could take."""
        rows = self._sql.rows(OF, {"of_person": plain(person)})
        return [HandOver(session, giver, taker, moment(created)) for session, giver, taker, created in rows]

    def remove(self, session: str) -> None:
        """Remove the hand-over of a session."""
        self._sql.change(REMOVE, {"of_session": session})

    def give_up_claims(self, session: Session) -> None:
        """Remove what is counted and charged for a session's owner; it is counted again for the taker."""
        self._sql.modify(delete(draws).where(draws.c.session == session.id))
        self._sql.modify(delete(uses).where(uses.c.session == session.id))
        self._sql.modify(delete(charges).where(charges.c.session == session.id))

    def hand_over(self, session: Session, taker: str) -> None:
        """Make a session and its request someone else's, and delete the tokens that were made for it."""
        self.remove(session.id)
        of_set = offersets.c.id == session.offerset
        self._sql.modify(update(sessions).where(sessions.c.id == session.id).values(person=plain(taker)))
        self._sql.modify(update(offersets).where(of_set).values(person=plain(taker), key=null()))
        self._sql.modify(delete(tokens).where(tokens.c.session == session.id))
