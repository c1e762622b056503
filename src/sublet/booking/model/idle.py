"""When an interactive session ends because nobody has it open."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sublet.booking.model.amounts import parse_duration
from sublet.booking.model.request import Executable
from sublet.kernel.texts import describe_duration


@dataclass(frozen=True)
class IdleEnd:
    """When a session ends unless someone opens it, and when its owner is warned."""

    idle: timedelta  # how long the session may be unused
    seen: datetime  # since when nobody has it open
    warn: timedelta  # how long before the end its owner is warned

    @property
    def at(self) -> datetime:
        """When the session ends."""
        return self.seen + self.idle

    @property
    def warn_at(self) -> datetime:
        """When the owner is warned: no earlier than in the last quarter of the idle time."""
        return self.at - min(self.warn, self.idle / 4)

    @property
    def reason(self) -> str:
        """Who ends the session, and why."""
        return f"sublet, because nobody had it open for {describe_duration(self.idle)}"

    def find_next_look(self, now: datetime) -> datetime:
        """Return when to check again: often once the owner was warned, because someone may have opened it."""
        return self.warn_at if now < self.warn_at else min(self.at, now + self.idle / 8)


def choose_idle(executable: Executable | None, usual: timedelta | None) -> timedelta | None:
    """Return how long a session may be unused: as requested, but no longer than usual here; None: no limit."""
    asked = executable.fields.get("idle") if executable else None
    wanted = parse_duration(str(asked)) if asked else None
    return min(filter(None, (wanted, usual)), default=None)
