"""The walltime of jobs in the history of starts, since jobs of similar length wait alike."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    """Add the column."""
    op.add_column("starts", sa.Column("length", sa.BigInteger(), nullable=False, server_default="0"))


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("starts", "length")
