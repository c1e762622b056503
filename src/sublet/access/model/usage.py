"""Usage from the records of sessions: core-hours, node-hours, and the number of people."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sublet.booking.model.session import Session
from sublet.kernel.errors import BadRequest

_QUARTER = re.compile(r"(\d{4})-?[Qq]([1-4])")
HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Ran:
    """One session that ran or is running: when, where, for whom, and on how much."""

    session: str
    person: str
    platform: str
    started: datetime
    ended: datetime | None  # None: still running
    nodes: int
    cores: int
    gpus: int


@dataclass(frozen=True, slots=True)
class Used:
    """What one person used of one platform in a quarter."""

    quarter: str
    platform: str
    person: str
    sessions: int = 0  # that ran in it
    running: int = 0  # of these, still running
    node_hours: float = 0.0
    core_hours: float = 0.0
    gpu_hours: float = 0.0


def ran(session: Session) -> Ran | None:
    """Return what a session used; None if it never started."""
    if session.started is None:
        return None
    offer = session.offer
    total, who = offer.amounts.total, (session.id, session.person, offer.platform)
    return Ran(*who, session.started, session.ended, total.nodes, total.cores, total.gpus)


def quarter_of(time: datetime) -> str:
    """Return the quarter of a time, as `2026Q4`, in UTC."""
    time = time.astimezone(UTC)
    return f"{time.year}Q{(time.month + 2) // 3}"


def parse_quarter(text: str) -> tuple[datetime, datetime]:
    """Return when a quarter begins, and when the next one does."""
    match = _QUARTER.fullmatch(text.strip())
    if not match or not 1970 <= int(match[1]) < 9999:
        raise BadRequest(detail=f"{text!r} is no quarter", hint="Write it as 2026Q4.")
    year, number = int(match[1]), int(match[2])
    start = datetime(year, 3 * number - 2, 1, tzinfo=UTC)
    return start, _next_quarter(start)


def _next_quarter(start: datetime) -> datetime:
    return datetime(start.year + (start.month == 10), (start.month + 2) % 12 + 1, 1, tzinfo=UTC)


def report(rows: Iterable[Ran], since: datetime, until: datetime, now: datetime) -> list[Used]:
    """Sum up usage by quarter, platform and person; a session that spans quarters is divided between them."""
    sums: dict[tuple[str, str, str], list[float]] = defaultdict(lambda: [0.0] * 5)
    for row in rows:
        start, end = max(row.started, since), min(row.ended or now, until)
        while start < end or (start == end and start == row.started):
            _, after = parse_quarter(quarter_of(start))
            hours = (min(end, after) - start) / HOUR
            amounts = (1, row.ended is None, row.nodes * hours, row.cores * hours, row.gpus * hours)
            row_sums = sums[quarter_of(start), row.platform, row.person]
            for index, amount in enumerate(amounts):
                row_sums[index] += amount
            if after >= end:
                break
            start = after
    return [Used(*key, int(n), int(running), *hours) for key, (n, running, *hours) in sorted(sums.items())]
