"""A simulated job: its state at any time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from sublet.booking.model.job import JobState, State
from sublet.booking.model.marks import NONE, PAUSED
from sublet.booking.model.session import (
    HELD,
    STOPPED,
    Connector,
    End,
    EndKind,
    Usage,
    describe_pause,
)

FAR = datetime(9999, 1, 1, tzinfo=UTC).timestamp()


NOWHERE = "http://127.0.0.1:9"  # the port of `discard`: nothing listens there


@dataclass(frozen=True, slots=True)
class Played:
    """A simulated job, from which its state at any time follows."""

    key: str
    starts: float
    takes: float
    until: float
    code: int = 0
    program: str = ""
    connects: str = ""
    by: str = ""
    stopped: float | None = None
    paused: float | None = None  # since when

    @property
    def held(self) -> bool:
        """Whether the job was paused before it began."""
        return self.paused is not None and self.paused < self.starts

    @property
    def ends(self) -> float:
        """When the job ends: never while it is held; while it is stopped, its time runs on."""
        natural = min(self.starts + self.takes, self.until)
        if self.paused is not None:
            natural = FAR if self.held else self.until
        return natural if self.stopped is None else min(natural, self.stopped)

    def state(self, now: float) -> JobState:
        """Return the state of the job at a time."""
        if (self.held or now < self.starts) and now < self.ends:
            words = describe_pause(HELD) if self.held else "waits in a queue that is only played"
            return JobState(State.QUEUED, condition=words, marks=PAUSED if self.held else NONE)
        started = datetime.fromtimestamp(min(self.starts, self.ends), UTC)
        if now < self.ends:
            open_ = Connector(self.connects, "AVAILABLE", "HTTP", NOWHERE) if self.connects else None
            words, marks = (describe_pause(STOPPED), PAUSED) if self.paused is not None else ("", NONE)
            return JobState(State.RUNNING, started=started, connector=open_, condition=words, marks=marks)
        return JobState(State.ENDED, self.end(), started, datetime.fromtimestamp(self.ends, UTC))

    def resume_at(self, now: float) -> Played:
        """Return the resumed job: a held one is moved as a whole, a stopped one only ends its work later."""
        if self.paused is None:
            return self
        if self.held:
            starts = max(self.starts, now)
            return replace(self, starts=starts, until=self.until + starts - self.starts, paused=None)
        return replace(self, takes=self.takes + now - self.paused, paused=None)

    def end(self) -> End:
        """Return how the job ends."""
        usage = Usage(wall=max(0.0, self.ends - self.starts))
        if self.stopped is not None and self.stopped <= self.ends:
            return End(EndKind.CANCELLED, by=self.by, usage=usage)
        if self.paused is not None or self.starts + self.takes > self.until:
            return End(EndKind.TIMEOUT, usage=usage)
        return End(EndKind.EXITED, code=self.code, usage=usage)
