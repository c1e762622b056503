"""What a failed command on a system means: the system is away, full or unsafe, or it refuses."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from sublet.kernel.errors import DiskFull, PlatformRefused, PlatformUnreachable, SubletError, UnsafeSite
from sublet.reach.port import Outcome

T = TypeVar("T")
NO_ROOM = re.compile(r"quota exceeded|no space left", re.IGNORECASE)
UNSAFE = 77  # the exit code of scripts that found a directory which others can write to
NO_COMMAND = 127


@dataclass(frozen=True, slots=True)
class Failures:
    """Explains the failures on one platform; `away` matches messages of a scheduler that is temporarily unavailable."""

    platform: str
    scheduler: str  # its name for people
    away: re.Pattern[str]

    def explain(self, outcome: Outcome) -> SubletError:
        """Return the error that a failed command stands for, with the command's own message."""
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
        """Wrap a reader of a command's output so that it raises an error if the command failed or can't be read."""

        def check(outcome: Outcome) -> T:
            if outcome.code:
                raise self.explain(outcome)
            return self.read(lambda: reader(outcome.text))

        return check

    def read(self, reader: Callable[[], T]) -> T:
        """Return what a reader makes of an answer; raise PlatformUnreachable if it can't be read.

        An answer that can't be read must not look as if there were no jobs or no nodes.
        """
        try:
            return reader()
        except ValueError as error:
            why = f"{self.scheduler}'s answer can't be read: {error}"
            raise PlatformUnreachable(platform=self.platform, why=why) from error


def read_if_possible(reader: Callable[[str], dict[str, T]]) -> Callable[[Outcome], dict[str, T]]:
    """Wrap a reader of a scheduler's history, which may be missing, cut off, or unreadable: then it says nothing."""

    def read(outcome: Outcome) -> dict[str, T]:
        try:
            return reader(outcome.text)
        except ValueError:
            return {}

    return read
