"""Which scheduler options count on a platform, and who may choose them there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

from sublet.booking.model.offer import Reason
from sublet.booking.model.scheduler import SchedulerOptions, Spec, scheduler_specs

NONE_HERE = "it has none"
OPERATORS = "on a gateway its operator chooses"


def find_refused(
    asked: SchedulerOptions, platform: str, takes: Callable[[str], bool], allowed: Collection[str] | None
) -> Reason | None:
    """Why one of these can't be chosen on a platform; `allowed` is what a gateway's operator lets people choose."""
    for spec, field, name, value in _each(asked):
        why = "" if takes(spec.name) else NONE_HERE
        if not why and not (allowed is None or name in allowed or (spec.is_open and field == spec.name)):
            why = OPERATORS
        if why:
            message = f"{spec.noun} can't be chosen on {platform}: {why}."
            return Reason("urn:not-supported", field, message, str(value), "", f"leave {field} out", platform)
    return None


def _each(asked: SchedulerOptions) -> Iterator[tuple[Spec, str, str, Any]]:
    """Each option, where it stands, under which name an operator allows it, and its value; free ones one by one."""
    for name, value in asked.said().items():
        spec = scheduler_specs()[name]
        if spec.kind is not tuple:
            yield spec, name, name, value
            continue
        for free, text in asked.free():
            yield spec, f"{name}.{free}", free, text
