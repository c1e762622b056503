"""Pledges that operators added to those in the settings."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "pledges",
        sa.Column("platform", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("settings", sa.Text(), nullable=False),
        sa.Column("changed", sa.BigInteger(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("platform", "name", name="pledges_pkey"),
    )


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("pledges")
