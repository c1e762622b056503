"""The archive: records of sessions that outlive their deletion."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from sublet.kernel.db.schema import Id

revision = "0019"
down_revision = "0018"
TEXTS = ("phase", "outcome", "kind", "app", "platform", "queue", "way", "terms", "pledge", "offers")
NUMBERS = ("nodes", "cores", "memory", "gpus", "parts", "asked", "ended")
MAYBE_NUMBERS = ("code", "accepted", "planned", "earliest", "latest", "started", "peak_memory")
AMOUNTS = ("time_limit", "staging_likely", "staging_high")
MAYBE_AMOUNTS = ("wait", "staged", "wall", "cpu", "money", "energy", "carbon")


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "archive",
        sa.Column("session", Id, nullable=False),
        sa.Column("who", Id, nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in TEXTS),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in NUMBERS),
        *(sa.Column(name, sa.BigInteger()) for name in MAYBE_NUMBERS),
        *(sa.Column(name, sa.Double(), nullable=False) for name in AMOUNTS),
        *(sa.Column(name, sa.Double()) for name in MAYBE_AMOUNTS),
        sa.PrimaryKeyConstraint("session", name="archive_pkey"),
    )
    op.create_index("archive_who_asked", "archive", ["who", "asked"])
    op.create_index("archive_asked_session", "archive", ["asked", "session"])
    op.create_index("archive_ended", "archive", ["ended"])
    op.create_table(
        "archive_people",
        sa.Column("who", Id, nullable=False),
        sa.Column("person", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("who", name="archive_people_pkey"),
        sa.UniqueConstraint("person", name="archive_people_person_key"),
    )
    op.create_table(
        "archive_details",
        sa.Column("session", Id, nullable=False),
        sa.Column("who", Id, nullable=False),
        sa.Column("ended", sa.BigInteger(), nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("name", "document", "content_type")),
        sa.PrimaryKeyConstraint("session", name="archive_details_pkey"),
    )
    op.create_index("archive_details_who", "archive_details", ["who"])
    op.create_index("archive_details_ended", "archive_details", ["ended"])
    op.create_table(
        "habits",
        sa.Column("who", Id, nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("label", "runs")),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("who", "label", name="habits_pkey"),
    )
    op.create_index("habits_at", "habits", ["at"])


def downgrade() -> None:
    """Drop the tables."""
    op.drop_table("habits")
    op.drop_table("archive_details")
    op.drop_table("archive_people")
    op.drop_table("archive")
