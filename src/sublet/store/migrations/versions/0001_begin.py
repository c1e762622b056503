"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

ID = sa.Text().with_variant(sa.TEXT(collation="C"), "postgresql")

ACTIVE = sa.text("phase IN ('ACCEPTED', 'AVAILABLE', 'PREPARING', 'RELEASING', 'RUNNING', 'WAITING')")


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "calendars",
        sa.Column("platform", sa.Text(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("floor", sa.BigInteger(), nullable=False),
        sa.Column("nodes", sa.Text(), nullable=False),
        sa.Column("pools", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("platform", name="calendars_pkey"),
    )
    op.create_table(
        "events",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.Column("session", ID, nullable=False),
        sa.Column("person", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="events_pkey"),
        sqlite_autoincrement=True,
    )
    op.create_index("events_person_id", "events", ["person", "id"])
    op.create_index("events_session_id", "events", ["session", "id"])
    op.create_table(
        "offersets",
        sa.Column("id", ID, nullable=False),
        sa.Column("person", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=True),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("expires", sa.BigInteger(), nullable=False),
        sa.Column("result", sa.Text(), nullable=False),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("content_type", sa.Text(), nullable=False),
        sa.Column("reasons", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="offersets_pkey"),
        sa.UniqueConstraint("person", "key", name="offersets_person_key_key"),
    )
    op.create_index("offersets_created", "offersets", ["created"])
    op.create_table(
        "tokens",
        sa.Column("id", ID, nullable=False),
        sa.Column("person", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("expires", sa.BigInteger(), nullable=True),
        sa.Column("operator", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="tokens_pkey"),
        sa.UniqueConstraint("hash", name="tokens_hash_key"),
    )
    op.create_index("tokens_person", "tokens", ["person"])
    op.create_table(
        "bookings",
        sa.Column("platform", sa.Text(), nullable=False),
        sa.Column("key", ID, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("takes", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["platform"], ["calendars.platform"], name="bookings_platform_fkey"),
        sa.PrimaryKeyConstraint("platform", "key", name="bookings_pkey"),
    )
    op.create_index("bookings_platform_version", "bookings", ["platform", "version"])
    op.create_table(
        "sessions",
        sa.Column("id", ID, nullable=False),
        sa.Column("offerset", ID, nullable=False),
        sa.Column("person", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("platform", sa.Text(), nullable=False),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.Column("offer", sa.Text(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("modified", sa.BigInteger(), nullable=False),
        sa.Column("expires", sa.BigInteger(), nullable=False),
        sa.Column("condition", sa.Text(), nullable=False),
        sa.Column("start", sa.BigInteger(), nullable=True),
        sa.Column("until", sa.BigInteger(), nullable=True),
        sa.Column("started", sa.BigInteger(), nullable=True),
        sa.Column("ended", sa.BigInteger(), nullable=True),
        sa.Column("job", sa.Text(), nullable=False),
        sa.Column("cancel_by", sa.Text(), nullable=False),
        sa.Column("end", sa.Text(), nullable=True),
        sa.Column("connectors", sa.Text(), nullable=True),
        sa.Column("due", sa.BigInteger(), nullable=True),
        sa.Column("claim_owner", sa.Text(), nullable=True),
        sa.Column("claim_token", sa.Text(), nullable=True),
        sa.Column("claim_until", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["offerset"], ["offersets.id"], name="sessions_offerset_fkey"),
        sa.PrimaryKeyConstraint("id", name="sessions_pkey"),
    )
    op.create_index(
        "sessions_claimed",
        "sessions",
        ["claim_token"],
        sqlite_where=sa.text("claim_token IS NOT NULL"),
        postgresql_where=sa.text("claim_token IS NOT NULL"),
    )
    op.create_index("sessions_created", "sessions", ["created"])
    op.create_index(
        "sessions_due",
        "sessions",
        ["due"],
        sqlite_where=sa.text("due IS NOT NULL"),
        postgresql_where=sa.text("due IS NOT NULL"),
    )
    op.create_index(
        "sessions_job",
        "sessions",
        ["platform", "job"],
        sqlite_where=ACTIVE,
        postgresql_where=ACTIVE,
    )
    op.create_index("sessions_offerset_phase", "sessions", ["offerset", "phase"])
    op.create_index("sessions_person_created", "sessions", ["person", "created"])
    op.create_index("sessions_phase_expires", "sessions", ["phase", "expires"])


def downgrade() -> None:
    """Drop the tables."""
    for table in ("sessions", "bookings", "tokens", "offersets", "events", "calendars"):
        op.drop_table(table)
