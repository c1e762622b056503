"""The nearest possible values that reasons name, put into the form."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC

from sublet.booking.model.amounts import MIB, duration_text, memory_text, parse_count, parse_duration, parse_memory
from sublet.booking.model.offer import Reason
from sublet.booking.model.windows import parse_instant
from sublet.booking.pages.form import Values, field_of
from sublet.kernel.errors import BadAmount
from sublet.web.words import machine

ROOM = "PT1H"  # how long after the next free time it may still start: others may be quicker


def _memory(text: str) -> str:
    size = parse_memory(text)
    return memory_text(size // MIB * MIB) if size > MIB else memory_text(size)


def _start(text: str) -> str:
    begin, _, end = text.partition("/")
    return f"{machine(parse_instant(begin).astimezone(UTC))}/{end or ROOM}"


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


def heed_reasons(values: Values, reasons: Iterable[Reason]) -> tuple[Values, str]:
    """Return the form's values with what the reasons say is possible, and the first field that this changes, if any."""
    first = ""
    for reason in reasons:
        name = field_of(reason.field)
        read = READ.get(name)
        if read is None or not reason.nearest:
            continue
        try:
            values = values | {name: read(reason.nearest)}
        except BadAmount:
            continue
        first = first or name
    return values, first
