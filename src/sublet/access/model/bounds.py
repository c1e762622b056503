"""What someone may have of a platform: the most of each amount, and which of its pledges they may draw on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil

from sublet.access.model.access import NO_LIMITS, Limits, lowest
from sublet.booking.model.offer import Reason
from sublet.booking.model.pledge import OPEN, shares
from sublet.booking.model.shape import TotalAmounts

PORTIONED = ("cores", "memory", "gpus")  # what a session across several pledges takes of each in part


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of one person on a platform; where it has pledges, also those of each that they may draw on."""

    limits: Limits = NO_LIMITS
    pledges: Mapping[str, Limits] = field(default_factory=dict)  # none: the platform has none
    others: Mapping[str, Reason] = field(default_factory=dict)  # why not the others
    projects: frozenset[str] = frozenset()  # that can be charged, whatever the platform knows of them

    def across(self, pledge: Mapping[str, int]) -> Limits:
        """The most that a session may have which draws on these pledges, of these sizes."""
        if not pledge:
            return NO_LIMITS
        parts = shares(pledge)
        return lowest(_whole(self.pledges[name], parts[name]) if name != OPEN else self.pledges[name] for name in parts)


def portion(amounts: TotalAmounts, part: Fraction) -> TotalAmounts:
    """So much of what a session takes; its nodes and its time are whole in each of its parts."""
    return replace(amounts, **{name: ceil(getattr(amounts, name) * part) for name in PORTIONED})


def _whole(limits: Limits, part: Fraction) -> Limits:
    """The limits of a session of which a part counts here; none where nothing does."""
    if not part:
        return NO_LIMITS
    most = {name: value // part for name, value in limits.list_given() if name in PORTIONED}
    hours = None if limits.hours is None else limits.hours / float(part)
    return replace(limits, **most, hours=hours)


def names_of(pledges: Iterable[str]) -> tuple[str, ...]:
    """A platform's pledges and what is open; nothing where nothing is pledged."""
    named = tuple(pledges)
    return (*named, OPEN) if named else ()
