"""The planned and actual starts of sessions in shared queues."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

ID = sa.Text().with_variant(sa.TEXT(collation="C"), "postgresql")


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "starts",
        sa.Column("session", ID, nullable=False),
        sa.Column("platform", sa.Text(), nullable=False),
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("nodes", sa.BigInteger(), nullable=False),
        sa.Column("cores", sa.BigInteger(), nullable=False),
        sa.Column("planned", sa.BigInteger(), nullable=False),
        sa.Column("actual", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("session", name="starts_pkey"),
    )
    op.create_index("starts_platform_at", "starts", ["platform", "at"])


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("starts")
