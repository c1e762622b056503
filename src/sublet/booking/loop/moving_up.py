"""Moves waiting sessions that asked for no particular time up, when room comes free early.

A booked start is a promise not to be late. A session that asked for a time keeps that time; one that asked for *as
soon as possible* moves up when an earlier session ends before its time, or when its own data arrives sooner than
expected.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from sublet.booking.dependencies import latest_end
from sublet.booking.holds import find_blame
from sublet.booking.model.calendar import Slot
from sublet.booking.model.events import EventKind
from sublet.booking.model.holds import takes_of
from sublet.booking.model.offer import Offer, Reason
from sublet.booking.model.phases import Phase
from sublet.booking.model.pledge import pool_of
from sublet.booking.model.request import Window
from sublet.booking.model.session import Session
from sublet.store.tx import Tx

AT_ONCE = 50  # sessions that are looked at, in the order of their starts
WORTH = timedelta(seconds=5)  # nothing is moved for less than this
SECOND = timedelta(seconds=1)  # starts are whole seconds


def move_up(tx: Tx, platform: str, now: datetime, named: set[str]) -> int:
    """Give the sessions that wait on a platform an earlier start where there is room; return how many moved.

    `named` collects those that are known to have asked for their time: they need not be looked at again.
    """
    if tx.drains.get(platform, now):
        return 0
    waiting = tx.sessions.waiting(platform, AT_ONCE)
    named &= set(waiting)
    moved = 0
    for session in [tx.sessions.get(id) for id in waiting if id not in named]:
        if session and _names_time(tx, session):
            named.add(session.id)
        elif session:
            moved += _move_up(tx, session, now)
    return moved


def _names_time(tx: Tx, session: Session) -> bool:
    """Whether a session asked for its time; one whose request is gone is assumed to have."""
    asked = tx.offersets.get(session.offerset)
    return asked is None or bool(asked.request.windows or asked.request.recurring)


def find_causes(tx: Tx, session: Session, now: datetime) -> list[Reason]:
    """Return the unaccepted offers that prevent an earlier start of a session; none if it asked for its time."""
    offer, start = session.offer, session.start
    if not start or _names_time(tx, session):
        return []
    soonest = _soonest(offer, now)
    blame = find_blame(tx, offer.platform, session.person, now)

    def search() -> datetime | None:
        slot = _earlier(tx, offer, soonest, start)
        return slot.start if slot and start - slot.start >= WORTH else None

    if start - soonest < WORTH:
        return []
    with blame.calendar.set_aside([session.id]):
        return blame.name(search() or start, search)


def start_once_ready(tx: Tx, session: Session, now: datetime) -> None:
    """Let a session that was prepared sooner than expected start as soon as there is room."""
    offer, start = session.offer, session.start
    if session.cancel_by or not start or tx.drains.get(offer.platform, now) or _names_time(tx, session):
        return
    begun = start - offer.prepare  # from then on its storage is booked
    soonest = _after_others(tx, session, _next_second(now))
    if start - soonest < SECOND or soonest < begun:
        return
    ready = replace(offer, prepare=soonest - begun)
    slot = _find_slot(tx, session.id, ready, soonest, start)
    if slot and start - slot.start >= SECOND:
        _rebook(tx, session, slot, now, prepare=slot.start - begun)


def _next_second(now: datetime) -> datetime:
    return now.replace(microsecond=0) + SECOND


def _soonest(offer: Offer, now: datetime) -> datetime:
    return _next_second(now) + offer.prepare


def _after_others(tx: Tx, session: Session, soonest: datetime) -> datetime:
    """Return the earliest start that is after the sessions it waits for."""
    if not session.offer.after:
        return soonest
    others = (tx.sessions.get(other.id) for other in tx.dependencies.of(session.id) if other.open)
    return max([soonest, *(latest_end(other) + session.offer.release for other in others if other)])


def _earlier(tx: Tx, offer: Offer, soonest: datetime, start: datetime) -> Slot | None:
    """Return a slot for the same resources before `start`, or None."""
    return tx.books.calendar(offer.platform).earliest(
        offer.shape,
        len(offer.nodes),
        offer.duration,
        [Window(soonest, start)],
        storage=offer.pool_sizes,
        lead=offer.prepare,
        tail=offer.release,
        pledge=pool_of(offer.pledge),
    )


def _find_slot(tx: Tx, id: str, offer: Offer, soonest: datetime, start: datetime) -> Slot | None:
    """Return a slot for a session before `start`, if it gave up its booking; or None."""
    with tx.books.calendar(offer.platform).set_aside([id]):
        return _earlier(tx, offer, soonest, start)


def _move_up(tx: Tx, session: Session, now: datetime) -> bool:
    offer = session.offer
    if not offer.is_in_calendar or session.cancel_by or not session.start:
        return False
    soonest = _after_others(tx, session, _soonest(offer, now))
    if session.start - soonest < WORTH:
        return False
    slot = _find_slot(tx, session.id, offer, soonest, session.start)
    if slot is None or session.start - slot.start < WORTH:
        return False
    _rebook(tx, session, slot, now, prepare=offer.prepare)
    return True


def _rebook(tx: Tx, session: Session, slot: Slot, now: datetime, prepare: timedelta) -> None:
    """Give a session an earlier start, in the calendar and in its record."""
    offer = session.offer
    sooner = replace(offer, start=slot.start, latest_start=slot.start, nodes=slot.nodes)
    tx.books.release(offer.platform, session.id)
    tx.books.take(offer.platform, session.id, takes_of(replace(sooner, prepare=prepare)))
    until, due = slot.start + offer.duration, now if session.phase is Phase.WAITING else slot.start
    tx.sessions.change(session.id, when=(session.phase,), now=now, offer=sooner, start=slot.start, until=until, due=due)
    words = f"from {session.start:%Y-%m-%dT%H:%M:%SZ} to {slot.start:%Y-%m-%dT%H:%M:%SZ}"
    tx.events.add(now, session.id, session.person, EventKind.MOVED_UP, words, session.phase)
