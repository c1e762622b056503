"""Tokens that the owner of a personal service made for a guest."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add the column; existing tokens aren't guests'."""
    with op.batch_alter_table("tokens") as table:
        table.add_column(sa.Column("guest", sa.BigInteger(), nullable=False, server_default="0"))


def downgrade() -> None:
    """Drop the column."""
    with op.batch_alter_table("tokens") as table:
        table.drop_column("guest")
