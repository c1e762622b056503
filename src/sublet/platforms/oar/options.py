"""Arguments of oarsub: those for a job's amounts, and those that were asked for besides."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sublet.booking.model.scheduler import SchedulerOptions
from sublet.booking.model.shape import Amounts
from sublet.platforms.batch.planning import LEEWAY
from sublet.platforms.oar.commands import STAMP
from sublet.platforms.oar.readers import DEFAULT_QUEUE

TAKEN = frozenset({"queue", "project", "gpu_type"})  # the scheduler options that OAR supports


@dataclass(frozen=True, slots=True)
class OarWish:
    """What is requested of OAR for one job."""

    queue: str
    amounts: Amounts
    core: str = "core"  # the site's name for a resource that is a core
    hosts: str = ""  # a condition for the nodes that are large enough; empty: all are

    @property
    def limit(self) -> timedelta:
        """OAR's walltime for the job."""
        return timedelta(seconds=math.ceil((self.amounts.time + LEEWAY).total_seconds()))


def write_span(span: timedelta) -> str:
    """Write a time as OAR does: `1:30:00`."""
    minutes, seconds = divmod(math.ceil(span.total_seconds()), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"


def words_for(wish: OarWish, asked: SchedulerOptions, constraint: str = "") -> tuple[str, ...]:
    """Return the arguments for oarsub; every value is one word."""
    each = wish.amounts.shape
    inner = f"/gpu={each.gpus}" if each.gpus else f"/{wish.core}={each.cores}"
    words = ["-l", f"/nodes={wish.amounts.nodes}{inner},walltime={write_span(wish.limit)}"]
    words += ["-q", wish.queue] if wish.queue and wish.queue != DEFAULT_QUEUE else []
    words += ["--project", asked.project] if asked.project else []
    model = f"gpu_model = '{asked.gpu_type}'" if asked.gpu_type else ""
    properties = " AND ".join(f"({each})" for each in (constraint, model, wish.hosts) if each)
    words += ["-p", properties] if properties else []
    words += ["--array", str(wish.amounts.parts)] if wish.amounts.parts > 1 else []
    return tuple(words)


def words_to_reserve(wish: OarWish, asked: SchedulerOptions, start: datetime, constraint: str = "") -> tuple[str, ...]:
    """Return the arguments for a reservation from `start` on."""
    return ("-r", f"{start.astimezone(UTC):{STAMP}}", *words_for(wish, asked, constraint))
