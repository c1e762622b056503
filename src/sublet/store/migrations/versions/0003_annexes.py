"""Annexes, their leases and pilots, and templates for leases."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

ID = sa.Text().with_variant(sa.TEXT(collation="C"), "postgresql")
LIVE = sa.text("ended IS NULL")


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "annexes",
        sa.Column("id", ID, nullable=False),
        sa.Column("person", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("open", sa.BigInteger(), nullable=False),
        sa.Column("guests", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="annexes_pkey"),
        sa.UniqueConstraint("person", "name", name="annexes_person_name_key"),
    )
    op.create_table(
        "leases",
        sa.Column("id", ID, nullable=False),
        sa.Column("annex", ID, nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("details", sa.Text(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("session", ID, nullable=False),
        sa.Column("ended", sa.BigInteger()),
        sa.Column("why", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="leases_pkey"),
        sa.ForeignKeyConstraint(["annex"], ["annexes.id"], name="leases_annex_fkey"),
        sa.UniqueConstraint("annex", "number", name="leases_annex_number_key"),
    )
    op.create_index("leases_live", "leases", ["created"], sqlite_where=LIVE, postgresql_where=LIVE)
    op.create_table(
        "pilots",
        sa.Column("lease", ID, nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("node", sa.Text(), nullable=False),
        sa.Column("claimed", sa.BigInteger(), nullable=False),
        sa.Column("seen", sa.BigInteger()),
        sa.Column("ended", sa.BigInteger()),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("facts", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("lease", "number", name="pilots_pkey"),
        sa.ForeignKeyConstraint(["lease"], ["leases.id"], name="pilots_lease_fkey"),
    )
    op.create_table(
        "templates",
        sa.Column("person", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("details", sa.Text(), nullable=False),
        sa.Column("changed", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("person", "name", name="templates_pkey"),
    )


def downgrade() -> None:
    """Drop the tables."""
    for table in ("templates", "pilots", "leases", "annexes"):
        op.drop_table(table)
