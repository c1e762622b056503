"""Declining offers and cancelling sessions, inside the caller's transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sublet.booking.holds import list_held_platforms
from sublet.booking.model.events import EventKind, kind_of_move
from sublet.booking.model.holds import hold_of
from sublet.booking.model.marks import set_condition
from sublet.booking.model.phases import ENDING, OVER, Phase
from sublet.booking.model.refused_moves import refuse_move
from sublet.booking.model.session import End, EndKind, Session
from sublet.booking.recorded_clock import read_recorded_now
from sublet.booking.signals import Signals
from sublet.kernel.clock import Clock
from sublet.kernel.db.audit import AuditEntry
from sublet.kernel.errors import NotFound
from sublet.people.model.person import Person
from sublet.store.tx import Tx


@dataclass
class SessionEndings:
    """Ends sessions for their owners, operators, drains, reviewers, and leases that are over."""

    now: Clock
    signals: Signals

    def decline(self, tx: Tx, id: str, to: Phase, person: Person, reason: str = "") -> Session:
        """Reject or cancel an offer, as `to` says; what is held shrinks to what its siblings need."""
        now = read_recorded_now(tx, self.now())
        session = require_session(tx, id)
        if session.phase is to:
            return session
        if session.phase is not Phase.OFFERED:
            raise refuse_move(session.phase, to, id)
        siblings = tx.sessions.of_set(session.offerset)
        left = [other.offer for other in siblings if other.phase is Phase.OFFERED and other.id != id]
        for platform in sorted(list_held_platforms(siblings)):
            stay = [offer for offer in left if offer.platform == platform]
            tx.books.release(platform, session.offerset)
            self.signals.freed.add(platform)
            if stay:
                tx.books.keep(platform, session.offerset, hold_of(stay))
        tx.events.add(now, id, session.person, kind_of_move(to), _by(person, reason), to)
        write_down(tx, now, person, "cancel" if to is Phase.CANCELLED else "reject", session, reason)
        changes: dict[str, Any] = {"due": None}
        if to is Phase.CANCELLED:
            changes |= {"end": End(EndKind.CANCELLED, by=person.name, detail=reason), "ended": now}
        return require_moved(tx.sessions.move(id, to, when=(Phase.OFFERED,), now=now, **changes), id)

    def cancel(self, tx: Tx, id: str, person: Person, reason: str = "") -> Session:
        """Mark a session to be cancelled by the loop; an offer is declined, and a cancelled session stays as it is."""
        now = read_recorded_now(tx, self.now())
        session = require_session(tx, id)
        if session.phase in OVER:
            if session.phase is Phase.CANCELLED:
                return session
            raise refuse_move(session.phase, Phase.CANCELLED, id)
        if session.phase is Phase.OFFERED:
            return self.decline(tx, id, Phase.CANCELLED, person, reason)
        if session.phase in ENDING or session.cancel_by:
            return session
        tx.events.add(now, id, session.person, EventKind.CANCEL_ASKED, _by(person, reason), session.phase)
        write_down(tx, now, person, "cancel", session, reason)
        changes: dict[str, Any] = {
            "cancel_by": person.name,
            "cancel_reason": reason,
            "due": now,
            **set_condition("being cancelled"),
        }
        return require_moved(tx.sessions.change(id, now=now, **changes), id)


def write_down(tx: Tx, now: datetime, person: Person, act: str, session: Session, reason: str = "") -> None:
    """Record in the audit log what someone did with another person's session."""
    if person.name != session.person:
        detail = {"person": session.person, **({"reason": reason} if reason else {})}
        tx.audit.add(AuditEntry(now, person.name, f"session.{act}", "session", session.id, detail))


def _by(person: Person, reason: str) -> str:
    return f"by {person.name}: {reason}" if reason else f"by {person.name}"


def require_moved(session: Session | None, id: str) -> Session:
    """Return the session that a change gave, or raise NotFound."""
    if session is None:  # can't happen: its phase was checked in this transaction
        raise NotFound(noun="session", name=id)
    return session


def require_session(tx: Tx, id: str) -> Session:
    """Return the session of this id, or raise NotFound."""
    session = tx.sessions.get(id)
    if session is None:
        raise NotFound(noun="session", name=id)
    return session


def list_active(tx: Tx, ids: Sequence[str]) -> list[str]:
    """Return the ids of sessions that have not ended meanwhile."""
    sessions = (tx.sessions.get(id) for id in ids)
    return [session.id for session in sessions if session and session.phase not in OVER]
