"""Offer sets that aren't withdrawn for later requests of the same person."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Add the column."""
    with op.batch_alter_table("offersets") as table:
        table.add_column(sa.Column("firm", sa.BigInteger(), nullable=False, server_default="0"))


def downgrade() -> None:
    """Drop the column."""
    with op.batch_alter_table("offersets") as table:
        table.drop_column("firm")
