"""What things cost, how well they perform, and on which terms they are offered."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, kw_only=True)
class QuoteView:
    """A cost, or a performance: what it is, and between which bounds."""

    type: str
    min: float
    max: float
    description: str = ""


@dataclass(frozen=True, kw_only=True)
class TermsView:
    """On which terms an offer is made: booked, predicted or remote."""

    kind: str
    p10: datetime | None = None  # predicted: one start in ten is before this
    p50: datetime | None = None
    p90: datetime | None = None
    samples: int = 0  # under 20 is no track record
    as_of: datetime | None = None  # how old the survey behind a prediction is
    url: str = ""  # remote: where the other broker has it
    expires: datetime | None = None  # remote: until when it can be accepted there
    inner: str = ""  # remote: on which terms the broker that made it did so, booked or predicted; empty: it did not say
    route: str = ""  # remote: the platforms on the way to where it would run, as uksrc/cam/slurm
    held: bool = False  # remote: whether the other broker says that it holds capacity for it

    @property
    def is_held(self) -> bool:
        """Whether capacity is held for it, here or at the other broker."""
        return self.kind == "booked" or self.held

    @property
    def words(self) -> str:
        """The terms in words; of another broker's offer also those on which that made it."""
        return f"{self.kind}, {self.inner}" if self.inner else self.kind


@dataclass(frozen=True, kw_only=True)
class RunTimeView:
    """How long it will run, as earlier runs of the program did: in eight of ten cases between `low` and `high`."""

    low: timedelta
    likely: timedelta
    high: timedelta
    runs: int  # that it rests on
    program: str = ""
    whose: str = "own"  # own: runs of who asks; all: everybody's runs of an app
    over: datetime  # likely over by then
    sentence: str = ""


@dataclass(frozen=True, kw_only=True)
class StagingView:
    """How long bringing the data takes: in nine of ten cases no longer than `high`."""

    low: timedelta
    likely: timedelta
    high: timedelta
    samples: int = 0  # measured transfers that it rests on; none: it is a guess
    there: tuple[str, ...] = ()  # the data that is there already
    took: timedelta | None = None  # how long it did take
    sentence: str = ""
