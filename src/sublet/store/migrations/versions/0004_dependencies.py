"""Sessions that wait for others to complete."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

ID = sa.Text().with_variant(sa.TEXT(collation="C"), "postgresql")


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "dependencies",
        sa.Column("session", ID, nullable=False),
        sa.Column("after", ID, nullable=False),
        sa.Column("phase", sa.Text()),
        sa.Column("words", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("session", "after", name="dependencies_pkey"),
    )
    op.create_index("dependencies_after", "dependencies", ["after"])


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("dependencies")
