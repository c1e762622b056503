"""The largest amounts, up to a request's maxima, that some nodes or pledges have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sublet.booking.model.limits import has
from sublet.booking.model.offer import Node, sum_pools
from sublet.booking.model.request import GIB, Compute, Request
from sublet.booking.model.shape import OF_A_NODE, Shape


def most_on(nodes: Sequence[Node], compute: Compute) -> tuple[Shape, int]:
    """Return the largest shape, on as many nodes as possible, that these nodes have and the maxima allow."""
    able = sorted(
        (
            tuple(min(getattr(n, name), getattr(compute.most, name)) for name in OF_A_NODE)
            for n in nodes
            if has(n, compute)
        ),
        reverse=True,
    )[: compute.nodes.max]
    if len(able) < compute.nodes.min:
        return compute.least, compute.nodes.min
    cores, memory, gpus, disk = (min(amounts) for amounts in zip(*able, strict=True))
    return Shape(cores, whole_memory(memory, compute), gpus, disk), len(able)


def whole_memory(memory: int, compute: Compute) -> int:
    """Round memory down to whole GiB, as documents count it, but not below the minimum; keep the maximum as it is."""
    return memory if memory == compute.memory.max else max(memory // GIB * GIB, compute.memory.min)


def most_within(shape: Shape, nodes: int, pledged: Shape, compute: Compute) -> tuple[Shape, int]:
    """Reduce a shape and node count to what the pledges have over all nodes, but not below the minimum."""
    names = ("cores", "memory", "gpus")
    least = {name: getattr(compute.least, name) for name in names}
    fitting = min(getattr(pledged, name) // max(least[name], 1) for name in names)
    count = max(min(nodes, fitting), compute.nodes.min)
    each = {name: getattr(pledged, name) // max(count, 1) for name in names}
    some = {name: max(min(getattr(shape, name), each[name]), least[name]) for name in names}
    return replace(shape, **some | {"memory": whole_memory(some["memory"], compute)}), count


def most_storage(
    request: Request, least: Mapping[str, int], pools: Mapping[str, str], room: Mapping[str, int]
) -> dict[str, int]:
    """Return the largest size of each storage, up to its maximum, that the pools have room for; earlier ones first."""
    most = dict(least)
    left = {pool: size - sum_pools(least, pools).get(pool, 0) for pool, size in room.items()}
    for storage in request.storage:
        pool = pools.get(storage.name, "")
        more = max(min(storage.size.max - least[storage.name], left.get(pool, 0)), 0)
        most[storage.name] += more
        left[pool] = left.get(pool, 0) - more
    return most
