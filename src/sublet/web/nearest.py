"""The nearest YES of a reason, put into the form."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC

from sublet.core.amounts import MIB, duration_text, memory_text, parse_count, parse_duration, parse_memory
from sublet.core.offer import Reason
from sublet.core.windows import parse_instant
from sublet.errors import BadAmount
from sublet.web.form import Values, field_of
from sublet.web.words import machine

ROOM = "PT1H"  # how long after the next free time a start is welcome: others may be quicker


def _memory(text: str) -> str:
    size = parse_memory(text)
    return memory_text(size // MIB * MIB) if size > MIB else memory_text(size)


def _start(text: str) -> str:
    return f"{machine(parse_instant(text).astimezone(UTC))}/{ROOM}"


def _count(text: str) -> str:
    return str(parse_count(text, least=0))


READ: dict[str, Callable[[str], str]] = {
    "cores": _count,
    "nodes": _count,
    "gpus": _count,
    "memory": _memory,
    "time": lambda text: duration_text(parse_duration(text)),
    "start": _start,
}


def with_nearest(values: Values, reason: Reason) -> Values | None:
    """The same request with what the reason says would be possible; None if that can't be typed into the form."""
    name = field_of(reason.field)
    read = READ.get(name)
    if read is None or not reason.nearest:
        return None
    try:
        return values | {name: read(reason.nearest)}
    except BadAmount:
        return None
