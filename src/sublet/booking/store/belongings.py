"""Rows that belong to a session, and are removed with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Column, delete

from sublet.booking.store.tables import dependencies, events, handovers, visits
from sublet.kernel.db.sql import Sql
from sublet.people.store.tables import tokens

# Not these: usage, charges, statistics and archive records outlive a session; drafts and hooks expire by themselves
# (and `store/retention.py` removes hooks with a forgotten session); offers of other brokers stay until nothing is held.
BELONGINGS: tuple[Column[Any], ...] = tuple(
    table.c.session for table in (events, dependencies, tokens, handovers, visits)
)


def remove_belongings(sql: Sql, ids: Sequence[str]) -> None:
    """Remove the events, dependencies, tokens, hand-over and visits of these sessions."""
    for session in BELONGINGS:
        sql.modify(delete(session.table).where(session.in_(list(ids))))
