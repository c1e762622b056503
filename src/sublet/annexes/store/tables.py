"""The tables of annexes, their leases, the leases' pilots, and templates."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Table, Text, UniqueConstraint, text

from sublet.kernel.db.schema import Id, metadata

annexes = Table(
    "annexes",
    metadata,
    Column("id", Id, primary_key=True),
    Column("person", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("open", BigInteger, nullable=False),  # 1: to all of its owner's jobs; 2: only to sessions
    Column("guests", Text, nullable=False),
    UniqueConstraint("person", "name"),
)

leases = Table(
    "leases",
    metadata,
    Column("id", Id, primary_key=True),
    Column("annex", Id, ForeignKey("annexes.id"), nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("details", Text, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("session", Id, nullable=False),  # empty until there are offers
    Column("ended", BigInteger),
    Column("why", Text, nullable=False),
    UniqueConstraint("annex", "number"),
    Index("leases_live", "created", sqlite_where=text("ended IS NULL"), postgresql_where=text("ended IS NULL")),
)

pilots = Table(
    "pilots",
    metadata,
    Column("lease", Id, ForeignKey("leases.id"), primary_key=True),
    Column("number", BigInteger, primary_key=True),
    Column("node", Text, nullable=False),
    Column("claimed", BigInteger, nullable=False),
    Column("seen", BigInteger),
    Column("ended", BigInteger),
    Column("why", Text, nullable=False),
    Column("facts", Text, nullable=False),
)

templates = Table(
    "templates",
    metadata,
    Column("person", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("details", Text, nullable=False),
    Column("changed", BigInteger, nullable=False),
)
