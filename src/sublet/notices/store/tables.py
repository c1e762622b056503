"""Who is told of events, and how far that is."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Table, Text, UniqueConstraint, text

from sublet.kernel.db.schema import Id, Serial, metadata

hooks = Table(
    "hooks",
    metadata,
    Column("id", Id, primary_key=True),
    Column("person", Text, nullable=False),
    Column("session", Id, nullable=False),  # empty: all of the person's
    Column("address", Text, nullable=False),  # https:… or mailto:…
    Column("secret", Text, nullable=False),  # what its calls are signed with, encrypted
    Column("events", Text, nullable=False),  # kinds of events, as words; empty: each change of state
    Column("created", BigInteger, nullable=False),
    Column("expires", BigInteger, nullable=False),
    Column("after", BigInteger, nullable=False),  # the newest event that was dealt with
    Column("trouble", Text, nullable=False),  # why it was given up; empty: it was not
    Index(None, "person"),
)

deliveries = Table(
    "deliveries",
    metadata,
    Column("id", Serial, primary_key=True),
    Column("hook", Id, ForeignKey("hooks.id"), nullable=False),
    Column("event", BigInteger, nullable=False),
    Column("due", BigInteger),  # when it is tried next; NULL: over
    Column("tries", BigInteger, nullable=False),
    Column("tried", BigInteger),  # when that was last
    Column("answer", Text, nullable=False),
    UniqueConstraint("hook", "event"),
    Index("deliveries_due", "due", sqlite_where=text("due IS NOT NULL"), postgresql_where=text("due IS NOT NULL")),
    sqlite_autoincrement=True,
)
