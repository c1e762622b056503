"""Access rules, and the decision that all rules for a person make together."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Literal

from sublet.booking.model.amounts import quote_value
from sublet.kernel.errors import BadAmount, BadRequest

Effect = Literal["allow", "deny"]
EFFECTS = ("allow", "deny")
NOUNS = ("system", "account", "pledge", "app", "place", "project")
AccessTarget = tuple[str, str]  # a noun and a name
GROUP = "group:"
EVERYONE = "*"
LONGEST_WHO = 254  # characters of an e-mail address
LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Limits:
    """The most of each amount; None: no limit. Limits of one session are totals over all its nodes."""

    cores: int | None = None
    memory: int | None = None  # bytes
    gpus: int | None = None
    nodes: int | None = None
    time: timedelta | None = None
    hours: float | None = None  # core-hours of one session
    jobs: int | None = None  # concurrent sessions
    hours_month: float | None = None  # core-hours per calendar month, in UTC

    def __post_init__(self) -> None:
        """Raise BadAmount unless every amount is a number from 0 on."""
        for name, value in self.list_given():
            least: Any = timedelta(0) if name == "time" else 0
            if (isinstance(value, float) and not math.isfinite(value)) or value < least:
                raise BadAmount(text=quote_value(value), what=f"a limit of {name}", example="a number from 0 on")

    def list_given(self) -> list[tuple[str, Any]]:
        """Return the limits that are set, by name."""
        return [(name, value) for name in AMOUNTS if (value := getattr(self, name)) is not None]


AMOUNTS = tuple(one.name for one in fields(Limits))
NO_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Use:
    """What a person uses of one target already."""

    jobs: int = 0  # active sessions
    hours: float = 0.0  # core-hours: used by sessions that ended this month, or reserved by active ones


@dataclass(frozen=True, slots=True)
class Who:
    """A person as rules know them: by name, by every confirmed address, and by groups."""

    names: frozenset[str]
    groups: frozenset[str] = frozenset()
    people: tuple[str, ...] = ()  # the names under which they have sessions: their own, and those of the same mailbox


@dataclass(frozen=True, slots=True)
class AccessRule:
    """A rule that lets people use something, or denies it; a deny with limits is a cap."""

    id: str
    effect: Effect
    who: str  # a pattern such as *@illinois.edu, group:NAME, or a person's name
    noun: str
    name: str  # a pattern of the noun's names
    created: datetime
    limits: Limits = NO_LIMITS
    expires: datetime | None = None
    by: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        """Raise BadRequest if the rule could never match, or could match by mistake."""
        if self.effect not in EFFECTS:
            raise BadRequest(detail=f"an access rule is `allow` or `deny`, not {quote_value(self.effect)}")
        if self.noun not in NOUNS:
            raise BadRequest(detail=f"{quote_value(self.noun)} is none of {', '.join(NOUNS)}")
        _check_pattern(self.who.removeprefix(GROUP), LONGEST_WHO, "who it is for")
        _check_pattern(self.name, LONGEST_NAME, f"the name of a {self.noun}")

    def is_expired(self, now: datetime) -> bool:
        """Whether the rule has expired."""
        return self.expires is not None and self.expires <= now

    def is_for(self, who: Who) -> bool:
        """Whether the rule is for this person, by any of their names or groups."""
        if self.who.startswith(GROUP):
            return self.who.removeprefix(GROUP) in who.groups
        return any(matches_person(self.who, name) for name in who.names)

    def about(self, noun: str, name: str) -> bool:
        """Whether the rule is about this target."""
        return self.noun == noun and bool(_compile_pattern(self.name).fullmatch(name))


@dataclass(frozen=True, slots=True)
class AccessRequest:
    """A person's request for access, and an operator's answer."""

    id: str
    person: str
    noun: str
    name: str
    why: str
    created: datetime
    state: str = "open"  # open, granted or refused
    decided: datetime | None = None
    by: str = ""
    answer: str = ""
    rule: str = ""  # the rule that granted it


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether someone may use a target, within which limits, and by which rules."""

    noun: str
    name: str
    allowed: bool
    limits: Limits = NO_LIMITS
    rules: tuple[AccessRule, ...] = ()  # the deciding rules: those that deny; or those that allow, then those that cap
    lapsed: AccessRule | None = field(default=None)  # would allow it, had it not expired

    def sets(self, amount: str) -> AccessRule | None:
        """Return the rule that sets the limit of an amount, or None."""
        limit = getattr(self.limits, amount)
        matches = [rule for rule in self.rules if limit is not None and getattr(rule.limits, amount) == limit]
        return matches[-1] if matches else None


def decide(
    rules: Iterable[AccessRule], who: Who, noun: str, name: str, now: datetime, *, let_in: bool = False
) -> Decision:
    """Decide: a deny without limits wins; otherwise any allow admits, with the most generous limit of each amount.

    A deny with limits is a cap on whatever is allowed. With `let_in`, something else allows the use without limits, and
    of these rules only the denies count.
    """
    about = [rule for rule in rules if rule.about(noun, name) and rule.is_for(who)]
    live = sorted((rule for rule in about if not rule.is_expired(now)), key=lambda rule: (rule.created, rule.id))
    denies = [rule for rule in live if rule.effect == "deny"]
    if whole := [rule for rule in denies if rule.limits == NO_LIMITS]:
        return Decision(noun, name, False, rules=tuple(whole))
    if let_in:
        return Decision(noun, name, True, lowest(rule.limits for rule in denies), tuple(denies))
    allows = [rule for rule in live if rule.effect == "allow"]
    if not allows:
        over = [rule for rule in about if rule.effect == "allow" and rule.expires]
        return Decision(noun, name, False, lapsed=max(over, key=lambda rule: str(rule.expires), default=None))
    limits = lowest([widest(rule.limits for rule in allows), *(rule.limits for rule in denies)])
    return Decision(noun, name, True, limits, (*allows, *denies))


def widest(limits: Iterable[Limits]) -> Limits:
    """Return the most generous limit of each amount; no limit if any of them has none."""
    given = list(limits)
    columns = {name: [getattr(each, name) for each in given] for name in AMOUNTS}
    return Limits(**{name: None if None in values else max(values) for name, values in columns.items() if values})


def lowest(limits: Iterable[Limits]) -> Limits:
    """Return the strictest limit of each amount."""
    given = list(limits)
    columns = {name: [v for each in given if (v := getattr(each, name)) is not None] for name in AMOUNTS}
    return Limits(**{name: min(values) for name, values in columns.items() if values})


def month_of(now: datetime) -> datetime:
    """Return when the calendar month began."""
    return now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def matches_person(pattern: str, person: str) -> bool:
    """Whether a pattern matches a name, ignoring ASCII case; `*` matches anything but @, and alone matches everyone."""
    return pattern == EVERYONE or bool(_person(pattern).fullmatch(person))


@lru_cache(maxsize=4096)
def _person(pattern: str) -> re.Pattern[str]:
    # ASCII only: by Unicode's rules the Kelvin sign is a k, so one domain could pass for another.
    return re.compile("[^@]*".join(map(re.escape, pattern.split("*"))), re.IGNORECASE | re.ASCII)


@lru_cache(maxsize=4096)
def _compile_pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)


def _check_pattern(pattern: str, longest: int, what: str) -> None:
    if not pattern or len(pattern) > longest or not pattern.isprintable() or pattern != "".join(pattern.split()):
        raise BadRequest(
            detail=f"{quote_value(pattern)} can't be {what}",
            hint="Write a name, a pattern such as *@illinois.edu, or group:NAME.",
        )
