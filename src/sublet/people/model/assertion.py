"""Assertions: a token by which one broker makes one request to another on behalf of a person."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sublet.people.model.claims import Confirmed, clean_groups

LASTS = timedelta(minutes=1)
LOOKS = ("GET", "HEAD")
LONGEST_ID = 200  # characters of `jti`


@dataclass(frozen=True, slots=True)
class Errand:
    """The one request that a broker's token is for."""

    method: str = ""
    path: str = ""  # as sent, with its query

    @property
    def is_look(self) -> bool:
        """Whether the request changes nothing."""
        return self.method in LOOKS


@dataclass(frozen=True, slots=True)
class KnownElsewhere:
    """A person's identity at an issuer, and their groups there."""

    issuer: str
    subject: str
    groups: tuple[str, ...] = ()


def make_claims(
    own_url: str,
    person: str,
    address: str,
    identity: KnownElsewhere | None,
    audience: str,
    errand: Errand,
    id: str,
    now: datetime,
) -> dict[str, Any]:
    """Return the claims of a token for one request (`htm`, `htu`) to another broker, on behalf of a person (`act`)."""
    claims: dict[str, Any] = {
        "iss": own_url,
        "sub": identity.subject if identity else person,
        "aud": audience,
        "iat": int(now.timestamp()),
        "exp": int((now + LASTS).timestamp()),
        "jti": id,
        "htm": errand.method,
        "htu": errand.path,
        "act": {"sub": own_url},
    }
    if identity:
        claims |= {"idp": identity.issuer, "groups": list(identity.groups)}
    if address:
        claims |= {"email": address, "email_verified": True}
    return claims


def find_misuse(claims: Mapping[str, Any], errand: Errand) -> str:
    """Return why a broker's token isn't for this request; empty if it is."""
    id = claims.get("jti")
    if not isinstance(id, str) or not id or len(id) > LONGEST_ID:
        return "a broker's token needs a `jti`"
    if claims.get("htm") != errand.method or claims.get("htu") != errand.path:
        return "it is for another request"
    return ""


def read_assertion(claims: Mapping[str, Any], by: Mapping[str, tuple[str, str]]) -> tuple[str, Confirmed] | None:
    """Read who a broker acts for, if it quotes an issuer that it may speak for; `by`: issuer address → name and realm.

    Return None if it quotes none: the person is then known by the broker's own name for them.
    """
    issuer, subject = claims.get("idp"), claims.get("sub")
    if not isinstance(issuer, str) or issuer not in by or not isinstance(subject, str):
        return None
    name, realm = by[issuer]
    groups, address = claims.get("groups"), claims.get("email")
    known = clean_groups(groups) if isinstance(groups, list) else None
    is_verified = claims.get("email_verified") is True and isinstance(address, str)
    return name, Confirmed(issuer, subject, str(address) if is_verified else "", realm, known)


def choose_identity(identities: Collection[str], groups: Mapping[str, tuple[str, ...]]) -> KnownElsewhere | None:
    """Choose one of a person's identities at issuers, preferring one with known groups."""
    known = [value.partition(" ") for value in identities if "://" in value.partition(" ")[0]]
    ordered = sorted(known, key=lambda each: (each[0] not in groups, each[0], each[2]))
    return KnownElsewhere(ordered[0][0], ordered[0][2], groups.get(ordered[0][0], ())) if ordered else None
