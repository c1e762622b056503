"""Converts sessions to rows and back: each field is in the column of its name, and converted by its type."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, get_type_hints

from pydantic import TypeAdapter
from sqlalchemy import select

from sublet.booking.model.marks import Mark, read_marks, write_marks
from sublet.booking.model.offer import Offer
from sublet.booking.model.phases import Phase
from sublet.booking.model.session import Connector, End, Session
from sublet.booking.model.timeline import micros, moment, span_of
from sublet.booking.store.older_rows import gather_offer_options, name_pools
from sublet.booking.store.tables import sessions
from sublet.kernel.db.sql import Row, dump, micros_or_none, moment_or_none, plain

S = sessions.c
OFFER = TypeAdapter(Offer)
END = TypeAdapter(End)
CONNECTORS = TypeAdapter(tuple[Connector, ...])
UNCLAIMED = {"claim_owner": None, "claim_token": None, "claim_until": None}


@lru_cache(maxsize=1024)
def _read_offer(text: str) -> Offer:
    """Read an offer; cached, because the same sessions are read again and again."""
    return OFFER.validate_json(name_pools(gather_offer_options(text)))


def _write_end(end: End | None) -> str | None:
    return None if end is None else dump(END, end)


def _read_end(text: str | None) -> End | None:
    return None if text is None else END.validate_json(text)


def _write_connectors(connectors: tuple[Connector, ...]) -> str | None:
    return dump(CONNECTORS, connectors) if connectors else None


def _read_connectors(text: str | None) -> tuple[Connector, ...]:
    return () if text is None else CONNECTORS.validate_json(text)


def _write_span(span: timedelta | None) -> int | None:
    return None if span is None else span_of(span)


def _read_span(stored: int | None) -> timedelta | None:
    return None if stored is None else timedelta(microseconds=stored)


def _write_text(value: Any) -> str:
    return plain(str(value))


# How a value of each type is stored and read; None: as it is.
BY_TYPE: dict[Any, tuple[Callable[[Any], Any], Callable[[Any], Any] | None]] = {
    str: (_write_text, None),
    Phase: (_write_text, Phase),
    datetime: (micros, moment),
    datetime | None: (micros_or_none, moment_or_none),
    timedelta | None: (_write_span, _read_span),
    Offer: (lambda offer: dump(OFFER, offer), _read_offer),
    End | None: (_write_end, _read_end),
    tuple[Connector, ...]: (_write_connectors, _read_connectors),
    frozenset[Mark]: (write_marks, read_marks),
}
TYPES = get_type_hints(Session)
NAMES = tuple(field.name for field in fields(Session))
WRITERS = {name: BY_TYPE[TYPES[name]][0] for name in NAMES}
READERS = [(number, read) for number, name in enumerate(NAMES) if (read := BY_TYPE[TYPES[name]][1])]
SESSION = select(*(S[name] for name in NAMES))


def to_stored(name: str, value: Any) -> Any:
    """Convert a session's field, or `due`, to its stored form."""
    return micros_or_none(value) if name == "due" else WRITERS[name](value)


def session_row(session: Session, due: int | None) -> dict[str, Any]:
    """Convert a session to a row."""
    row = {name: write(getattr(session, name)) for name, write in WRITERS.items()}
    return {**row, "platform": session.offer.platform, "due": due, **UNCLAIMED}


def session_rows(sessions: Iterable[Session], due: Callable[[Session], int | None]) -> list[dict[str, Any]]:
    """Convert sessions to rows; what a session shares with the one before it is converted once."""
    rows: list[dict[str, Any]] = []
    before: Session | None = None
    row: dict[str, Any] = {}
    for session in sessions:
        if before is None:
            row = session_row(session, due(session))
        else:
            changed = {
                name: write(value)
                for name, write in WRITERS.items()
                if (value := getattr(session, name)) is not getattr(before, name)
            }
            row = {**row, **changed, "platform": session.offer.platform, "due": due(session)}
        rows.append(row)
        before = session
    return rows


@lru_cache(maxsize=2048)
def read_session(row: Row) -> Session:
    """Read a session from its row; cached, so that the same row gives the same object."""
    values = list(row)
    for number, read in READERS:
        values[number] = read(values[number])
    return Session(*values)
