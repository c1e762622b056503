"""Platforms that are being drained, and the reasons why sessions were cancelled."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Create the table, the column, and the index of sessions by platform."""
    op.create_table(
        "drains",
        sa.Column("platform", sa.Text(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("until", sa.BigInteger()),
        sa.Column("ends", sa.BigInteger()),
        sa.PrimaryKeyConstraint("platform", name="drains_pkey"),
    )
    op.add_column("sessions", sa.Column("cancel_reason", sa.Text(), nullable=False, server_default=""))
    op.create_index("sessions_platform_created", "sessions", ["platform", "created"])


def downgrade() -> None:
    """Drop the table, the column and the index."""
    op.drop_index("sessions_platform_created", "sessions")
    with op.batch_alter_table("sessions") as batch:
        batch.drop_column("cancel_reason")
    op.drop_table("drains")
