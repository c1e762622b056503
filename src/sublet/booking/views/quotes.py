"""Views of costs, metrics, terms and estimates."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, kw_only=True)
class QuoteView:
    """A cost or a metric, with its bounds."""

    type: str
    min: float
    max: float
    description: str = ""


@dataclass(frozen=True, kw_only=True)
class TermsView:
    """The terms of an offer: booked, predicted or remote."""

    kind: str
    p10: datetime | None = None  # predicted: one start in ten is before this
    p50: datetime | None = None
    p90: datetime | None = None
    samples: int = 0  # fewer than 20 are no track record
    as_of: datetime | None = None  # the time of the survey behind a prediction
    url: str = ""  # remote: the address of the offer at the other broker
    expires: datetime | None = None  # remote: until when it can be accepted there
    inner: str = ""  # remote: the terms of the broker that made it, booked or predicted; empty: not stated
    route: str = ""  # remote: the platforms on its route, as uksrc/cam/slurm
    held: bool = False  # remote: whether the other broker says that it holds capacity

    @property
    def is_held(self) -> bool:
        """Whether capacity is held for the offer, here or at the other broker."""
        return self.kind == "booked" or self.held

    @property
    def words(self) -> str:
        """Return the terms in words; of another broker's offer, also that broker's own terms."""
        return f"{self.kind}, {self.inner}" if self.inner else self.kind


@dataclass(frozen=True, kw_only=True)
class RunTimeView:
    """How long a session is likely to run, by earlier runs: in eight of ten cases between `low` and `high`."""

    low: timedelta
    likely: timedelta
    high: timedelta
    runs: int  # number of runs that this is based on
    program: str = ""
    whose: str = "own"  # own: the person's own runs; all: everyone's runs of an app
    over: datetime  # likely over by then
    sentence: str = ""


@dataclass(frozen=True, kw_only=True)
class StagingView:
    """How long staging takes: in nine of ten cases no longer than `high`."""

    low: timedelta
    likely: timedelta
    high: timedelta
    samples: int = 0  # measured transfers that this is based on; 0: it is a guess
    there: tuple[str, ...] = ()  # data that is there already
    took: timedelta | None = None  # how long it really took
    sentence: str = ""
