"""How much of which pledges each session uses."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

ID = sa.Text().with_variant(sa.TEXT(collation="C"), "postgresql")


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "draws",
        sa.Column("session", ID, nullable=False),
        sa.Column("pledge", sa.Text(), nullable=False),
        sa.Column("cores", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("session", "pledge", name="draws_pkey"),
        sa.ForeignKeyConstraint(["session"], ["uses.session"], name="draws_session_fkey"),
    )
    op.create_index("draws_pledge", "draws", ["pledge"])


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("draws")
