"""The request that each idempotency key was used for."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "keys",
        sa.Column("person", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("person", "key", name="keys_pkey"),
    )
    op.create_index("keys_created", "keys", ["created"])


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("keys")
