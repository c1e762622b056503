"""Reads the state of a session from a broker's document."""

from __future__ import annotations

from datetime import datetime

from sublet.booking.model.job import JobState, State
from sublet.booking.model.marks import NONE, PAUSED, Mark, Marks
from sublet.booking.model.session import Connector, End, EndKind
from sublet.platforms.broker.fields import (
    Document,
    UnreadableField,
    find_running_block,
    read_length,
    read_map,
    read_maps,
    read_messages,
    read_meta,
    read_phase,
    read_starts,
    read_text,
    read_time,
)

END = "urn:sublet:end:"
CONDITION = "urn:sublet:condition"
OFFERED = "OFFERED"
BEFORE = {"ACCEPTED": "accepted", "WAITING": "waits for its time", "PREPARING": "is being prepared"}
RUNS = frozenset({"AVAILABLE", "RUNNING", "RELEASING"})
OVER = frozenset({"COMPLETED", "FAILED", "CANCELLED"})
GOES_ON = frozenset(BEFORE) | RUNS  # accepted, and not ended


def read_state(document: Document, broker: str) -> JobState:
    """Return the state of a session; UNKNOWN if it can't be read, or was never accepted."""
    phase = read_phase(document)
    if phase in OVER:
        return _read_over(document, phase)
    if phase in BEFORE:
        words = _find_message(document, CONDITION) or BEFORE[phase]
        return JobState(State.QUEUED, condition=f"at {broker}: {words}", marks=_read_marks(document))
    if phase in RUNS:
        condition = _find_message(document, CONDITION)
        words = f"at {broker}: {condition}" if condition else ""
        ways = read_ways(document)
        started = _find_start(document)
        return JobState(
            State.RUNNING,
            started=started,
            connector=ways[0] if ways else None,
            condition=words,
            until=_find_until(document, started),
            marks=_read_marks(document),
        )
    return JobState(State.UNKNOWN)


def _read_over(document: Document, phase: str) -> JobState:
    modified = read_meta(document, "modified")
    end = _read_end(document, phase)
    ran = end.kind not in (EndKind.NOT_STARTED, EndKind.STAGING_FAILED, EndKind.WINDOW_PASSED)
    return JobState(
        State.ENDED,
        end,
        started=_find_start(document) if ran and phase != "CANCELLED" else None,
        ended=_find_time(modified),
    )


def _read_end(document: Document, phase: str) -> End:
    """Return how a session ended: in detail if the broker uses known terms, else by its phase."""
    for message in read_messages(document):
        kind = read_text(message, "kind")
        if kind.startswith(END) and (known := kind.removeprefix(END)) in set(EndKind):
            values = read_map(message, "values")
            read = End(
                EndKind(known),
                code=_read_number(values, "code"),
                signal=_read_number(values, "signal"),
                by=read_text(values, "by"),
                detail=read_text(values, "detail"),
            )
            return read if read.phase == phase else _tell_plainly(document, phase)
    return _tell_plainly(document, phase)


def _tell_plainly(document: Document, phase: str) -> End:
    words = " ".join(text for m in read_messages(document) if (text := read_text(m, "message", "text")))[:500]
    if phase == "COMPLETED":
        return End(EndKind.EXITED, code=0)
    if phase == "CANCELLED":
        return End(EndKind.CANCELLED, detail=words)
    return End(EndKind.UNKNOWN, detail=words or "The broker does not say why it failed.")


def _read_number(values: Document, name: str) -> int | None:
    text = read_text(values, name)
    return int(text) if text.lstrip("-").isdecimal() and len(text) < 10 else None


def _find_message(document: Document, kind: str) -> str:
    return next((read_text(m, "message") for m in read_messages(document) if m.get("kind") == kind), "")


def _read_marks(document: Document) -> Marks:
    """Return the marks of a paused session, which a Sublet adds to its condition."""
    values = next((read_map(m, "values") for m in read_messages(document) if m.get("kind") == CONDITION), {})
    return PAUSED if Mark.PAUSED in read_text(values, "marks").split() else NONE


def _find_until(document: Document, started: datetime | None) -> datetime | None:
    """Return when the session's time ends there, including extensions."""
    try:
        return started + read_length(find_running_block(document), "duration") if started else None
    except (UnreadableField, OverflowError):
        return None


def _find_start(document: Document) -> datetime | None:
    try:
        return read_starts(document)[0]
    except UnreadableField:
        return None


def _find_time(text: str) -> datetime | None:
    try:
        return read_time(text, "time") if text else None
    except UnreadableField:
        return None


def read_ways(document: Document) -> tuple[Connector, ...]:
    """Return the connectors of a session that can be used now, with their whole addresses."""
    ways = [
        Connector(
            read_text(item, "kind"), read_text(item, "status") or "AVAILABLE", read_text(item, "protocol"), location
        )
        for item in read_maps(document, "connectors")
        if (location := read_text(item, "location"))
    ]
    older = read_map(document, "executable")
    for item in read_maps(older, "access"):
        places = item.get("locations")
        if isinstance(places, list) and places and isinstance(places[0], str):
            ways.append(Connector(read_text(item, "kind"), "AVAILABLE", read_text(item, "protocol"), places[0]))
    return tuple(way for way in ways if way.status in ("AVAILABLE", "ACTIVE"))
