"""What a token of an issuer says of someone, and whether it counts here and now."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

LONGEST_GROUP = 250  # characters of a group's name, as rules can have it
MOST_GROUPS = 500
LATEST = 32_503_680_000  # seconds since 1970: the year 3000


@dataclass(frozen=True, slots=True)
class Confirmed:
    """Who someone is, as an issuer confirmed it."""

    issuer: str
    subject: str
    address: str  # empty: none that is verified
    realm: str = ""  # that several issuers share, whose subjects are the same people
    groups: tuple[str, ...] | None = None  # None: nothing was said of them
    claims: Mapping[str, Any] = field(default_factory=dict, compare=False)  # all that was said

    @property
    def identities(self) -> tuple[str, ...]:
        """The values of the identities of kind `oidc`; neither an issuer's address nor a realm has a space in it."""
        return tuple(f"{place} {self.subject}" for place in (self.issuer, self.realm) if place)

    @property
    def identity(self) -> str:
        """The one at the issuer itself."""
        return self.identities[0]


@dataclass(frozen=True, slots=True)
class ClaimRules:
    """What is expected of the tokens of one issuer."""

    issuer: str
    audiences: Collection[str]
    skew: timedelta


def find_fault(claims: Mapping[str, Any], rules: ClaimRules, now: datetime) -> str:
    """Why a token that is signed well does not count; empty if it does."""
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
    """When a token that was checked expires."""
    return datetime.fromtimestamp(min(float(claims["exp"]), LATEST), UTC)


def read_groups(claims: Mapping[str, Any], lists: Iterable[str], named: Iterable[str]) -> tuple[str, ...] | None:
    """The groups that a token puts someone in; None if it says nothing of them.

    `lists` are claims whose values are groups; a value of those `named` is a group as in `acr=mfa`.
    """
    groups = [value for name in lists for value in _texts(claims.get(name))]
    pairs = [f"{name}={value}" for name in named for value in _texts(claims.get(name))]
    return clean_groups([*groups, *pairs]) if any(name in claims for name in (*lists, *named)) else None


def clean_groups(names: Iterable[object]) -> tuple[str, ...]:
    """Those that a rule could be about: printable, without spaces, and not too long."""
    good = (text for text in names if isinstance(text, str) and _is_name(text))
    return tuple(dict.fromkeys(good))[:MOST_GROUPS]


def read_scopes(claims: Mapping[str, Any], words: Mapping[str, str]) -> tuple[str, ...] | None:
    """The scopes of a token, in the words here; None if it has none of those that count, and () if none has to."""
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
