"""What OAR counts when it allocates nodes: cores and GPUs; memory comes with cores."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace

from sublet.booking.model.shape import Amounts, Shape, is_enough
from sublet.platforms.batch.site import SiteNode

HOST = re.compile(r"[A-Za-z0-9_.:-]+")  # what may stand in a condition


def share_memory(amounts: Amounts, nodes: Sequence[SiteNode]) -> Amounts:
    """Return the amounts with enough cores for their memory, as OAR doesn't allocate memory separately."""
    shape = amounts.shape
    able = [each.node for each in nodes if each.node.memory >= shape.memory and each.node.cores]
    if not able:
        return amounts
    share = min(math.ceil(shape.memory * node.cores / node.memory) for node in able)
    return replace(amounts, shape=replace(shape, cores=max(shape.cores, share)))


def limit_hosts(amounts: Amounts, nodes: Sequence[SiteNode]) -> str:
    """Return a condition for the nodes with enough memory and disk, which OAR doesn't count; empty if all have."""
    shape = Shape(0, amounts.shape.memory, 0, amounts.shape.disk)
    able = [each.node.name for each in nodes if is_enough(each.node, shape)]
    others = [each.node.name for each in nodes if each.node.name not in set(able)]
    if not able or not others or not all(map(HOST.fullmatch, (*able, *others))):
        return ""
    few, word = (able, "IN") if len(able) <= len(others) else (others, "NOT IN")
    return f"network_address {word} ({', '.join(repr(name) for name in few)})"
