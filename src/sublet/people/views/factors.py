"""The views of second factors, and of ways to sign in other than by mail."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, kw_only=True)
class WayView:
    """An OpenID Connect provider by which people can sign in."""

    name: str
    title: str
    page: str  # where a browser begins


@dataclass(frozen=True, kw_only=True)
class IssuerWayView:
    """A token issuer by whose device codes people can sign in at a terminal (RFC 8628)."""

    name: str
    title: str
    issuer: str
    client_id: str
    scopes: tuple[str, ...] = ()
    device_endpoint: str = ""  # empty: as its OpenID configuration says
    audience: str = ""  # the service that the tokens are for
    audience_parameter: str = ""  # the parameter for the audience; empty: it isn't sent


@dataclass(frozen=True, kw_only=True)
class WayList:
    """The ways to sign in to this service."""

    mail: bool  # by a mailed code
    items: tuple[WayView, ...] = ()
    issuers: tuple[IssuerWayView, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SecondAsk:
    """A half token, and a code of the second factor or a recovery code, to exchange for a whole token."""

    token: str
    code: str


@dataclass(frozen=True, kw_only=True)
class OnceAsk:
    """The code that a page showed, and the secret whose hash was in the link to that page, to sign a terminal in."""

    code: str
    verifier: str
    client: str = ""


@dataclass(frozen=True, kw_only=True)
class FactorView:
    """Whether one has a second factor."""

    on: bool
    since: datetime | None = None
    recovery: int = 0  # remaining codes


@dataclass(frozen=True, kw_only=True)
class EnrolmentView:
    """What an authenticator app needs; the second factor takes effect once a code is confirmed."""

    secret: str
    uri: str


@dataclass(frozen=True, kw_only=True)
class FactorCodeAsk:
    """A code of the second factor."""

    code: str = ""


@dataclass(frozen=True, kw_only=True)
class RecoveryView:
    """Single-use codes to sign in without the authenticator, shown only once."""

    codes: tuple[str, ...]
