"""Partial indexes of open offers by person and of waiting sessions by platform, so that other sessions cost nothing."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"

INDEXES = {
    "sessions_offered": (["phase", "person", "platform", "created", "offerset"], "phase = 'OFFERED'"),
    "sessions_waiting": (["platform", "start", "created"], "phase = 'WAITING'"),
}


def upgrade() -> None:
    """Create the indexes."""
    for name, (columns, where) in INDEXES.items():
        op.create_index(name, "sessions", columns, sqlite_where=sa.text(where), postgresql_where=sa.text(where))


def downgrade() -> None:
    """Drop the indexes."""
    for name in INDEXES:
        op.drop_index(name, "sessions")
