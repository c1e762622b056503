"""Limits that no start time can change: whether a platform could ever fulfil a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

from sublet.booking.model.amounts import duration_iso, memory_text
from sublet.booking.model.calendar import Calendar
from sublet.booking.model.offer import Answer, Node, Offer, Quote, Reason
from sublet.booking.model.pools import list_placements
from sublet.booking.model.prices import MONETARY, Bill
from sublet.booking.model.request import COMPUTE_WITH_NODES, PLAIN_COMPUTE, Compute, Limit, Request, Storage
from sublet.booking.model.shape import OF_A_NODE, Shape, is_enough
from sublet.kernel.texts import describe_duration

LIMIT = "urn:resource-limit"
UNKNOWN = "urn:unknown-kind"
NOT_SUPPORTED = "urn:not-supported"
COST = "urn:cost-limit"
FREE = (Quote(MONETARY, 0, 0),)

_KNOWN_COMPUTE = (PLAIN_COMPUTE, COMPUTE_WITH_NODES)


def check_limits(
    request: Request,
    calendar: Calendar,
    *,
    platform: str,
    pools: Mapping[str, int],
    metrics: Sequence[Quote],
    longest: timedelta | None,
) -> list[Reason]:
    """Return every reason why a platform could never fulfil the request, each with the nearest value that it could."""
    reasons = _kinds(request, platform)
    if longest is not None and request.duration > longest:
        asked, most = describe_duration(request.duration), describe_duration(longest)
        message = f"{platform} allows sessions of up to {most}; {asked} was asked for."
        reasons.append(
            Reason(LIMIT, "schedule.requested.duration", message, asked, most, duration_iso(longest), platform)
        )
    reasons += _nodes(request.compute, calendar.nodes, platform)
    reasons += _storage(request, pools, platform)
    return reasons + check_metrics(request, metrics, platform)


def check_metrics(request: Request, metrics: Sequence[Quote], platform: str) -> list[Reason]:
    """Return a reason for each requested metric that the platform misses or doesn't state."""
    reasons: list[Reason] = []
    for index, limit in enumerate(request.metrics):
        reasons += _metric(limit, limit.path or f"metrics[{index}]", metrics, platform)
    return reasons


def storage_of(request: Request) -> dict[str, int]:
    """Return the bytes to book for each storage, and for each data item of known size that names no storage."""
    sizes = {data.name: data.size or 0 for data in request.data}
    booked = {
        storage.name: max(storage.size.min, sum(sizes[name] for name in storage.data)) for storage in request.storage
    }
    booked |= {data.name: data.size for data in request.data if data.size and not data.storage}
    return booked


def list_named_pools(request: Request) -> dict[str, str]:
    """Return the pools that the request names for its storage."""
    return {storage.name: storage.pool for storage in request.storage if storage.pool}


def _kinds(request: Request, platform: str) -> list[Reason]:
    named = [] if request.compute.kind in _KNOWN_COMPUTE else [("compute", request.compute.kind, _KNOWN_COMPUTE[0])]
    named += [
        (f"compute.volumes[{i}]", volume.kind, "simple-volume-mount")
        for i, volume in enumerate(request.compute.volumes)
        if volume.kind != "simple-volume-mount"
    ]
    named += [
        (f"storage[{i}]", storage.kind, "simple-storage-resource")
        for i, storage in enumerate(request.storage)
        if storage.kind != "simple-storage-resource"
    ]
    return [
        Reason(UNKNOWN, f"{path}.kind", f"{platform} knows no {kind}; it has {known}.", kind, known, known, platform)
        for path, kind, known in named
    ]


def has(node: Node, compute: Compute) -> bool:
    """Whether an empty node has the minimum that is requested of each node."""
    return is_enough(node, compute.least)


def _nodes(compute: Compute, nodes: Sequence[Node], platform: str) -> list[Reason]:
    enough = 0
    for node in nodes:
        enough += has(node, compute)
        if enough >= compute.nodes.min:
            return []
    if not nodes:
        return [Reason(LIMIT, "compute", f"{platform} has no nodes now.", limit="0", platform=platform)]
    reasons = []
    for name in OF_A_NODE:
        wanted, limit = getattr(compute.least, name), max(getattr(node, name) for node in nodes)
        if wanted > limit:
            reasons.append(_too_much(name, wanted, limit, platform))
    if reasons or (enough == 0 and compute.nodes.min <= len(nodes)):
        return reasons or [_together(compute, nodes, platform)]
    count = enough or len(nodes)
    have = f"{count} such node{'s' if count > 1 else ''}"
    message = f"{platform} has {have}; {compute.nodes.min} were asked for."
    return [Reason(LIMIT, "compute.nodes.min", message, str(compute.nodes.min), str(count), str(count), platform)]


def check_pledged(compute: Compute, pledged: Shape, where: str) -> list[Reason]:
    """Return a reason for each amount that exceeds, over all nodes, what the pledges have."""
    reasons = []
    for name, noun in (("cores", "cores"), ("memory", "memory"), ("gpus", "GPUs")):
        wanted, there = getattr(compute.least, name) * compute.nodes.min, getattr(pledged, name)
        if wanted > there:
            each = there // max(compute.nodes.min, 1)
            asked, limit, most = (
                memory_text(size) if name == "memory" else str(size) for size in (wanted, there, each)
            )
            offered = f"{limit} of memory" if name == "memory" else f"{limit} {noun}"
            message = f"{where} has {offered} in all; {asked} {'was' if name == 'memory' else 'were'} asked for."
            reasons.append(Reason(LIMIT, f"compute.{name}.min", message, asked, limit, most))
    return reasons


def _too_much(name: str, wanted: int, limit: int, platform: str) -> Reason:
    is_size = name in ("memory", "disk")
    asked, most = (memory_text(wanted), memory_text(limit)) if is_size else (str(wanted), str(limit))
    amount = {"cores": "cores each", "memory": "of memory each", "gpus": "GPUs each", "disk": "of disk each"}[name]
    verb = "was" if is_size or wanted == 1 else "were"
    message = f"{platform} has nodes of up to {most} {amount}; {asked} {verb} asked for."
    if not limit:
        noun = "disk of its nodes that can be asked for" if name == "disk" else amount.split()[0]
        message = f"{platform} has no {noun}; {asked} {verb} asked for."
    return Reason(LIMIT, f"compute.{name}.min", message, asked, most, most, platform)


def _together(compute: Compute, nodes: Sequence[Node], platform: str) -> Reason:
    """Return the reason for amounts that exist, but only on different nodes."""
    able = [node for node in nodes if node.cores >= compute.cores.min and node.gpus >= compute.gpus.min]
    if not able:
        best = max((node for node in nodes if node.gpus >= compute.gpus.min), key=lambda node: node.cores)
        message = (
            f"{platform} has no node with both {compute.cores.min} cores and {compute.gpus.min} GPUs;"
            f" one with so many GPUs has {best.cores} cores."
        )
        wanted, limit = str(compute.cores.min), str(best.cores)
        return Reason(LIMIT, "compute.cores.min", message, wanted, limit, limit, platform)
    if any(node.memory >= compute.memory.min for node in able):
        roomy = [node for node in able if node.memory >= compute.memory.min]
        wanted, limit = memory_text(compute.disk.min), memory_text(max(node.disk for node in roomy))
        message = f"{platform} has at most {limit} of disk on a node with all else that was asked for, not {wanted}."
        return Reason(LIMIT, "compute.disk.min", message, wanted, limit, limit, platform)
    wanted, limit = memory_text(compute.memory.min), memory_text(max(node.memory for node in able))
    message = f"{platform} has at most {limit} of memory on a node with such cores and GPUs; {wanted} was asked for."
    return Reason(LIMIT, "compute.memory.min", message, wanted, limit, limit, platform)


def _storage(request: Request, pools: Mapping[str, int], platform: str) -> list[Reason]:
    """Return reasons for storage that no pool has, or that is smaller than its data."""
    if not (request.storage or request.data):
        return []
    booked, named = storage_of(request), list_named_pools(request)
    total = memory_text(sum(booked.values()))
    field = "storage" if request.storage else "data"
    if any(booked.values()) and not pools:
        message = f"{platform} has no storage that can be booked."
        return [Reason(NOT_SUPPORTED, field, message, total, "0B", platform=platform)]
    reasons = [
        reason
        for index, storage in enumerate(request.storage)
        for reason in _pool(storage, f"storage[{index}]", booked[storage.name], pools, platform)
    ]
    if not reasons and not list_placements(booked, named, pools):
        most = memory_text(sum(pools.values()))
        several = f" in {len(pools)} pools" if len(pools) > 1 else ""
        message = f"{platform} has {most} of storage{several}; {total} was asked for."
        where = "storage[0].size.min" if len(request.storage) == 1 else field
        reasons.append(Reason(LIMIT, where, message, total, most, most, platform))
    return reasons


def _pool(storage: Storage, path: str, size: int, pools: Mapping[str, int], platform: str) -> list[Reason]:
    """Return why no pool could hold one storage, whatever else is booked."""
    found = []
    if size > storage.size.max:
        most, text = memory_text(storage.size.max), memory_text(size)
        message = f"The data for {storage.name} has {text}, and its storage {most} at most."
        found.append(Reason(LIMIT, f"{path}.size.max", message, most, text, text, platform))
    if storage.pool and storage.pool not in pools:
        names = ", ".join(pools)
        message = f"{platform} has no storage pool {storage.pool}; it has: {names}."
        return [*found, Reason(LIMIT, f"{path}.pool", message, storage.pool, names, names, platform)]
    room = pools[storage.pool] if storage.pool else max(pools.values(), default=size)
    if size > room:
        asked, most = memory_text(size), memory_text(room)
        name = storage.pool or max(pools, key=pools.__getitem__)
        where = f" in its pool {name}" if len(pools) > 1 else ""
        message = f"{platform} has {most} of storage{where}; {asked} was asked for."
        found.append(Reason(LIMIT, f"{path}.size.min", message, asked, most, most, platform))
    return found


def _metric(limit: Limit, path: str, metrics: Sequence[Quote], platform: str) -> list[Reason]:
    if limit.min is None:
        return []
    quote = next((quote for quote in metrics if quote.type == limit.type), None)
    if quote is None:
        known = ", ".join(quote.type for quote in metrics) or "none"
        message = f"{platform} doesn't say how it performs by {limit.type}; it states {known}."
        return [Reason(NOT_SUPPORTED, f"{path}.type", message, limit.type, known, platform=platform)]
    if quote.min >= limit.min:
        return []
    asked, most = f"{limit.min:g}", f"{quote.min:g}"
    message = f"{platform} promises {most} by {limit.type}; {asked} was asked for."
    return [Reason(LIMIT, f"{path}.min", message, asked, most, most, platform)]


def check_costs(request: Request, bill: Bill, platform: str) -> list[Reason]:
    """Return a reason for each cost limit, total or of a component, that is exceeded or can't be compared."""
    reasons = []
    for index, limit in enumerate(request.costs):
        if limit.max is None:
            continue
        path = limit.path or f"costs[{index}]"
        quotes = bill.of(limit.part, request)
        quote = next((quote for quote in quotes if quote.type == limit.type), None)
        if quote is None:
            known = ", ".join(quote.type for quote in quotes)
            message = f"{platform} quotes no {limit.type}; it quotes {known}."
            reasons.append(Reason(NOT_SUPPORTED, f"{path}.type", message, limit.type, known, platform=platform))
        elif quote.max > limit.max:
            asked, price = f"{limit.max:g}", f"{quote.max:g}"
            what = limit.part or "this"
            message = f"{platform} asks at least {price} for {what} ({quote.description}); the limit is {asked}."
            reasons.append(Reason(COST, f"{path}.max", message, asked, price, price, platform))
    return reasons


def drop_unaffordable(answer: Answer, request: Request, platform: str) -> Answer:
    """Drop the offers that exceed the asker's cost limits from the answer of a platform with its own calendar.

    An offer without a price costs no money; its energy and carbon are unknown.
    """
    offers: list[Offer] = []
    reasons = list(answer.reasons)
    for offer in answer.offers:
        quotes = offer.costs or FREE
        over = check_costs(request, Bill(quotes, offer.compute_costs or quotes, offer.storage_costs), platform)
        reasons += over
        offers += [] if over else [offer]
    return Answer(tuple(offers), tuple(dict.fromkeys(reasons)))
