"""Bookings whose seats are for the members of a group."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"


def upgrade() -> None:
    """Add the column and its index."""
    op.add_column("series", sa.Column("for_group", sa.Text(), nullable=False, server_default=""))
    op.create_index("series_for_group_created", "series", ["for_group", "created"])


def downgrade() -> None:
    """Drop the column and its index."""
    op.drop_index("series_for_group_created", "series")
    op.drop_column("series", "for_group")
