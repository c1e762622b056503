"""The claims of an issuer's token, and whether they are valid here and now."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

LONGEST_GROUP = 250  # characters of a group's name, as rules allow
MOST_GROUPS = 500
LATEST = 32_503_680_000  # seconds since 1970: the year 3000


@dataclass(frozen=True, slots=True)
class Confirmed:
    """Who someone is, as confirmed by an issuer."""

    issuer: str
    subject: str
    address: str  # empty: no verified address
    realm: str = ""  # shared by issuers whose subjects are the same people
    groups: tuple[str, ...] | None = None  # None: not stated
    claims: Mapping[str, Any] = field(default_factory=dict, compare=False)  # all claims

    @property
    def identities(self) -> tuple[str, ...]:
        """The values of the `oidc` identities; neither an issuer's address nor a realm contains a space."""
        return tuple(f"{place} {self.subject}" for place in (self.issuer, self.realm) if place)

    @property
    def identity(self) -> str:
        """The identity at the issuer itself."""
        return self.identities[0]


@dataclass(frozen=True, slots=True)
class ClaimRules:
    """What the tokens of one issuer must satisfy."""

    issuer: str
    audiences: Collection[str]
    skew: timedelta


def find_fault(claims: Mapping[str, Any], rules: ClaimRules, now: datetime) -> str:
    """Return why a correctly signed token isn't valid; empty if it is."""
    audience = claims.get("aud")
    audiences = audience if isinstance(audience, list) else [audience]
    seconds, skew = now.timestamp(), rules.skew.total_seconds()
    faults = {
        "it is from another issuer": claims.get("iss") != rules.issuer,
        "it is for another audience": not any(name in rules.audiences for name in audiences if isinstance(name, str)),
        "it does not say when it expires": not _is_time(claims.get("exp")),
        "it has expired": _is_time(claims.get("exp")) and claims["exp"] + skew <= seconds,
        "it counts only later": any(
            name in claims and (not _is_time(claims[name]) or claims[name] - skew > seconds) for name in ("nbf", "iat")
        ),
    }
    return next((why for why, is_so in faults.items() if is_so), "")


def expiry_of(claims: Mapping[str, Any]) -> datetime:
    """Return when a verified token expires."""
    return datetime.fromtimestamp(min(float(claims["exp"]), LATEST), UTC)


def read_groups(claims: Mapping[str, Any], lists: Iterable[str], named: Iterable[str]) -> tuple[str, ...] | None:
    """Return the groups that a token states; None if it states nothing about them.

    `lists` are claims whose values are groups; values of the claims in `named` become groups such as `acr=mfa`.
    """
    groups = [value for name in lists for value in _texts(claims.get(name))]
    pairs = [f"{name}={value}" for name in named for value in _texts(claims.get(name))]
    return clean_groups([*groups, *pairs]) if any(name in claims for name in (*lists, *named)) else None


def clean_groups(names: Iterable[object]) -> tuple[str, ...]:
    """Return the groups that rules could refer to: printable, without spaces, and not too long."""
    good = (text for text in names if isinstance(text, str) and _is_name(text))
    return tuple(dict.fromkeys(good))[:MOST_GROUPS]


def read_scopes(claims: Mapping[str, Any], words: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return a token's scopes in Sublet's words; None if none of them counts, () if no scopes are required."""
    if not words:
        return ()
    scope = claims.get("scope", claims.get("scp", ""))
    given = scope.split() if isinstance(scope, str) else _texts(scope)
    known = [words[base] for text in given if (base := text.partition(":")[0]) in words or (base := text) in words]
    return tuple(dict.fromkeys(known)) or None


def _texts(value: object) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [text for text in values if isinstance(text, str)]


def _is_name(text: str) -> bool:
    return 0 < len(text) <= LONGEST_GROUP and text.isprintable() and text == "".join(text.split())


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LATEST
