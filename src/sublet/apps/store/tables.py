"""Tables of apps, their versions, and drafts of old clients."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Table, Text, UniqueConstraint

from sublet.kernel.db.schema import Id, metadata

apps = Table(
    "apps",
    metadata,
    Column("name", Text, primary_key=True),
    Column("person", Text, nullable=False),  # who first proposed it
    Column("repository", Text, nullable=False),
    Column("created", BigInteger, nullable=False),
)

versions = Table(
    "versions",
    metadata,
    Column("id", Id, primary_key=True),
    Column("app", Text, ForeignKey("apps.name"), nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("repository", Text, nullable=False),
    Column("branch", Text, nullable=False),
    Column("commit", Text, nullable=False),
    Column("tree", Text, nullable=False),  # SHA-256 of the archive of its files
    Column("manifest", Text, nullable=False),
    Column("manifest_hash", Text, nullable=False),
    Column("image", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("about", Text, nullable=False),  # author, time and subject of its commit, and findings
    Column("state", Text, nullable=False),  # proposed, approved, refused or revoked
    Column("proposed", BigInteger, nullable=False),
    Column("proposed_by", Text, nullable=False),
    Column("decided", BigInteger),
    Column("decided_by", Text, nullable=False),
    Column("why", Text, nullable=False),
    UniqueConstraint("app", "number"),
    Index(None, "state", "proposed"),
)

drafts = Table(
    "drafts",
    metadata,
    Column("id", Id, primary_key=True),
    Column("person", Text, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("changed", BigInteger, nullable=False),
    Column("fields", Text, nullable=False),  # as an old client set them
    Column("session", Id, nullable=False),  # empty until it is submitted
    Index(None, "person", "created"),
)
