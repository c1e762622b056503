"""The tables of hooks and of their deliveries."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Table, Text, UniqueConstraint, text

from sublet.kernel.db.schema import Id, Serial, metadata

hooks = Table(
    "hooks",
    metadata,
    Column("id", Id, primary_key=True),
    Column("person", Text, nullable=False),
    Column("session", Id, nullable=False),  # empty: all of the person's sessions
    Column("address", Text, nullable=False),  # https:… or mailto:…
    Column("secret", Text, nullable=False),  # signs its calls; encrypted
    Column("events", Text, nullable=False),  # kinds of events, as words; empty: each change of state
    Column("created", BigInteger, nullable=False),
    Column("expires", BigInteger, nullable=False),
    Column("after", BigInteger, nullable=False),  # the newest event that was processed
    Column("trouble", Text, nullable=False),  # why it was given up; empty: it is active
    Index(None, "person"),
)

deliveries = Table(
    "deliveries",
    metadata,
    Column("id", Serial, primary_key=True),
    Column("hook", Id, ForeignKey("hooks.id"), nullable=False),
    Column("event", BigInteger, nullable=False),
    Column("due", BigInteger),  # the time of the next try; NULL: finished
    Column("tries", BigInteger, nullable=False),
    Column("tried", BigInteger),  # the time of the last try
    Column("answer", Text, nullable=False),
    UniqueConstraint("hook", "event"),
    Index("deliveries_due", "due", sqlite_where=text("due IS NOT NULL"), postgresql_where=text("due IS NOT NULL")),
    sqlite_autoincrement=True,
)
