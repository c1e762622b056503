"""Places: directories of systems that sessions share, and each person's scratch in them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "places",
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("platform", "name", "kind", "path", "target")),
        sa.Column("writable", sa.Boolean(), nullable=False),
        sa.Column("keep", sa.BigInteger(), nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("apps", "note")),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("platform", "name", name="places_pkey"),
    )
    op.create_table(
        "scratches",
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("platform", "place", "person", "path")),
        sa.Column("until", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("platform", "place", "person", "path", name="scratches_pkey"),
    )


def downgrade() -> None:
    """Drop the tables."""
    op.drop_table("scratches")
    op.drop_table("places")
