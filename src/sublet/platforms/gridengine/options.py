"""Arguments of qsub and qrsub: those for a job's amounts, and those that were asked for besides."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from sublet.booking.model.scheduler import SchedulerOptions
from sublet.booking.model.shape import Amounts
from sublet.platforms.batch.planning import LEEWAY
from sublet.platforms.gridengine.readers import DISK, GPU, MEMORY, Complex, GridQueue, ParallelEnvironment

MIB = 1 << 20
STAMP = "%Y%m%d%H%M.%S"
TAKEN = frozenset({"queue", "project"})  # the scheduler options that Grid Engine supports


@dataclass(frozen=True, slots=True)
class GridWish:
    """What is requested of Grid Engine for one job."""

    queue: str
    amounts: Amounts
    environment: str = ""  # the one that gives several slots
    begin: datetime | None = None
    longest: timedelta | None = None  # the queue's own limit

    @property
    def limit(self) -> timedelta:
        """Grid Engine's time limit for the job."""
        wanted = timedelta(seconds=math.ceil((self.amounts.time + LEEWAY).total_seconds()))
        return min(wanted, self.longest) if self.longest and self.longest >= self.amounts.time else wanted

    def cut(self, parts: int) -> GridWish:
        """Return the same wish for each of this many parts."""
        return replace(self, amounts=replace(self.amounts, parts=parts))


def list_environments(
    amounts: Amounts, queue: GridQueue, environments: Sequence[ParallelEnvironment], named: str = ""
) -> list[ParallelEnvironment]:
    """Return the queue's parallel environments that give these slots, the best first; or only the named one."""
    if named:
        return [each for each in environments if each.name == named]
    able = [each for each in environments if each.name in queue.environments]
    able = [each for each in able if each.gives(amounts.nodes, amounts.shape.cores)]
    return sorted(able, key=lambda each: amounts.nodes > 1 and not each.starts_tasks)


def words_for(wish: GridWish, complexes: Mapping[str, Complex], asked: SchedulerOptions) -> tuple[str, ...]:
    """Return the arguments for qsub; every value is one word."""
    words = [*_list_places(wish, complexes), "-l", f"h_rt={math.ceil(wish.limit.total_seconds())}"]
    words += ["-P", asked.project] if asked.project else []
    words += ["-a", f"{wish.begin.astimezone(UTC):{STAMP}}"] if wish.begin else []
    words += ["-t", f"1-{wish.amounts.parts}"] if wish.amounts.parts > 1 else []
    return tuple(words)


def words_to_reserve(wish: GridWish, complexes: Mapping[str, Complex], start: datetime) -> tuple[str, ...]:
    """Return the arguments for qrsub: a reservation from `start` on, a little longer than the job may last."""
    end = start + wish.limit + LEEWAY / 2
    times = ("-a", f"{start.astimezone(UTC):{STAMP}}", "-e", f"{end.astimezone(UTC):{STAMP}}")
    return (*times, *_list_places(wish, complexes))


def _list_places(wish: GridWish, complexes: Mapping[str, Complex]) -> Iterator[str]:
    """Yield the arguments for where the job is to run, and what it takes there."""
    slots = wish.amounts.nodes * wish.amounts.shape.cores
    if wish.queue:
        yield from ("-q", wish.queue)
    if wish.environment:
        yield from ("-pe", wish.environment, str(slots))
    for value in _list_values(wish.amounts, complexes):
        yield from ("-l", value)


def _list_values(amounts: Amounts, complexes: Mapping[str, Complex]) -> Iterator[str]:
    each, shape = amounts.shape.cores, amounts.shape
    for names, amount, unit in ((MEMORY, shape.memory, MIB), (GPU, shape.gpus, 1), (DISK, shape.disk, MIB)):
        known = find_complex(names, complexes)
        if known and amount:
            count = math.ceil(amount / unit / (each if known.each else 1))
            yield f"{known.name}={count}{'M' if unit == MIB else ''}"


def find_complex(names: Sequence[str], complexes: Mapping[str, Complex]) -> Complex | None:
    """Return the first of these complexes that a site has."""
    return next((complexes[name] for name in names if name in complexes), None)


def find_indivisible(amounts: Amounts, complexes: Mapping[str, Complex]) -> str:
    """Return why GPUs can't be given with this many cores, if a site counts them per slot; empty if they can."""
    known, cores = find_complex(GPU, complexes), amounts.shape.cores
    if known and known.each and amounts.shape.gpus % cores:
        return f"it counts {known.name} for each core, so GPUs come in multiples of the {cores} cores"
    return ""
