"""The resources of an app: their names and units, what may be requested, and what that is in nodes and cores."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from sublet.apps.model.manifest import Manifest, ResourceBounds
from sublet.booking.model.amounts import (
    MIB,
    MOST_COUNT,
    memory_text,
    parse_count,
    parse_duration,
    parse_memory,
)
from sublet.booking.model.amounts import quote_value as describe_price
from sublet.booking.model.offer import Reason
from sublet.booking.model.request import GIB
from sublet.booking.model.shape import Amounts, Shape
from sublet.kernel.errors import BadAmount
from sublet.kernel.texts import describe_duration

COUNT, MEMORY, TIME = "count", "memory", "time"
# name → its unit, and the least that makes sense
NAMES: dict[str, tuple[str, int]] = {
    "nodes": (COUNT, 1),
    "tasks": (COUNT, 1),  # copies of the execution stage, over all nodes
    "cores": (COUNT, 1),  # per task
    "memory": (MEMORY, MIB),  # per node
    "memory_per_core": (MEMORY, MIB),
    "memory_per_gpu": (MEMORY, MIB),
    "gpus": (COUNT, 0),  # per node
    "gpus_per_task": (COUNT, 0),
    "gpus_in_all": (COUNT, 0),
    "time": (TIME, 1),
}
DEFAULT_TIME = timedelta(hours=2)


@dataclass(frozen=True, slots=True)
class Sized:
    """The amounts of one run of an app, and the tasks that it starts over all nodes."""

    amounts: Amounts
    tasks: int = 1


def parse(name: str, value: object) -> int:
    """Parse an amount of a resource: `8GiB` to bytes, `2h` to seconds; raise BadAmount if it is invalid."""
    unit, least = NAMES[name]
    if unit == COUNT:
        return parse_count(value, f"a number of {name}", least)
    if not isinstance(value, str):
        example = "2h or 30m" if unit == TIME else "8GiB"
        raise BadAmount(text=describe_price(value), what=f"an amount of {name} with its unit", example=example)
    amount = round(parse_duration(value).total_seconds()) if unit == TIME else parse_memory(value)
    if amount < least:
        raise BadAmount(text=describe_price(value), what=f"enough {name}", example=text(name, least))
    return amount


def text(name: str, amount: int) -> str:
    """Format an amount for people."""
    unit = NAMES[name][0]
    if unit == TIME:
        return describe_duration(timedelta(seconds=amount))
    return memory_text(amount) if unit == MEMORY else str(amount)


def wrong(manifest: Manifest, wanted: Mapping[str, int]) -> list[Reason]:
    """Return which of the wanted amounts the manifest doesn't allow."""
    reasons = []
    for name, amount in wanted.items():
        bounds = manifest.resources.get(name)
        if name not in NAMES:
            reasons.append(_reason(name, f"there is no resource {name}.", describe_price(amount), ", ".join(NAMES)))
        elif bounds is None:
            reasons += _fill_unsaid(manifest, name, amount)
        elif not bounds.min <= amount <= bounds.max:
            limit = f"{text(name, bounds.min)} to {text(name, bounds.max)}"
            nearest = text(name, min(max(amount, bounds.min), bounds.max))
            message = f"{manifest.name} can use {limit} of {name}, not {text(name, amount)}."
            reasons.append(_reason(name, message, text(name, amount), limit, nearest))
        elif _between_steps(bounds, amount):
            near = min(bounds.min + round((amount - bounds.min) / bounds.step) * bounds.step, bounds.max)
            message = f"{manifest.name} uses {name} in steps of {text(name, bounds.step)}, not {text(name, amount)}."
            limit = f"steps of {text(name, bounds.step)}"
            reasons.append(_reason(name, message, text(name, amount), limit, text(name, near)))
    return reasons


def _between_steps(bounds: ResourceBounds, amount: int) -> bool:
    """Whether an amount is none of a slider's: in steps from the minimum or from zero, its default, or its maximum."""
    off = (amount - bounds.min) % bounds.step and amount % bounds.step
    return bool(off) and amount not in (bounds.default, bounds.max)


def _fill_unsaid(manifest: Manifest, name: str, amount: int) -> list[Reason]:
    """Return a reason if an amount that the manifest doesn't mention differs from its default."""
    least = NAMES[name][1]
    if NAMES[name][0] != COUNT or amount == least:
        return []
    message = f"{manifest.name} can't use {amount} {name}: its manifest says nothing of {name}."
    return [_reason(name, message, str(amount), str(least), str(least))]


def _reason(name: str, message: str, wanted: str, limit: str, nearest: str = "") -> Reason:
    return Reason("urn:resource-limit", f"resources.{name}", message, wanted, limit, nearest)


def size_run(manifest: Manifest, wanted: Mapping[str, int] | None = None) -> Sized:
    """Return the size of a run: the wanted amounts, or the manifest's defaults, per node."""
    given = {name: bounds.default for name, bounds in manifest.resources.items()} | dict(wanted or {})
    tasks = given.get("tasks", 1)
    nodes = given.get("nodes", 1)
    there = math.ceil(tasks / nodes)  # tasks on the fullest node
    cores = there * given.get("cores", 1)
    gpus = max(
        given.get("gpus", 0), there * given.get("gpus_per_task", 0), math.ceil(given.get("gpus_in_all", 0) / nodes)
    )
    memory = max(given.get("memory", 0), cores * given.get("memory_per_core", 0), gpus * given.get("memory_per_gpu", 0))
    time = timedelta(seconds=given["time"]) if "time" in given else DEFAULT_TIME
    return Sized(Amounts(Shape(cores, memory or GIB, gpus), nodes, time), tasks)


def size_least_run(manifest: Manifest) -> Sized:
    """Return the smallest run per node: everything at its minimum, on as many nodes as possible."""
    least = {name: bounds.min for name, bounds in manifest.resources.items()}
    return size_run(manifest, least | {name: manifest.resources[name].max for name in ("nodes",) if name in least})


def check_bounds(name: str, bounds: ResourceBounds) -> Sequence[str]:
    """Return what is wrong with the bounds themselves."""
    least = NAMES[name][1]
    problems = []
    if bounds.min < least:
        problems.append(f"its min {text(name, bounds.min)} is less than {text(name, least)}")
    if bounds.min > bounds.max:
        problems.append(f"its min {text(name, bounds.min)} is more than its max {text(name, bounds.max)}")
    elif not bounds.min <= bounds.default <= bounds.max:
        span = f"{text(name, bounds.min)} to {text(name, bounds.max)}"
        problems.append(f"its default {text(name, bounds.default)} is not within {span}")
    if bounds.step < 1:
        problems.append("its step must be at least 1")
    if NAMES[name][0] == COUNT and bounds.max > MOST_COUNT:
        problems.append(f"its max is more than {MOST_COUNT}")
    return problems
