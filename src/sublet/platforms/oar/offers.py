"""What OAR counts when it gives nodes: cores and GPUs; memory comes with cores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from sublet.booking.model.shape import Amounts
from sublet.platforms.batch.site import SiteNode


def share_memory(amounts: Amounts, nodes: Sequence[SiteNode]) -> Amounts:
    """The same with as many cores as come with its memory: OAR gives no memory by itself."""
    shape = amounts.shape
    able = [each.node for each in nodes if each.node.memory >= shape.memory and each.node.cores]
    if not able:
        return amounts
    share = min(math.ceil(shape.memory * node.cores / node.memory) for node in able)
    return replace(amounts, shape=replace(shape, cores=max(shape.cores, share)))
