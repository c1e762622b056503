"""The tables of the archive: records without names and, apart from them, whose they are."""

from __future__ import annotations

from datetime import datetime
from typing import Any, get_type_hints

from sqlalchemy import BigInteger, Column, Double, Index, Table, Text

from sublet.archive.model.records import COLUMNS, SessionRecord
from sublet.kernel.db.schema import Id, metadata

TYPES: dict[Any, Any] = {
    str: (Text, False),
    int: (BigInteger, False),
    float: (Double, False),
    datetime: (BigInteger, False),
    str | None: (Text, True),
    int | None: (BigInteger, True),
    float | None: (Double, True),
    datetime | None: (BigInteger, True),
}
HINTS = get_type_hints(SessionRecord)


def _column(name: str) -> Column[Any]:
    if name == "session":
        return Column(name, Id, primary_key=True)
    kind, optional = TYPES[HINTS[name]]
    return Column(name, Id if name == "who" else kind, nullable=optional)


archive = Table(
    "archive",
    metadata,
    *(_column(name) for name in COLUMNS),
    Index(None, "who", "asked"),
    Index(None, "asked", "session"),
    Index(None, "ended"),
)

archive_people = Table(
    "archive_people",
    metadata,
    Column("who", Id, primary_key=True),  # the pseudonym in records
    Column("person", Text, nullable=False, unique=True),
)

habits = Table(
    "habits",
    metadata,
    Column("who", Id, primary_key=True),  # the pseudonym in records
    Column("label", Text, primary_key=True),  # the program's label
    Column("runs", Text, nullable=False),  # JSON: what the newest runs used
    Column("at", BigInteger, nullable=False, index=True),  # when the newest run ended
)

archive_details = Table(
    "archive_details",
    metadata,
    Column("session", Id, primary_key=True),
    Column("who", Id, nullable=False, index=True),
    Column("ended", BigInteger, nullable=False, index=True),
    Column("name", Text, nullable=False),  # the name that its owner gave it
    Column("document", Text, nullable=False),  # the request, as it was received
    Column("content_type", Text, nullable=False),
)
