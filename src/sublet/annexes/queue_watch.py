"""Decides when to query the queue of an access point again, since each query starts a process."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from sublet.annexes.pilots.access_point import AccessPoint
from sublet.annexes.pilots.own import OwnAccessPoint

OFTEN, SELDOM = timedelta(seconds=1), timedelta(seconds=10)  # between queries, while it changes and not
UNSEEN = timedelta(seconds=2)  # the same, where the queue's log can't be read


@dataclass
class QueueWatch:
    """Decides when to query the queue: once a second while its log grows, otherwise less often."""

    _looked: datetime | None = None
    _change: tuple[int, int] | None = None

    def is_due(self, point: AccessPoint, now: datetime) -> bool:
        """Whether a query is due; the caller then makes it."""
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
    """Return a stamp that changes with a schedd's queue log, or None if the log can't be read."""
    try:
        seen = log.stat()
    except OSError:
        return None
    return seen.st_mtime_ns, seen.st_size
