"""Which scheduler options a platform takes, and who may choose them there."""

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
    """Return why an option can't be chosen on a platform, or None; `allowed` is what a gateway's operator permits."""
    for spec, field, name, value in _each(asked):
        why = "" if takes(spec.name) else NONE_HERE
        if not why and not _is_allowed(spec, name, allowed):
            why = OPERATORS
        if why:
            message = f"{spec.noun} can't be chosen on {platform}: {why}."
            return Reason("urn:not-supported", field, message, str(value), "", f"leave {field} out", platform)
    return None


def list_choosable(takes: Callable[[str], bool], allowed: Collection[str] | None) -> tuple[Spec, ...]:
    """List the options that people can choose on a platform; free ones if the operator allows any of them."""
    specs = [spec for name, spec in scheduler_specs().items() if takes(name)]
    return tuple(spec for spec in specs if any(_is_allowed(spec, name, allowed) for name in _names(spec, allowed)))


def _names(spec: Spec, allowed: Collection[str] | None) -> Collection[str]:
    """Return the names under which an operator can allow an option."""
    is_free = spec.kind is tuple and allowed is not None
    return set(allowed or ()) - set(scheduler_specs()) if is_free else (spec.name,)


def _is_allowed(spec: Spec, name: str, allowed: Collection[str] | None) -> bool:
    return allowed is None or spec.is_open or name in allowed


def _each(asked: SchedulerOptions) -> Iterator[tuple[Spec, str, str, Any]]:
    """Yield each option with its field, the name under which an operator allows it, and its value; free ones singly."""
    for name, value in asked.list_asked().items():
        spec = scheduler_specs()[name]
        if spec.kind is not tuple:
            yield spec, name, name, value
            continue
        for free, text in asked.free():
            yield spec, f"{name}.{free}", free, text
