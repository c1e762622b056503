"""A platform that is being drained: what runs there may finish, and nothing new begins."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Drain:
    """An operator's wish to empty a platform, and until when."""

    platform: str
    by: str
    created: datetime
    reason: str = ""
    until: datetime | None = None  # when it ends by itself; None: when an operator ends it
    ends: datetime | None = None  # when what still runs is cancelled; None: it may finish

    def is_active(self, now: datetime) -> bool:
        """Whether it still counts."""
        return self.until is None or now < self.until

    @property
    def sentence(self) -> str:
        """What everyone is told of it, without a full stop; the operator's name is not for everyone."""
        until = f" until {self.until:%Y-%m-%d %H:%M} UTC" if self.until else ""
        reason = f": {self.reason.rstrip('.')}" if self.reason else ""
        return f"{self.platform} is being drained by its operator{until}{reason}"
