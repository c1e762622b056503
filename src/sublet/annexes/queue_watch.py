"""When the queue of an access point is worth another look: each is a process, so none is taken in vain."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from sublet.annexes.pilots.access_point import AccessPoint
from sublet.annexes.pilots.own import OwnAccessPoint

OFTEN, SELDOM = timedelta(seconds=1), timedelta(seconds=10)  # between two looks at the queue, while it changes or not
UNSEEN = timedelta(seconds=2)  # the same, where the log of the queue can't be seen


@dataclass
class QueueWatch:
    """Knows when the queue is worth another look: once a second while its log grows, else now and then."""

    _looked: datetime | None = None
    _change: tuple[int, int] | None = None

    def is_due(self, point: AccessPoint, now: datetime) -> bool:
        """Whether to look now; whoever asks then looks."""
        waited = now - self._looked if self._looked else SELDOM
        change = None
        if isinstance(point, OwnAccessPoint):
            change = read_change(point.directory / "spool/job_queue.log")
        elif waited < UNSEEN:
            return False
        if waited < OFTEN or (change and change == self._change and waited < SELDOM):
            return False
        self._looked, self._change = now, change
        return True


def read_change(log: Path) -> tuple[int, int] | None:
    """Something that is another when a schedd's log of its queue has changed; None if it can't be seen."""
    try:
        seen = log.stat()
    except OSError:
        return None
    return seen.st_mtime_ns, seen.st_size
