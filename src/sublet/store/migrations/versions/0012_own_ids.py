"""The platform's own id of each session's job, and the site where it started."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

COLUMNS = {"sessions": "own_id", "starts": "site"}


def upgrade() -> None:
    """Add the columns."""
    for table, column in COLUMNS.items():
        with op.batch_alter_table(table) as changed:
            changed.add_column(sa.Column(column, sa.Text(), nullable=False, server_default=""))


def downgrade() -> None:
    """Drop the columns."""
    for table, column in COLUMNS.items():
        with op.batch_alter_table(table) as changed:
            changed.drop_column(column)
