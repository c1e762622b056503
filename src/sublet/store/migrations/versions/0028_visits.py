"""When interactive sessions were last open in someone's browser."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from sublet.kernel.db.schema import Id

revision = "0028"
down_revision = "0027"


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "visits",
        sa.Column("session", Id, nullable=False),
        sa.Column("seen", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("session", name="visits_pkey"),
    )


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("visits")
