"""What every job is told of its amounts and places, in its environment, on whichever platform it runs."""

from __future__ import annotations

from collections.abc import Sequence

from sublet.booking.model.places import BoundPlace, variable_of
from sublet.booking.model.shape import Amounts


def tell_amounts(amounts: Amounts, *, each_node: bool = False) -> dict[str, str]:
    """The variables that a program reads to know what it has: on each node, and on how many.

    One that starts others on several nodes starts them for each core; one for `each_node` has its node's cores itself.
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
    """The variables that say where its places are: below `work`, where it sees them there, else where they lie."""
    return {
        variable_of(place.name): f"{work}/{place.target}" if work and place.target[0] != "/" else place.path
        for place in places
    }
