"""Budgets, and what sessions charge to them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from sublet.kernel.db.schema import Id

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "budgets",
        sa.Column("id", Id, nullable=False),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("measure", sa.Text(), nullable=False),
        sa.Column("amount", sa.Double(), nullable=False),
        sa.Column("period", sa.Text(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("platform", sa.Text(), nullable=False),
        sa.Column("until", sa.BigInteger()),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="budgets_pkey"),
    )
    op.create_table(
        "charges",
        sa.Column("session", Id, nullable=False),
        sa.Column("budget", Id, nullable=False),
        sa.Column("person", sa.Text(), nullable=False),
        sa.Column("amount", sa.Double(), nullable=False),
        sa.Column("reserved", sa.BigInteger(), nullable=False),
        sa.Column("started", sa.BigInteger()),
        sa.Column("ended", sa.BigInteger()),
        sa.ForeignKeyConstraint(["budget"], ["budgets.id"], name="charges_budget_fkey"),
        sa.PrimaryKeyConstraint("session", "budget", name="charges_pkey"),
    )
    op.create_index("charges_budget_person_ended", "charges", ["budget", "person", "ended"])


def downgrade() -> None:
    """Drop the tables."""
    op.drop_index("charges_budget_person_ended", "charges")
    op.drop_table("charges")
    op.drop_table("budgets")
