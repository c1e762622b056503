"""The cost of nodes for an allocation: node-, core- and GPU-hours, and the centre's own unit where it is known."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from sublet.systems.model.system import Charge, NodeKind, Queue

HOUR = timedelta(hours=1)
_UNIT = re.compile(r"(?:(?P<coin>[\w-]+) per )?(?P<base>node|core|GPU)-hours?(?P<but>, times .*|, and .*|; .*)?")


class Sizes(Protocol):
    """The requested nodes, and the resources on each; None is unspecified."""

    @property
    def nodes(self) -> int | None: ...
    @property
    def cores(self) -> int | None: ...
    @property
    def memory(self) -> int | None: ...
    @property
    def gpus(self) -> int | None: ...


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a number of nodes for a time."""

    node_hours: float
    core_hours: float | None = None  # None: the number of cores of a node isn't known
    gpu_hours: float | None = None
    charged: float | None = None  # in the centre's own unit
    coin: str = ""
    remark: str = ""  # how the centre charges, where this can't be computed here, or not completely


def cost_of(details: Sizes, queue: Queue | None, time: timedelta) -> Cost:
    """Return the cost of these nodes for this time; a queue that allocates whole nodes charges for whole nodes."""
    kind = _kind(details, queue)
    whole = queue is not None and queue.sharing == "whole"
    hours = (details.nodes or 1) * (time / HOUR)
    cores = kind.cores if whole and kind else details.cores
    gpus = kind.gpus if whole and kind else details.gpus or 0
    amounts = {"node": hours, "core": _times(hours, cores), "GPU": _times(hours, gpus)}
    charge = _charge(queue, kind)
    unit = _UNIT.fullmatch(charge.unit) if charge else None
    if charge is None:
        return Cost(hours, amounts["core"], amounts["GPU"])
    base = amounts[unit["base"]] if unit else None
    if unit is None or base is None or (unit["base"] == "node" and not whole):
        return Cost(hours, amounts["core"], amounts["GPU"], remark=f"{charge.factor:g} {charge.unit}")
    coin = unit["coin"] or f"{unit['base']}-hours"
    remark = (unit["but"] or "").lstrip(",; ")
    return Cost(hours, amounts["core"], amounts["GPU"], charge.factor * base, coin, remark)


def _times(hours: float, amount: int | None) -> float | None:
    return None if amount is None else hours * amount


def _kind(details: Sizes, queue: Queue | None) -> NodeKind | None:
    """Return the type of node that the job would get: the first that has all requested resources, or else the first."""
    kinds = queue.nodes if queue else ()
    wanted = (details.cores or 0, details.memory or 0, details.gpus or 0)
    able = (kind for kind in kinds if _has(kind, *wanted))
    return next(able, kinds[0] if kinds else None)


def _has(kind: NodeKind, cores: int, memory: int, gpus: int) -> bool:
    return (kind.cores or cores) >= cores and (kind.most_memory or memory) >= memory and kind.gpus >= gpus


def _charge(queue: Queue | None, kind: NodeKind | None) -> Charge | None:
    charges = queue.charges if queue else ()
    of_kind = (charge for charge in charges if kind and charge.node == kind.name)
    return next(of_kind, next((charge for charge in charges if not charge.node), None))
