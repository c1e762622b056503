"""Makes a session someone else's in one transaction: checked and counted for the new owner, and recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from sublet.booking.model.events import EventKind
from sublet.booking.model.offer import Remote
from sublet.booking.model.phases import Phase
from sublet.booking.model.refused_moves import refuse_move
from sublet.booking.model.request import Request
from sublet.booking.model.session import OfferSet, Session
from sublet.booking.ports import Admission
from sublet.booking.session_endings import require_moved, require_session
from sublet.kernel.db.audit import AuditEntry
from sublet.kernel.errors import NotFound, NotHandable
from sublet.store.tx import Tx

UNBEGUN = frozenset({Phase.ACCEPTED, Phase.WAITING})


def transfer(tx: Tx, id: str, taker: str, admissions: Sequence[Admission], now: datetime) -> Session:
    """Make a session, and its seat of a booking, the taker's, if rules, quotas and budgets allow it."""
    session = require_session(tx, id)
    offerset = tx.offersets.get(session.offerset)
    if offerset is None:
        raise NotFound(noun="offer set", name=session.offerset)
    check_transferable(session, offerset)
    giver = session.person
    tx.handovers.give_up_claims(session)
    theirs = replace(session, person=taker)
    for admission in admissions:
        admission.admit(tx, theirs, now)
    tx.handovers.hand_over(session, taker)
    tx.series.note_taker(giver, session.id, taker)
    tx.audit.add(AuditEntry(now, taker, "session.take", "session", session.id, {"from": giver}))
    for who in (giver, taker):
        tx.events.add(now, session.id, who, EventKind.HANDED_OVER, f"from {giver} to {taker}", session.phase)
    return require_moved(tx.sessions.get(session.id), session.id)


def check_transferable(session: Session, offerset: OfferSet) -> None:
    """Refuse a session that has begun, or that needs something of its owner's alone."""
    if session.phase not in UNBEGUN or session.cancel_by:
        raise refuse_move(session.phase, "handed over", session.id)
    own = list_own_needs(offerset.request)
    own += ["sessions that it waits for"] if session.offer.after else []
    own += ["an annex"] if session.kind == "pilot" else []
    own += ["the offer of another broker"] if isinstance(session.offer.terms, Remote) else []
    if own:
        raise NotHandable(session=session.id[:8], what=", ".join(own))


def list_own_needs(request: Request) -> list[str]:
    """Return the parts of a request that only its owner may use."""
    needs = {"data": request.data, "outputs": request.outputs, "places": request.places}
    return [name for name, needed in needs.items() if needed]
