"""Tokens that a personal service's owner made for someone else."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add the column; tokens of before are nobody's guest's."""
    with op.batch_alter_table("tokens") as table:
        table.add_column(sa.Column("guest", sa.BigInteger(), nullable=False, server_default="0"))


def downgrade() -> None:
    """Drop it."""
    with op.batch_alter_table("tokens") as table:
        table.drop_column("guest")
