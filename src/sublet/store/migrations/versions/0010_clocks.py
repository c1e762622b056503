"""The last known setting of each machine's clock, and since when a platform has lost a session."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Create the table and the column."""
    op.create_table(
        "clocks",
        sa.Column("boot", sa.Text(), nullable=False),
        sa.Column("offset", sa.BigInteger(), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column("stepped", sa.BigInteger()),
        sa.PrimaryKeyConstraint("boot", name="clocks_pkey"),
    )
    op.add_column("sessions", sa.Column("lost", sa.BigInteger()))


def downgrade() -> None:
    """Drop the table and the column."""
    with op.batch_alter_table("sessions") as batch:
        batch.drop_column("lost")
    op.drop_table("clocks")
