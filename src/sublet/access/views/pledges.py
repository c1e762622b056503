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
    added: bool = False  # by an operator, who can change it; else the settings have it, or it is what is open
    allowed: bool  # whether the asker may draw on it
    why: str
    how: str = ""  # to get access, where they have none
    limits: LimitsView
    rules: tuple[RuleView, ...] = ()  # about it; for operators


@dataclass(frozen=True, kw_only=True)
class PledgeList:
    """Parts of platforms."""

    items: tuple[PledgeView, ...]


@dataclass(frozen=True, kw_only=True)
class PledgeEdit:
    """Changes what is named of a pledge; 0, or an empty text, says nothing of it any more."""

    cores: int | None = None
    memory: str | None = None  # as in 512GiB
    gpus: int | None = None
    storage: str | None = None  # as in 20TiB, of all pools together
    when: str | None = None  # as in `nights, weekends`
    zone: str | None = None  # of `when`, as in Europe/London
    title: str | None = None


@dataclass(frozen=True, kw_only=True)
class PledgeAsk(PledgeEdit):
    """Pledges a part of a platform."""

    platform: str
    name: str


@dataclass(frozen=True, kw_only=True)
class AddedPledgeView:
    """A pledge that an operator added, as it was said."""

    platform: str
    name: str
    cores: int | None = None
    memory: str | None = None
    gpus: int | None = None
    storage: str | None = None
    when: str | None = None
    zone: str | None = None
    title: str | None = None
