"""A person's bounds on a platform: the most of each amount, and the pledges that they may use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil

from sublet.access.model.access import NO_LIMITS, Limits, lowest
from sublet.booking.model.offer import Reason
from sublet.booking.model.pledge import OPEN, shares
from sublet.booking.model.shape import TotalAmounts

PORTIONED = ("cores", "memory", "gpus")  # amounts that are divided between the pledges of a session


@dataclass(frozen=True, slots=True)
class Bounds:
    """A person's limits on a platform, and on each of its pledges that they may use."""

    limits: Limits = NO_LIMITS
    pledges: Mapping[str, Limits] = field(default_factory=dict)  # empty: the platform has no pledges
    others: Mapping[str, Reason] = field(default_factory=dict)  # the other pledges, and why they can't be used
    projects: frozenset[str] = frozenset()  # projects that can be charged, whether or not the platform knows them

    def across(self, pledge: Mapping[str, int]) -> Limits:
        """Return the limits of a session that uses these pledges, in proportion to these sizes."""
        if not pledge:
            return NO_LIMITS
        parts = shares(pledge)
        return lowest(_whole(self.pledges[name], parts[name]) if name != OPEN else self.pledges[name] for name in parts)


def portion(amounts: TotalAmounts, part: Fraction) -> TotalAmounts:
    """Return a part of a session's amounts; nodes and time aren't divided."""
    return replace(amounts, **{name: ceil(getattr(amounts, name) * part) for name in PORTIONED})


def _whole(limits: Limits, part: Fraction) -> Limits:
    """Scale limits that apply to a part of a session up to the whole session; no limits if the part is zero."""
    if not part:
        return NO_LIMITS
    most = {name: value // part for name, value in limits.list_given() if name in PORTIONED}
    hours = None if limits.hours is None else limits.hours / float(part)
    return replace(limits, **most, hours=hours)


def names_of(pledges: Iterable[str]) -> tuple[str, ...]:
    """Return the names of a platform's pledges, and of open capacity; empty if nothing is pledged."""
    named = tuple(pledges)
    return (*named, OPEN) if named else ()
