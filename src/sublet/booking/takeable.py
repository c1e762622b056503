"""Checks whether an offer can still be accepted."""

from __future__ import annotations

from datetime import datetime

from sublet.booking.model.phases import Phase
from sublet.booking.model.refused_moves import refuse_move
from sublet.booking.model.session import EndKind, Session
from sublet.booking.model.starts import instant
from sublet.kernel.errors import OfferExpired, OfferGaveWay, PlatformDraining
from sublet.store.tx import Tx


def refuse_untakeable(tx: Tx, session: Session, now: datetime) -> None:
    """Raise the reason why an offer can't be accepted any more, or not now; return if it can."""
    if session.phase is Phase.EXPIRED or (session.phase is Phase.OFFERED and session.expires <= now):
        raise OfferExpired(expires=instant(session.expires))
    if session.end and session.end.kind is EndKind.GAVE_WAY:
        raise OfferGaveWay(offerset=session.end.detail[:8] or "to another broker")
    if session.phase is not Phase.OFFERED:
        raise refuse_move(session.phase, Phase.ACCEPTED, session.id)
    if drain := tx.drains.get(session.offer.platform, now):
        raise PlatformDraining(why=drain.sentence)
