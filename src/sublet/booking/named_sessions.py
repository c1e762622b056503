"""Finds the session that a person means, by its id, the beginning of it, or its name."""

from __future__ import annotations

from functools import partial

from sublet.booking.model.phases import Phase
from sublet.booking.model.session import Session
from sublet.kernel.quoting import SLASH
from sublet.kernel.short_ids import SHORTEST, pick_named, pick_one, require_length
from sublet.people.model.person import Person
from sublet.store.tx import Tx

GONE = frozenset({Phase.REJECTED, Phase.EXPIRED})  # offers that nobody accepted don't make a short id ambiguous


def find_named(tx: Tx, name: str, person: Person) -> Session | None:
    """Find a session by its whole id, else by the beginning of one of the person's ids, else by its name."""
    name = name.replace(SLASH, "/")
    if whole := tx.sessions.get(name):
        return whole
    if person.session:
        return tx.sessions.get(person.session) if name and person.session.startswith(name) else None
    by_name = partial(_find_by_name, tx, name, person)
    if len(name) < SHORTEST and (session := by_name()):
        return session
    require_length(name, "session")
    matches = tx.sessions.find(name, None if person.operator else person.name)
    there = [session for session in matches if session.phase not in GONE]
    return pick_one(name, "session", there or matches, _brief) or by_name()


def _find_by_name(tx: Tx, name: str, person: Person) -> Session | None:
    matches = tx.sessions.find_by_name(name, person.name)
    return pick_named(name, "session", matches, _brief, hint="Name one by its id; the newest is the first.")


def _brief(session: Session) -> str:
    return f"{session.id[:13]} ({session.name}, {session.phase.value})"
