"""People's credentials for their storage."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from sublet.kernel.db.schema import Id

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "credentials",
        sa.Column("id", Id, nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("person", "place", "kind", "user", "secret")),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("endpoint", "region")),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="credentials_pkey"),
        sa.UniqueConstraint("person", "place", name="credentials_person_place_key"),
    )


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("credentials")
