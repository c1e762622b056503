"""The words of oarsub: those that a job's amounts become, and those that were asked for beside them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sublet.booking.model.scheduler import SchedulerOptions
from sublet.booking.model.shape import Amounts
from sublet.platforms.batch.planning import LEEWAY
from sublet.platforms.oar.commands import STAMP
from sublet.platforms.oar.readers import DEFAULT_QUEUE

TAKEN = frozenset({"queue", "project", "gpu_type"})  # of what a person can ask of a scheduler: what OAR has a word for


@dataclass(frozen=True, slots=True)
class OarWish:
    """What is asked of OAR for one job."""

    queue: str
    amounts: Amounts
    core: str = "core"  # what the site calls the resource that is a core

    @property
    def limit(self) -> timedelta:
        """OAR's walltime for it."""
        return timedelta(seconds=math.ceil((self.amounts.time + LEEWAY).total_seconds()))


def write_span(span: timedelta) -> str:
    """A time as OAR writes it: `1:30:00`."""
    minutes, seconds = divmod(math.ceil(span.total_seconds()), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"


def words_for(wish: OarWish, asked: SchedulerOptions, constraint: str = "") -> tuple[str, ...]:
    """The words for oarsub; every value is one word."""
    each = wish.amounts.shape
    inner = f"/gpu={each.gpus}" if each.gpus else f"/{wish.core}={each.cores}"
    words = ["-l", f"/nodes={wish.amounts.nodes}{inner},walltime={write_span(wish.limit)}"]
    words += ["-q", wish.queue] if wish.queue and wish.queue != DEFAULT_QUEUE else []
    words += ["--project", asked.project] if asked.project else []
    model = f"gpu_model = '{asked.gpu_type}'" if asked.gpu_type else ""
    properties = " AND ".join(f"({each})" for each in (constraint, model) if each)
    words += ["-p", properties] if properties else []
    words += ["--array", str(wish.amounts.parts)] if wish.amounts.parts > 1 else []
    return tuple(words)


def words_to_reserve(wish: OarWish, asked: SchedulerOptions, start: datetime, constraint: str = "") -> tuple[str, ...]:
    """The same for a reservation from then on."""
    return ("-r", f"{start.astimezone(UTC):{STAMP}}", *words_for(wish, asked, constraint))
