"""Hooks: which changes of a session are notified to whom, and how often delivery is retried."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from sublet.booking.model.events import EventKind
from sublet.kernel.errors import BadRequest

# What a person may write after --on → kinds of events.
WORDS: dict[str, tuple[EventKind, ...]] = {
    "accepted": (EventKind.ACCEPTED,),
    "waiting": (EventKind.WAITING,),
    "preparing": (EventKind.PREPARING,),
    "started": (EventKind.RUNNING, EventKind.AVAILABLE),
    "ended": (EventKind.COMPLETED, EventKind.FAILED, EventKind.CANCELLED),
    "completed": (EventKind.COMPLETED,),
    "failed": (EventKind.FAILED,),
    "cancelled": (EventKind.CANCELLED,),
    "paused": (EventKind.PAUSED,),
    "resumed": (EventKind.RESUMED,),
    "extended": (EventKind.EXTENDED,),
    "moved-up": (EventKind.MOVED_UP,),
    "warned": (EventKind.WARNED,),
    "lost": (EventKind.LOST,),
    "revoked": (EventKind.APP_REVOKED,),
    "draining": (EventKind.DRAINING, EventKind.MOVED),
}
STATES = ("accepted", "waiting", "preparing", "started", "ended", "paused", "resumed", "revoked", "draining")
WAITS = tuple(
    timedelta(seconds=seconds) for seconds in (30, 120, 600, 1800, 3600, 2 * 3600, 4 * 3600, 8 * 3600)
)  # between tries; after the last one the hook is given up
TRIES = len(WAITS) + 1
MAILTO = "mailto:"


@dataclass(frozen=True, slots=True)
class Hook:
    """A person's subscription to changes."""

    id: str
    person: str
    session: str  # empty: all of the person's sessions
    address: str  # https:… or mailto:…
    secret: str  # signs its calls; encrypted
    events: tuple[str, ...]  # words of WORDS; empty: each change of state
    created: datetime
    expires: datetime
    after: int = 0  # the newest event that was processed
    trouble: str = ""  # why it was given up; empty: it is active

    @property
    def by_mail(self) -> bool:
        """Whether notifications are sent by mail, not by webhook."""
        return self.address.startswith(MAILTO)

    @property
    def kinds(self) -> frozenset[EventKind]:
        """The kinds of events that are notified."""
        return frozenset(kind for word in self.events or STATES for kind in WORDS[word])


@dataclass(frozen=True, slots=True)
class Delivery:
    """One event to deliver to one hook."""

    id: int
    hook: str
    event: int
    tries: int = 0
    due: datetime | None = None  # the time of the next try; None: finished
    tried: datetime | None = None
    answer: str = ""  # the outcome of the last try

    @property
    def key(self) -> str:
        """The delivery's id, the same at every try, so that receivers can recognize duplicates."""
        return f"{self.hook}.{self.event}"


def words_of(given: Iterable[str]) -> tuple[str, ...]:
    """Return the given words without duplicates; raise BadRequest for an unknown one."""
    kept = tuple(dict.fromkeys(word.strip().lower() for word in given if word.strip()))
    for word in kept:
        if word not in WORDS:
            raise BadRequest(
                detail=f"there are no notifications on {word!r}.", hint=f"Possible events: {', '.join(WORDS)}."
            )
    return kept


def next_try(tries: int, now: datetime) -> datetime:
    """Return when to retry if try number `tries`, made now, fails."""
    return now + WAITS[min(tries, len(WAITS)) - 1]
