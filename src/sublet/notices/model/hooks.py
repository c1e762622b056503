"""Hooks: whom to tell of which changes of a session, and how often to try."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from sublet.booking.model.events import EventKind
from sublet.kernel.errors import BadRequest

# What a person may write after --on, and the kinds of events that it means.
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
)  # between one try and the next; after the last one it is given up
TRIES = len(WAITS) + 1
MAILTO = "mailto:"


@dataclass(frozen=True, slots=True)
class Hook:
    """Someone's wish to be told."""

    id: str
    person: str
    session: str  # empty: all of the person's
    address: str  # https:… or mailto:…
    secret: str  # what its calls are signed with, sealed
    events: tuple[str, ...]  # words of WORDS; empty: each change of state
    created: datetime
    expires: datetime
    after: int = 0  # the newest event that was dealt with
    trouble: str = ""  # why it was given up; empty: it was not

    @property
    def by_mail(self) -> bool:
        """Whether a letter is sent, instead of a call."""
        return self.address.startswith(MAILTO)

    @property
    def kinds(self) -> frozenset[EventKind]:
        """The kinds of events that are told."""
        return frozenset(kind for word in self.events or STATES for kind in WORDS[word])


@dataclass(frozen=True, slots=True)
class Delivery:
    """One event that one hook is to be told."""

    id: int
    hook: str
    event: int
    tries: int = 0
    due: datetime | None = None  # when it is tried next; None: over
    tried: datetime | None = None
    answer: str = ""  # what came of the last try

    @property
    def key(self) -> str:
        """The same at every try, so that who is told twice can know."""
        return f"{self.hook}.{self.event}"


def words_of(given: Iterable[str]) -> tuple[str, ...]:
    """The words that were given, each known and once."""
    kept = tuple(dict.fromkeys(word.strip().lower() for word in given if word.strip()))
    for word in kept:
        if word not in WORDS:
            raise BadRequest(
                detail=f"there are no notifications on {word!r}.", hint=f"Possible events: {', '.join(WORDS)}."
            )
    return kept


def next_try(tries: int, now: datetime) -> datetime:
    """When to try again what is tried now for the so-many-th time, should this one fail."""
    return now + WAITS[min(tries, len(WAITS)) - 1]
