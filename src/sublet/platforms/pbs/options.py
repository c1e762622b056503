"""Arguments of qsub for a job's amounts."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sublet.booking.model.scheduler import SchedulerOptions
from sublet.booking.model.shape import Amounts
from sublet.platforms.batch.planning import LEEWAY

MIB = 1 << 20
ADDED = re.compile(r"-A [\w.@+-]+|-p -?\d{1,4}|-l ([a-z]\w*)=[\w.:,+/@-]+", re.ASCII)
OWN = frozenset({"select", "walltime", "place", "nodes", "nodect", "ncpus", "mpiprocs", "mem", "ngpus", "cput"})


def check_options(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return options that a site's settings add for qsub; raise ValueError if one can't be added."""
    for word in words:
        match = ADDED.fullmatch(word)
        if match is None or match[1] in OWN:
            raise ValueError(f"{word!r} can't be added: write `-A ACCOUNT`, `-p PRIORITY` or `-l NAME=VALUE`")
    return words


@dataclass(frozen=True, slots=True)
class PbsWish:
    """What is requested of PBS for one job."""

    queue: str
    amounts: Amounts
    begin: datetime | None = None

    @property
    def limit(self) -> timedelta:
        """PBS's walltime for the job."""
        return timedelta(seconds=math.ceil((self.amounts.time + LEEWAY).total_seconds()))


def write_span(span: timedelta) -> str:
    """Write a time as PBS does: `01:30:00`."""
    minutes, seconds = divmod(math.ceil(span.total_seconds()), 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}"


def words_for(wish: PbsWish, asked: SchedulerOptions, added: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the arguments for qsub, with those of the site's settings; every value is one word."""
    amounts, each = wish.amounts, wish.amounts.shape
    chunk = f"select={amounts.nodes}:ncpus={each.cores}:mpiprocs={each.cores}"
    chunk += f":mem={math.ceil(each.memory / MIB)}mb" if each.memory else ""
    chunk += f":ngpus={each.gpus}" if each.gpus else ""
    is_array = amounts.parts > 1
    words = ["-r", "y" if is_array else "n"]  # PBS takes no arrays that it may not run again; job.sh runs nothing twice
    words += ["-l", chunk, "-l", f"walltime={write_span(wish.limit)}"]
    words += ["-l", "place=scatter"] if amounts.nodes > 1 else []
    words += ["-q", wish.queue] if wish.queue else []
    words += ["-P", asked.project] if asked.project else []
    words += ["-a", f"{wish.begin.astimezone(UTC):%Y%m%d%H%M.%S}"] if wish.begin else []
    words += ["-J", f"0-{amounts.parts - 1}"] if is_array else []
    return (*words, *(part for option in added for part in option.split(" ", 1)))
