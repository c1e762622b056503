"""Who asks, and by which tokens."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, kw_only=True)
class TokenView:
    """A token; its text is there once, when it is made."""

    id: str
    person: str
    note: str = ""
    created: datetime
    expires: datetime | None = None
    token: str = ""


@dataclass(frozen=True, kw_only=True)
class TokenList:
    """Tokens, without their texts."""

    items: tuple[TokenView, ...]


@dataclass(frozen=True, kw_only=True)
class TokenAsk:
    """Asks for a token: for whom (oneself if empty) and for how long (`30d`; none: the service's default)."""

    person: str = ""
    expires: str = ""
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class WhoView:
    """Who the service takes the caller for."""

    person: str
    mode: str  # personal or gateway
    operator: bool = False  # may see and do what concerns everyone
