"""Sessions that are offered to another person."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from sublet.kernel.db.schema import Id

revision = "0026"
down_revision = "0025"


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "handovers",
        sa.Column("session", Id, nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("giver", "taker")),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("session", name="handovers_pkey"),
    )
    op.create_index("handovers_giver", "handovers", ["giver"])
    op.create_index("handovers_taker", "handovers", ["taker"])


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("handovers")
