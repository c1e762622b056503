"""The durations of data transfers, and of each session's staging."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from sublet.kernel.db.schema import Id

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    """Create the table and the column."""
    op.create_table(
        "transfers",
        sa.Column("id", Id, nullable=False),
        sa.Column("ended", sa.BigInteger(), nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("source", "system", "hop")),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in ("bytes", "micros")),
        sa.PrimaryKeyConstraint("id", name="transfers_pkey"),
    )
    op.create_index("transfers_source_system_hop_ended", "transfers", ["source", "system", "hop", "ended"])
    op.create_index("transfers_ended", "transfers", ["ended"])
    op.add_column("sessions", sa.Column("staged", sa.BigInteger()))


def downgrade() -> None:
    """Drop the table and the column."""
    op.drop_column("sessions", "staged")
    op.drop_index("transfers_ended", "transfers")
    op.drop_index("transfers_source_system_hop_ended", "transfers")
    op.drop_table("transfers")
