"""Predicted run times of sessions, and the energy that they used."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
NUMBERS = ("run_low", "run_likely", "run_high", "energy_used", "carbon_used")


def upgrade() -> None:
    """Add the columns."""
    for name in NUMBERS:
        op.add_column("archive", sa.Column(name, sa.Double()))
    op.add_column("archive", sa.Column("energy_source", sa.Text()))


def downgrade() -> None:
    """Drop the columns."""
    for name in (*NUMBERS, "energy_source"):
        op.drop_column("archive", name)
