"""What offers take of a calendar: a single offer by itself, and a whole set while it is held."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import pairwise

from sublet.booking.model.offer import Offer, Remote, Take, take_of
from sublet.booking.model.pledge import pool_of, storage_pool

PASSING_ON = timedelta(seconds=10)  # how much sooner an offer expires here than at the broker that made it


def takes_of(offer: Offer, start: datetime | None = None) -> tuple[Take, ...]:
    """Return what to book for an offer that starts then: nodes and pledges for its time, storage from preparing on."""
    return _takes(offer, start or offer.start, offer.duration)


def hold_of(offers: Iterable[Offer]) -> tuple[Take, ...]:
    """Return what to hold for offers of which at most one is accepted: at each moment, the most that any needs."""
    where: dict[tuple[str, bool], list[Take]] = {}
    for offer in offers:
        for take in _takes(offer, offer.start, offer.duration + (offer.latest_start - offer.start)):
            where.setdefault((take.where, take.pool), []).append(take)
    return tuple(step for takes in where.values() for step in most(takes))


def expiry_of(offer: Offer, now: datetime, hold: timedelta) -> datetime:
    """Return when an offer expires: after the hold, but before it must be prepared or another broker lets it expire."""
    if isinstance(offer.terms, Remote):
        left = offer.terms.expires - now
        return min(now + hold, now + left - min(PASSING_ON, left / 2))
    return min(now + hold, offer.latest_start - offer.prepare) if offer.terms.kind == "booked" else now + hold


def _takes(offer: Offer, start: datetime, length: timedelta) -> tuple[Take, ...]:
    end = start + length
    shape = offer.shape
    takes = [take_of(node, start, end, shape) for node in offer.nodes]
    for pool, size in offer.pool_sizes.items():
        takes.append(Take(pool, start - offer.prepare, end + offer.release, size=size, pool=True))
    if offer.pledge:
        cores, memory, gpus = (each * len(offer.nodes) for each in (shape.cores, shape.memory, shape.gpus))
        pledge = pool_of(offer.pledge)
        takes.append(Take(pledge, start, end, 0, memory, gpus, size=cores, pool=True))
        if size := sum(offer.pool_sizes.values()):
            takes.append(Take(storage_pool(pledge), start - offer.prepare, end + offer.release, size=size, pool=True))
    return tuple(takes)


def most(takes: Sequence[Take]) -> list[Take]:
    """Return steps that don't overlap, each the componentwise maximum of the takes that cover it."""
    if len(takes) == 1:
        return list(takes)
    first = takes[0]
    times = sorted({time for take in takes for time in (take.start, take.end)})
    steps: list[Take] = []
    for start, end in pairwise(times):
        cores = memory = gpus = size = disk = 0
        for take in takes:
            if take.start <= start and take.end >= end:
                cores, memory = max(cores, take.cores), max(memory, take.memory)
                gpus, size, disk = max(gpus, take.gpus), max(size, take.size), max(disk, take.disk)
        if not (cores or memory or gpus or size or disk):
            continue
        last = steps[-1] if steps else None
        same = last and last.end == start and (last.cores, last.memory, last.gpus, last.size, last.disk)
        if last and same == (cores, memory, gpus, size, disk):
            start = last.start
            steps.pop()
        steps.append(Take(first.where, start, end, cores, memory, gpus, size, first.pool, disk))
    return steps
