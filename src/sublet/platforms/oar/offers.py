"""What OAR counts when it allocates nodes: cores and GPUs; memory comes with cores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from sublet.booking.model.shape import Amounts
from sublet.platforms.batch.site import SiteNode


def share_memory(amounts: Amounts, nodes: Sequence[SiteNode]) -> Amounts:
    """Return the amounts with enough cores for their memory, as OAR doesn't allocate memory separately."""
    shape = amounts.shape
    able = [each.node for each in nodes if each.node.memory >= shape.memory and each.node.cores]
    if not able:
        return amounts
    share = min(math.ceil(shape.memory * node.cores / node.memory) for node in able)
    return replace(amounts, shape=replace(shape, cores=max(shape.cores, share)))
