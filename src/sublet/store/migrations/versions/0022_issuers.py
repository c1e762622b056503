"""Group memberships that issuers assert, and the brokers' single-use tokens that were used."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "memberships",
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("person", "issuer", "name")),
        sa.Column("until", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("person", "issuer", "name", name="memberships_pkey"),
    )
    op.create_table(
        "shown_assertions",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("until", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="shown_assertions_pkey"),
    )
    op.create_index("shown_assertions_until", "shown_assertions", ["until"])


def downgrade() -> None:
    """Drop the tables."""
    op.drop_index("shown_assertions_until", "shown_assertions")
    op.drop_table("shown_assertions")
    op.drop_table("memberships")
