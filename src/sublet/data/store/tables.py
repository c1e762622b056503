"""What opens other people's storage, for whom."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Table, Text, UniqueConstraint

from sublet.kernel.db.schema import Id, metadata

credentials = Table(
    "credentials",
    metadata,
    Column("id", Id, primary_key=True),
    Column("person", Text, nullable=False),
    Column("place", Text, nullable=False),  # the beginning of the addresses that it is for
    Column("kind", Text, nullable=False),  # login, token or s3
    Column("user", Text, nullable=False),  # or the access key
    Column("secret", Text, nullable=False),  # encrypted
    Column("endpoint", Text, nullable=False),
    Column("region", Text, nullable=False),
    Column("created", BigInteger, nullable=False),
    UniqueConstraint("person", "place"),
)
