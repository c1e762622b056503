"""Environment variables that describe a job's amounts and places, the same on every platform."""

from __future__ import annotations

from collections.abc import Sequence

from sublet.booking.model.places import BoundPlace, variable_of
from sublet.booking.model.shape import Amounts


def tell_amounts(amounts: Amounts, *, each_node: bool = False) -> dict[str, str]:
    """Return the variables that describe what a program has: the amounts of each node, and the number of nodes.

    `OMP_NUM_THREADS` is 1 for a program that starts others on several nodes, since it starts one per core; with
    `each_node` the program uses all of its node's cores itself.
    """
    each = amounts.shape
    return {
        "OMP_NUM_THREADS": str(each.cores if amounts.nodes == 1 or each_node else 1),
        "SUBLET_CORES": str(each.cores),
        "SUBLET_MEMORY": str(each.memory),
        "SUBLET_GPUS": str(each.gpus),
        "SUBLET_DISK": str(each.disk),
        "SUBLET_NODES": str(amounts.nodes),
    }


def tell_places(places: Sequence[BoundPlace], work: str = "") -> dict[str, str]:
    """Return the variables with the paths of a job's places: below `work` if mounted there, else their own paths."""
    return {
        variable_of(place.name): f"{work}/{place.target}" if work and place.target[0] != "/" else place.path
        for place in places
    }
