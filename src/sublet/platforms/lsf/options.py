"""Arguments of bsub for a job's amounts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sublet.booking.model.scheduler import SchedulerOptions
from sublet.booking.model.shape import Amounts
from sublet.platforms.batch.planning import LEEWAY

MIB, MINUTE = 1 << 20, timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class LsfWish:
    """What is requested of LSF for one job."""

    queue: str
    amounts: Amounts
    begin: datetime | None = None

    @property
    def limit(self) -> timedelta:
        """LSF's run limit for the job, in whole minutes."""
        return math.ceil((self.amounts.time + LEEWAY) / MINUTE) * MINUTE


def words_for(wish: LsfWish, asked: SchedulerOptions) -> tuple[str, ...]:
    """Return the arguments for bsub; every value is one word."""
    amounts, each = wish.amounts, wish.amounts.shape
    words = ["-n", str(amounts.nodes * each.cores), "-R", f"span[ptile={each.cores}]"]
    words += ["-R", f"rusage[mem={math.ceil(each.memory / MIB)}MB]"] if each.memory else []
    words += ["-gpu", f"num={each.gpus}"] if each.gpus else []
    words += ["-W", str(wish.limit // MINUTE)]
    words += ["-q", wish.queue] if wish.queue else []
    words += ["-P", asked.project] if asked.project else []
    words += ["-b", f"{_round_up(wish.begin):%Y:%m:%d:%H:%M}"] if wish.begin else []
    return tuple(words)


def _round_up(begin: datetime) -> datetime:
    """Return the first whole minute from this time on, because bsub takes no seconds."""
    return (begin + MINUTE - timedelta.resolution).astimezone(UTC).replace(second=0, microsecond=0)
