"""Recurring bookings."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from sublet.kernel.db.schema import Id

revision = "0025"
down_revision = "0024"
TEXTS = ("person", "name", "every", "fit", "document", "state", "seats")


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "series",
        sa.Column("id", Id, nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in TEXTS),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in ("seats_each", "created", "expires")),
        sa.PrimaryKeyConstraint("id", name="series_pkey"),
    )
    op.create_index("series_person_created", "series", ["person", "created"])


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("series")
