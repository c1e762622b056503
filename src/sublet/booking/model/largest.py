"""The most of what is asked for that some nodes, or some pledges, have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sublet.booking.model.limits import has
from sublet.booking.model.offer import Node, sum_pools
from sublet.booking.model.request import GIB, Compute, Request
from sublet.booking.model.shape import OF_A_NODE, Shape


def most_on(nodes: Sequence[Node], compute: Compute) -> tuple[Shape, int]:
    """The largest shape, on as many nodes as possible, that these nodes have and the maxima allow."""
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
    """Memory in whole GiB, as documents count it, but never less than the least; all of it, if that is the maximum."""
    return memory if memory == compute.memory.max else max(memory // GIB * GIB, compute.memory.min)


def most_within(shape: Shape, nodes: int, pledged: Shape, compute: Compute) -> tuple[Shape, int]:
    """The same, or as much of it as has so much at the most over all nodes; never less than the least."""
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
    """The most that each storage may have, the first ones first, where their pools have so much room for all."""
    most = dict(least)
    left = {pool: size - sum_pools(least, pools).get(pool, 0) for pool, size in room.items()}
    for storage in request.storage:
        pool = pools.get(storage.name, "")
        more = max(min(storage.size.max - least[storage.name], left.get(pool, 0)), 0)
        most[storage.name] += more
        left[pool] = left.get(pool, 0) - more
    return most
