"""People's uploads, and their files."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from sublet.kernel.db.schema import Id

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "uploads",
        sa.Column("id", Id, nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("person", "name")),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in ("created", "keep_until", "files", "size")),
        sa.PrimaryKeyConstraint("id", name="uploads_pkey"),
        sa.UniqueConstraint("person", "name", name="uploads_person_name_key"),
    )
    op.create_table(
        "upload_files",
        *(sa.Column(name, Id, nullable=False) for name in ("id", "upload", "path")),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in ("size", "created", "expires", "whole")),
        sa.Column("modified", sa.BigInteger(), nullable=True),
        sa.Column("executable", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="upload_files_pkey"),
    )
    op.create_index("upload_files_upload_path", "upload_files", ["upload", "path"])
    op.create_index("upload_files_whole_expires", "upload_files", ["whole", "expires"])


def downgrade() -> None:
    """Drop the tables."""
    op.drop_table("upload_files")
    op.drop_table("uploads")
