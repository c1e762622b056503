"""Other brokers that requests are passed on to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, kw_only=True)
class BrokerAddition:
    """Adds a broker. Its token is stored sealed, and never shown again."""

    name: str
    url: str
    token: str = ""  # of this service; empty: people show their own
    older: bool = False  # it speaks a schema before 1.0


@dataclass(frozen=True, kw_only=True)
class BrokerToken:
    """Another token for a broker."""

    token: str


@dataclass(frozen=True, kw_only=True)
class BrokerView:
    """Another broker that requests are passed on to; its token is shown to nobody."""

    name: str
    url: str
    has_token: bool = False  # whether this service has one of its own; else people show theirs
    older: bool = False
    problem: str = ""  # why it can't be asked now
    notes: tuple[str, ...] = ()  # what it says of itself
    created: datetime | None = None
    by: str = ""


@dataclass(frozen=True, kw_only=True)
class BrokerList:
    """All of them."""

    items: tuple[BrokerView, ...]
