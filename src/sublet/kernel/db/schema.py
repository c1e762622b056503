"""What all tables share: the naming convention, and the types of ids and serial numbers."""

from __future__ import annotations

from sqlalchemy import BigInteger, Integer, MetaData, Text
from sqlalchemy.dialects import postgresql

NAMES = {
    "ix": "%(table_name)s_%(column_0_N_name)s",
    "uq": "%(table_name)s_%(column_0_N_name)s_key",
    "pk": "%(table_name)s_pkey",
    "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
}
metadata = MetaData(naming_convention=NAMES)

# Ids are compared bytewise, so that a prefix is a range in any collation of the database.
Id = Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
Serial = BigInteger().with_variant(Integer(), "sqlite")
