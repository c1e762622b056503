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
    scope: tuple[str, ...] = ()  # read, run, manage; empty: all that the person may
    use: str = "api"  # browser: a sign-in on the pages; session: for one session
    session: str = ""  # the one that it is for; empty: any
    used: datetime | None = None  # when it was last shown, to the minute
    token: str = ""


@dataclass(frozen=True, kw_only=True)
class TokenList:
    """Tokens, without their texts."""

    items: tuple[TokenView, ...]


@dataclass(frozen=True, kw_only=True)
class TokenAsk:
    """Asks for a token.

    For whom (oneself if empty), for how long (`30d`; none: the service's default), and for what: `scope` has the words
    `read`, `run` and `manage`, each of which includes those before it; `session` makes one for that session only.
    """

    person: str = ""
    expires: str = ""
    note: str = ""
    scope: tuple[str, ...] = ()
    session: str = ""


@dataclass(frozen=True, kw_only=True)
class WhoView:
    """Who the service takes the caller for."""

    person: str
    mode: str  # personal or gateway
    operator: bool = False  # may see and do what concerns everyone
    scope: tuple[str, ...] = ()  # what the token that was shown is for; empty: all
