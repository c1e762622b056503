"""Other brokers as platforms, the requests passed to them, and the offers held there."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from sublet.kernel.db.schema import Id

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "broker_asks",
        sa.Column("key", Id, nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("broker", "person", "document", "via", "offerset")),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in ("created", "due", "tries")),
        sa.PrimaryKeyConstraint("key", name="broker_asks_pkey"),
    )
    op.create_index("broker_asks_due", "broker_asks", ["due"])
    op.create_table(
        "broker_offers",
        sa.Column("session", Id, nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("broker", "person", "url", "offerset")),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in ("expires", "due", "tries")),
        sa.PrimaryKeyConstraint("session", name="broker_offers_pkey"),
    )
    op.create_index("broker_offers_due", "broker_offers", ["due"])
    op.create_table(
        "brokers",
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("name", "url", "token")),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in ("older", "created", "changed")),
        sa.Column("by", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="brokers_pkey"),
    )


def downgrade() -> None:
    """Drop the tables."""
    op.drop_table("brokers")
    op.drop_index("broker_offers_due", "broker_offers")
    op.drop_table("broker_offers")
    op.drop_index("broker_asks_due", "broker_asks")
    op.drop_table("broker_asks")
