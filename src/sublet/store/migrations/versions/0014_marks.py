"""Sessions get marks, which are read one last time from the sentences that expressed them before."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"

ACTIVE = ("ACCEPTED", "WAITING", "PREPARING", "AVAILABLE", "RUNNING", "RELEASING")
UNSENT = ("ACCEPTED", "WAITING", "PREPARING")

sessions = sa.table(
    "sessions", *(sa.column(name) for name in ("id", "platform", "phase", "condition", "lost", "job", "marks"))
)
drains = sa.table("drains", sa.column("platform"))


def upgrade() -> None:
    """Add the column, and mark the active sessions."""
    with op.batch_alter_table("sessions") as changed:
        changed.add_column(sa.Column("marks", sa.Text(), nullable=False, server_default=""))
    connection, s = op.get_bind(), sessions.c
    drained = {row[0] for row in connection.execute(sa.select(drains.c.platform))}
    said = sa.select(s.id, s.platform, s.phase, s.condition, s.lost, s.job).where(
        s.phase.in_(ACTIVE), s.condition != ""
    )
    for id, platform, phase, condition, lost, job in connection.execute(said).all():
        held = platform in drained and phase in UNSENT and not job
        if marks := read_words(condition, platform, lost is not None, held):
            connection.execute(sessions.update().where(s.id == id).values(marks=" ".join(sorted(marks))))


def read_words(condition: str, platform: str, is_lost: bool, is_held: bool) -> set[str]:
    """Return the marks that a session's condition expressed in words."""
    found = {
        "paused": condition.startswith("paused"),
        "warned": "ends soon, at " in condition,
        "lost": is_lost or condition.startswith(("unknown: ", "being cancelled; unknown: ")),
        "login-needed": f"sublet system login {platform}" in condition,
        "held-back": is_held and condition.startswith(f"{platform} is being drained"),
    }
    return {mark for mark, is_so in found.items() if is_so}


def downgrade() -> None:
    """Drop the column."""
    with op.batch_alter_table("sessions") as changed:
        changed.drop_column("marks")
