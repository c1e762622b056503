"""Views of other brokers that requests are forwarded to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, kw_only=True)
class BrokerAddition:
    """A broker to add. Its token is stored sealed, and never shown again."""

    name: str
    url: str
    token: str = ""  # this service's own; empty: people show theirs
    older: bool = False  # it speaks a schema before 1.0


@dataclass(frozen=True, kw_only=True)
class BrokerToken:
    """A new token for a broker."""

    token: str


@dataclass(frozen=True, kw_only=True)
class BrokerView:
    """A broker that requests are forwarded to; its token is never shown."""

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
    """All brokers."""

    items: tuple[BrokerView, ...]
