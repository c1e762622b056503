"""Views of invitations of sites, which fetch requests for leases themselves."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class InvitationView:
    """What a site's operator needs to connect; its holder can take the site's requests."""

    site: str
    urls: tuple[str, ...]
    pin: str  # base64 of the SHA-256 of the service's public key
    token: str


@dataclass(frozen=True, kw_only=True)
class InviteAsk:
    """How to invite a site."""

    anew: bool = False  # makes earlier invitations invalid
