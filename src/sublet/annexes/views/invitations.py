"""Invitations of sites that fetch requests for leases themselves."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class InvitationView:
    """What a site's operator is given: whoever has it can take what is asked of the site."""

    site: str
    urls: tuple[str, ...]
    pin: str  # base64 of the SHA-256 of the public key that they find there
    token: str


@dataclass(frozen=True, kw_only=True)
class InviteAsk:
    """How a site is invited."""

    anew: bool = False  # earlier invitations are worthless from now on
