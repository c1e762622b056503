"""Tables of credentials, uploads, places, scratch and measured transfers."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Index, Table, Text, UniqueConstraint

from sublet.kernel.db.schema import Id, metadata

credentials = Table(
    "credentials",
    metadata,
    Column("id", Id, primary_key=True),
    Column("person", Text, nullable=False),
    Column("place", Text, nullable=False),  # the prefix of the addresses that it is for
    Column("kind", Text, nullable=False),  # login, token, s3 or key
    Column("user", Text, nullable=False),  # or the access key
    Column("secret", Text, nullable=False),  # encrypted
    Column("endpoint", Text, nullable=False),
    Column("region", Text, nullable=False),
    Column("created", BigInteger, nullable=False),
    UniqueConstraint("person", "place"),
)

uploads = Table(
    "uploads",
    metadata,
    Column("id", Id, primary_key=True),
    Column("person", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("keep_until", BigInteger, nullable=False),
    Column("files", BigInteger, nullable=False),  # its rows in upload_files
    Column("size", BigInteger, nullable=False),  # their total bytes, so that quotas need no sum
    UniqueConstraint("person", "name"),
)

upload_files = Table(
    "upload_files",
    metadata,
    Column("id", Id, primary_key=True),
    Column("upload", Id, nullable=False),
    Column("path", Id, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("expires", BigInteger, nullable=False),  # for incomplete files
    Column("whole", BigInteger, nullable=False),  # 0 or 1
    Column("modified", BigInteger),
    Column("executable", BigInteger, nullable=False),  # 0 or 1
    Index(None, "upload", "path"),
    Index(None, "whole", "expires"),
)

places = Table(
    "places",
    metadata,
    Column("platform", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("kind", Text, nullable=False),  # reference, shared or scratch
    Column("path", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("writable", Boolean, nullable=False),
    Column("keep", BigInteger, nullable=False),  # seconds
    Column("apps", Text, nullable=False),  # patterns, a line each
    Column("note", Text, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("by", Text, nullable=False),
    Column("quota", BigInteger, nullable=False, server_default="0"),  # bytes per person in scratch; 0: no limit
)

scratches = Table(
    "scratches",
    metadata,
    Column("platform", Text, primary_key=True),
    Column("place", Text, primary_key=True),
    Column("person", Text, primary_key=True),
    Column("path", Text, primary_key=True),  # the place's path when it was made
    Column("until", BigInteger, nullable=False),
)

transfers = Table(
    "transfers",
    metadata,
    Column("id", Id, primary_key=True),
    Column("ended", BigInteger, nullable=False),
    Column("source", Text, nullable=False),  # the host that it came from; empty: this machine
    Column("system", Text, nullable=False),  # the platform that it was for
    Column("hop", Text, nullable=False),  # there, streamed, here, sent or made
    Column("bytes", BigInteger, nullable=False),  # 0: not counted
    Column("micros", BigInteger, nullable=False),  # how long it took
    Index(None, "source", "system", "hop", "ended"),
    Index(None, "ended"),
)
