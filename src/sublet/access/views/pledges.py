"""The views of pledges."""

from __future__ import annotations

from dataclasses import dataclass

from sublet.access.views.access import LimitsView, RuleView


@dataclass(frozen=True, kw_only=True)
class PledgeView:
    """A part of a platform: a pledge, or open capacity."""

    platform: str
    name: str
    title: str = ""
    cores: int
    taken: int  # booked or held now; a session under several parts counts in each by their sizes
    free: int  # what someone who uses only this part could have now
    memory: int | None = None  # bytes that are pledged beside cores; null: not stated
    gpus: int | None = None
    storage: int | None = None  # bytes
    when: str = ""  # when it is in force; empty: always
    added: bool = False  # by an operator, who can change it; otherwise it is in the settings, or open capacity
    allowed: bool  # whether the viewer may use it
    why: str
    how: str = ""  # how to get access, if they have none
    limits: LimitsView
    rules: tuple[RuleView, ...] = ()  # the rules about it, for operators


@dataclass(frozen=True, kw_only=True)
class PledgeList:
    """Parts of platforms."""

    items: tuple[PledgeView, ...]


@dataclass(frozen=True, kw_only=True)
class PledgeEdit:
    """Changes to a pledge; 0 or an empty text removes a field."""

    cores: int | None = None
    memory: str | None = None  # such as 512GiB
    gpus: int | None = None
    storage: str | None = None  # such as 20TiB, of all pools together
    when: str | None = None  # such as `nights, weekends`
    zone: str | None = None  # of `when`, such as Europe/London
    title: str | None = None


@dataclass(frozen=True, kw_only=True)
class PledgeAsk(PledgeEdit):
    """A pledge to add."""

    platform: str
    name: str


@dataclass(frozen=True, kw_only=True)
class AddedPledgeView:
    """A pledge that an operator added, as it was given."""

    platform: str
    name: str
    cores: int | None = None
    memory: str | None = None
    gpus: int | None = None
    storage: str | None = None
    when: str | None = None
    zone: str | None = None
    title: str | None = None
