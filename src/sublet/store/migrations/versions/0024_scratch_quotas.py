"""The quota of each person's scratch in a place."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    """Add the column."""
    op.add_column("places", sa.Column("quota", sa.BigInteger(), nullable=False, server_default="0"))


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("places", "quota")
