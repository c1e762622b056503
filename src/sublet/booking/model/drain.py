"""The drain of a platform: running sessions may finish, and nothing new begins."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Drain:
    """An operator's order to drain a platform, and until when."""

    platform: str
    by: str
    created: datetime
    reason: str = ""
    until: datetime | None = None  # when the drain ends by itself; None: when an operator ends it
    ends: datetime | None = None  # when sessions that still run are cancelled; None: they may finish

    def is_active(self, now: datetime) -> bool:
        """Whether the drain is still in effect."""
        return self.until is None or now < self.until

    @property
    def sentence(self) -> str:
        """A public sentence about the drain, without full stop and without the operator's name."""
        until = f" until {self.until:%Y-%m-%d %H:%M} UTC" if self.until else ""
        reason = f": {self.reason.rstrip('.')}" if self.reason else ""
        return f"{self.platform} is being drained by its operator{until}{reason}"
