"""Pledges: parts of platforms, and who may draw on them."""

from __future__ import annotations

from dataclasses import dataclass

from sublet.access.views.access import LimitsView, RuleView


@dataclass(frozen=True, kw_only=True)
class PledgeView:
    """A part of a platform: a pledge, or what is open."""

    platform: str
    name: str
    title: str = ""
    cores: int
    taken: int  # booked or held now; what draws on several parts counts in each by their sizes
    free: int  # what who draws on this alone could have now
    memory: int | None = None  # bytes that are pledged beside cores; none: nothing is said of it
    gpus: int | None = None
    storage: int | None = None  # bytes
    when: str = ""  # in force only then, and open else; empty: always
    allowed: bool  # whether the asker may draw on it
    why: str
    how: str = ""  # to get access, where they have none
    limits: LimitsView
    rules: tuple[RuleView, ...] = ()  # about it; for operators


@dataclass(frozen=True, kw_only=True)
class PledgeList:
    """Parts of platforms."""

    items: tuple[PledgeView, ...]
