"""Fields of a broker's documents, in the newest schema or in an older one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from sublet.booking.model.amounts import parse_duration
from sublet.booking.model.offer import Quote
from sublet.booking.model.request import GIB
from sublet.booking.model.windows import parse_instant, parse_interval
from sublet.kernel.errors import BadAmount

Document = Mapping[str, Any]  # parsed from JSON or YAML: plain dictionaries and lists only
PHASE_NAMES = ("phase", "state", "status")  # in the newest schema, and in older ones
OLDER_PHASES = {"READY": "AVAILABLE", "PROPOSED": "OFFERED", "TEARDOWN": "RELEASING", "INITIAL": "OFFERED"}
LONGEST_TEXT = 1000


class UnreadableField(ValueError):
    """A field of a broker's document can't be read; the words say which."""


def read_map(document: Document, *path: str) -> Document:
    """Return the map at a path; empty if there is none."""
    value: Any = document
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def read_maps(document: Document, name: str) -> Iterator[Document]:
    """Yield the maps in a list."""
    value = document.get(name)
    if isinstance(value, list):
        yield from (item for item in value if isinstance(item, dict))


def read_text(document: Document, *names: str) -> str:
    """Return the first of these fields that is text; empty if none is."""
    values = (document.get(name) for name in names)
    return next((value[:LONGEST_TEXT] for value in values if isinstance(value, str) and value), "")


def read_meta(document: Document, *names: str) -> str:
    """Return a field of a component's metadata, in `meta` or, in older schemas, beside it."""
    return read_text(read_map(document, "meta"), *names) or read_text(document, *names)


def read_messages(document: Document) -> list[Document]:
    """Return the messages of a component, or the reasons that the first draft had instead."""
    inside, beside = read_maps(read_map(document, "meta"), "messages"), read_maps(document, "messages")
    return [*inside, *beside, *read_maps(document, "reasons")]


def read_phase(document: Document) -> str:
    """Return a session's phase, in the words of the newest schema."""
    word = read_text(document, *PHASE_NAMES).upper()
    return OLDER_PHASES.get(word, word)


def read_time(text: str, what: str) -> datetime:
    """Read a point in time; raise UnreadableField if it can't be read."""
    try:
        return parse_instant(text)
    except BadAmount as error:
        raise UnreadableField(f"its {what} can't be read: {text[:60]!r}") from error


def read_length(document: Document, what: str, otherwise: timedelta | None = None) -> timedelta:
    """Read the duration in a block of a schedule."""
    text = read_text(document, "duration")
    if not text and otherwise is not None:
        return otherwise
    try:
        return parse_duration(text)
    except BadAmount as error:
        raise UnreadableField(f"its {what} can't be read: {text[:60]!r}") from error


def read_starts(document: Document) -> tuple[datetime, datetime]:
    """Return the first and the last time at which the session would start."""
    schedule = read_map(document, "schedule")
    block = next((block for name in ("available", "executing") if (block := read_map(schedule, name))), schedule)
    text = read_text(block, "start", "datetime")
    if not text:
        raise UnreadableField("it does not say when it would start")
    if "/" not in text:
        start = read_time(text, "start")
        return start, start
    try:
        window = parse_interval(text)
    except BadAmount as error:
        raise UnreadableField(f"its start can't be read: {text[:60]!r}") from error
    return window.start, window.end


def find_running_block(document: Document) -> Document:
    """Return the block of the schedule that says how long the session can be used."""
    schedule = read_map(document, "schedule")
    return read_map(schedule, "available") or read_map(schedule, "executing") or schedule


def read_least(document: Document, name: str, otherwise: float = 0) -> float:
    """Return the least amount of something; older schemas have `offered` beside `requested`."""
    value = document.get(name)
    if isinstance(value, dict):
        older = (value[inner] for inner in ("offered", "requested") if isinstance(value.get(inner), dict | int | float))
        value = next(older, value)
    if isinstance(value, dict):
        value = value.get("min", value.get("max"))
    if value is None:
        return otherwise
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        raise UnreadableField(f"its {name} can't be read: {str(value)[:60]!r}")
    return value


def read_gib(document: Document, name: str) -> int:
    """Return the least amount in bytes; brokers use GiB."""
    return int(read_least(document, name) * GIB)


def read_quotes(document: Document, name: str) -> tuple[Quote, ...]:
    """Read costs or metrics that have numbers, so that they can be compared."""
    quotes = []
    for item in read_maps(document, name):
        low, high = item.get("min", item.get("max")), item.get("max", item.get("min"))
        if all(isinstance(bound, int | float) and not isinstance(bound, bool) for bound in (low, high)):
            quotes.append(
                Quote(read_text(item, "type", "kind"), float(low), float(high), read_text(item, "description"))
            )
    return tuple(quotes)
