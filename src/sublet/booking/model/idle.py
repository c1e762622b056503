"""When an interactive session ends because nobody has it open."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sublet.booking.model.amounts import parse_duration
from sublet.booking.model.request import Executable
from sublet.kernel.texts import describe_duration


@dataclass(frozen=True)
class IdleEnd:
    """When a session ends unless someone opens it, and when its owner is told so."""

    idle: timedelta  # how long nobody may have it open
    seen: datetime  # since when nobody has
    warn: timedelta  # how long before the end its owner is told

    @property
    def at(self) -> datetime:
        """When it ends."""
        return self.seen + self.idle

    @property
    def warn_at(self) -> datetime:
        """When its owner is told; of a short time the last quarter is left."""
        return self.at - min(self.warn, self.idle / 4)

    @property
    def reason(self) -> str:
        """Who ends it, and why."""
        return f"sublet, because nobody had it open for {describe_duration(self.idle)}"

    def find_next_look(self, now: datetime) -> datetime:
        """When to look again; often once its owner was told, for someone may have opened it."""
        return self.warn_at if now < self.warn_at else min(self.at, now + self.idle / 8)


def choose_idle(executable: Executable | None, usual: timedelta | None) -> timedelta | None:
    """How long nobody may have it open: as the request says, but no longer than is usual here; None: for ever."""
    asked = executable.fields.get("idle") if executable else None
    wanted = parse_duration(str(asked)) if asked else None
    return min(filter(None, (wanted, usual)), default=None)
