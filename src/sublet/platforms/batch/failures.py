"""What it means that a command on a system failed: the system is away, full or unsafe, or it refuses."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from sublet.kernel.errors import DiskFull, PlatformRefused, PlatformUnreachable, SubletError, UnsafeSite
from sublet.reach.port import Outcome

T = TypeVar("T")
NO_ROOM = re.compile(r"quota exceeded|no space left", re.IGNORECASE)
UNSAFE = 77  # the exit code of scripts that found a directory which others could change
NO_COMMAND = 127


@dataclass(frozen=True, slots=True)
class Failures:
    """How the failures on one platform are told; `away` are a scheduler's words that it can't answer for now."""

    platform: str
    scheduler: str  # as people call it
    away: re.Pattern[str]

    def explain(self, outcome: Outcome) -> SubletError:
        """What a command's failure means, in its own words."""
        words = outcome.complaint
        if outcome.code == NO_COMMAND:
            return PlatformRefused(
                platform=self.platform,
                why=words,
                hint=f"{self.scheduler}'s commands must be on the PATH there, also for ssh without a terminal.",
            )
        if outcome.code == UNSAFE:
            return UnsafeSite(platform=self.platform, why=words)
        if NO_ROOM.search(words):
            return DiskFull(platform=self.platform, why=words)
        kind = PlatformUnreachable if self.away.search(words) else PlatformRefused
        return kind(platform=self.platform, why=words)

    def reading(self, reader: Callable[[str], T]) -> Callable[[Outcome], T]:
        """A reader of what a command printed, if it succeeded."""

        def check(outcome: Outcome) -> T:
            if outcome.code:
                raise self.explain(outcome)
            return reader(outcome.text)

        return check
