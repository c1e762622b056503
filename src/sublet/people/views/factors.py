"""Second factors, and ways to sign in other than a code by mail."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, kw_only=True)
class WayView:
    """An OpenID provider by which people can sign in."""

    name: str
    title: str
    page: str  # where a browser begins


@dataclass(frozen=True, kw_only=True)
class IssuerWayView:
    """An issuer of tokens, by a code of which people can sign in at a terminal (RFC 8628)."""

    name: str
    title: str
    issuer: str
    client_id: str
    scopes: tuple[str, ...] = ()
    device_endpoint: str = ""  # empty: where its OpenID configuration says
    audience: str = ""  # the service that the tokens are to be for
    audience_parameter: str = ""  # how that is told; empty: it isn't


@dataclass(frozen=True, kw_only=True)
class WayList:
    """How people can sign in to this service."""

    mail: bool  # by a code that comes by mail
    items: tuple[WayView, ...] = ()
    issuers: tuple[IssuerWayView, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SecondAsk:
    """Makes half a token whole by a code of the second factor, or one of the recovery codes."""

    token: str
    code: str


@dataclass(frozen=True, kw_only=True)
class OnceAsk:
    """Signs a terminal in: the code that the page showed, and the secret whose hash was in the link to that page."""

    code: str
    verifier: str
    client: str = ""


@dataclass(frozen=True, kw_only=True)
class FactorView:
    """Whether one has a second factor."""

    on: bool
    since: datetime | None = None
    recovery: int = 0  # codes that are left


@dataclass(frozen=True, kw_only=True)
class EnrolmentView:
    """What an authenticator is told; it counts once a code of it is shown."""

    secret: str
    uri: str


@dataclass(frozen=True, kw_only=True)
class FactorCodeAsk:
    """Shows a code of the second factor."""

    code: str = ""


@dataclass(frozen=True, kw_only=True)
class RecoveryView:
    """Codes by which one comes in without the authenticator, each once; they are shown this once."""

    codes: tuple[str, ...]
