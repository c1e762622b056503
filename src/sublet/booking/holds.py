"""Holds for unaccepted offers: how they are given back, give way to a later request, and are named as a cause."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sublet.booking.model.calendar import Calendar
from sublet.booking.model.events import EventKind
from sublet.booking.model.giving_way import cores_at, find_displaced, find_fitting
from sublet.booking.model.holds import hold_of
from sublet.booking.model.offer import Reason, Take
from sublet.booking.model.phases import Phase
from sublet.booking.model.session import End, EndKind, Session
from sublet.booking.model.starts import instant
from sublet.booking.store.holds import Hold
from sublet.kernel.texts import count_text
from sublet.store.tx import Tx

HELD = "urn:held"  # the kind of a reason that names holds for unaccepted offers
GIVE_BACK = "sublet reject --all"
Search = Callable[[], datetime | None]
MOST_NAMED = 100  # the most own holds that are considered; others' are considered only if there are fewer


def take_hold(tx: Tx, platform: str, newer: str, hold: Sequence[Take], older: Sequence[str], now: datetime) -> bool:
    """Hold resources for a new offer set; older offers that no longer fit give way. Return whether any did."""
    displaced = find_displaced(tx.books.calendar(platform), older, hold) if older else []
    for offerset in displaced:
        tx.books.release(platform, offerset)
    tx.books.take(platform, newer, hold)
    for offerset in displaced:
        _keep_fitting(tx, platform, offerset, newer, now)
    return bool(displaced)


def _keep_fitting(tx: Tx, platform: str, offerset: str, newer: str, now: datetime) -> None:
    """Hold again those of a set's offers on a platform that still fit, and reject the others."""
    offers = [offer for offer in tx.holds.offers(offerset) if offer.offer.platform == platform]
    fitting = find_fitting(tx.books.calendar(platform), [offer.offer for offer in offers])
    if fitting:
        tx.books.take(platform, offerset, hold_of(fitting))
    for session in offers:
        if session.offer not in fitting:
            end = End(EndKind.GAVE_WAY, by=session.person, detail=newer)
            tx.sessions.move(session.id, Phase.REJECTED, when=(Phase.OFFERED,), now=now, due=None, end=end)
            tx.events.add(now, session.id, session.person, EventKind.GAVE_WAY, f"to {newer}", Phase.REJECTED)


def give_back(tx: Tx, offerset: str, now: datetime, *, by: str, newer: str = "") -> list[Session]:
    """Reject and return all open offers of a set; `newer` is the offer set that takes its place, if any."""
    offers = tx.holds.offers(offerset)
    end = End(EndKind.GAVE_WAY, by=by, detail=newer) if newer else None
    for session in offers:
        tx.sessions.move(session.id, Phase.REJECTED, when=(Phase.OFFERED,), now=now, due=None, end=end)
        kind, detail = (EventKind.GAVE_WAY, f"to {newer}") if newer else (EventKind.REJECTED, f"by {by}")
        tx.events.add(now, session.id, session.person, kind, detail, Phase.REJECTED)
    for platform in sorted(list_held_platforms(offers)):
        tx.books.release(platform, offerset)
    return offers


def list_held_platforms(sessions: Sequence[Session]) -> set[str]:
    """Return the platforms whose calendars hold something for these offers."""
    return {session.offer.platform for session in sessions if session.offer.is_in_calendar}


@dataclass(frozen=True, slots=True)
class Blame:
    """The unaccepted offers, a person's own and others', that may keep something from starting earlier."""

    own: tuple[Hold, ...]
    others: tuple[Hold, ...]
    calendar: Calendar
    platform: str

    def name(self, current: datetime | None, search: Search, free: Sequence[str] = ()) -> list[Reason]:
        """Return a reason each for own and others' offers, if something could start before `current` without them.

        `search` finds the earliest start in the calendar; the offer sets in `free` count as given back already.
        """
        own = [hold for hold in self.own if hold.offerset not in free]
        reasons: list[Reason] = []
        aside = [*free]
        for holds, tell in ((own, self._describe_own), (self.others, self._describe_others)):
            if not holds:
                continue
            aside += [hold.offerset for hold in holds]
            with self.calendar.set_aside(aside):
                start = search()
            if start and (current is None or start < current):
                reasons.append(tell(holds, start))
                current = start
        return reasons

    def _describe_own(self, holds: Sequence[Hold], start: datetime) -> Reason:
        holds = self._at(holds, start)
        count = sum(hold.offers for hold in holds)
        what = "Your own unaccepted offer holds" if count == 1 else f"Your own {count} unaccepted offers hold"
        could = f"it could start at {instant(start)} without {'it' if count == 1 else 'them'}"
        message = f"{what} {self._room(holds, start)}; {could}."
        return Reason(HELD, "offers", message, nearest=GIVE_BACK, platform=self.platform)

    def _describe_others(self, holds: Sequence[Hold], start: datetime) -> Reason:
        held = self._room(self._at(holds, start), start)
        could = f"it could start at {instant(start)} if nobody accepts them"
        return Reason(HELD, "offers", f"Unaccepted offers to others hold {held}; {could}.", platform=self.platform)

    def _at(self, holds: Sequence[Hold], time: datetime) -> Sequence[Hold]:
        """Return the holds that have cores at a moment, or all of them if none has."""
        return [hold for hold in holds if cores_at(self.calendar, [hold.offerset], time)] or holds

    def _room(self, holds: Sequence[Hold], time: datetime) -> str:
        """Describe how much these holds keep, where, and until when."""
        cores = cores_at(self.calendar, [hold.offerset for hold in holds], time)
        until = instant(max(hold.expires for hold in holds))
        return f"{count_text(cores, 'core') if cores else 'room'} of {self.platform} until {until}"


def find_blame(tx: Tx, platform: str, person: str, now: datetime) -> Blame:
    """Find the unaccepted offers that hold something on a platform: a person's own and, unless too many, others'."""
    calendar = tx.books.calendar(platform)

    def standing(holds: Sequence[Hold]) -> tuple[Hold, ...]:
        return tuple(hold for hold in holds if hold.expires > now and calendar.takes(hold.offerset))

    everyone = tx.holds.on(platform, MOST_NAMED) if tx.holds.are_fewer(platform, MOST_NAMED) else []
    others = [hold for hold in everyone if hold.person != person]
    own = tx.holds.find_oldest(person, platform, MOST_NAMED)  # the oldest give way first
    return Blame(standing(own), standing(others), calendar, platform)
