"""Other brokers, and the requests and offers that pass between them and this service."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sublet.booking.model.phases import Phase

SOONEST, LATEST = timedelta(seconds=2), timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class KnownBroker:
    """Another broker that requests are passed on to."""

    name: str
    url: str
    token: str = ""  # encrypted; empty: people use their own
    is_older: bool = False  # it speaks a schema before 1.0
    created: datetime | None = None
    changed: datetime | None = None
    by: str = ""


@dataclass(frozen=True, slots=True)
class BrokerAsk:
    """A request that was, or is about to be, passed on to another broker."""

    key: str
    broker: str
    person: str
    document: str  # as JSON
    via: tuple[str, ...]
    due: datetime  # when to make sure that nothing stays held there
    created: datetime
    offerset: str = ""  # its address there, once that is known
    tries: int = 0


@dataclass(frozen=True, slots=True)
class BrokerOffer:
    """An offer of another broker that was passed on as a session here."""

    session: str
    broker: str
    person: str
    url: str  # of the session there
    offerset: str
    expires: datetime  # there
    tries: int = 0
    phase: Phase | None = None  # of the session here; None: it was deleted

    @property
    def was_never_taken(self) -> bool:
        """Whether the offer was never accepted here, so that it expires there by itself."""
        return self.phase in (None, Phase.REJECTED, Phase.EXPIRED)


def find_next_try(now: datetime, tries: int) -> datetime:
    """Return when to retry after so many failures, with exponential backoff."""
    return now + min(LATEST, SOONEST * float(2 ** min(tries, 10)))
