"""Removal of rows beyond their retention: a reader finds them, and the writer removes them in bounded batches."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Column, ColumnElement, and_, delete, exists, insert, or_, select
from sqlalchemy.sql.base import ReadOnlyColumnCollection

from sublet.access.model.usage import ran
from sublet.access.store.tables import uses
from sublet.annexes.store.tables import leases
from sublet.archive.store.records import ArchiveStore
from sublet.booking.model.phases import Phase
from sublet.booking.model.session import Session
from sublet.booking.model.timeline import micros
from sublet.booking.store.belongings import remove_belongings
from sublet.booking.store.rows import SESSION, S, read_session
from sublet.booking.store.tables import WORKED_ON, events, offersets, sessions
from sublet.kernel.db.audit import audit
from sublet.kernel.db.sql import Sql, plain
from sublet.notices.store.tables import deliveries, hooks

ENDED = [phase.value for phase in (Phase.COMPLETED, Phase.FAILED, Phase.CANCELLED)]
DECLINED = [phase.value for phase in (Phase.REJECTED, Phase.EXPIRED)]


class Retention:
    """Expired rows, as one transaction finds and removes them."""

    def __init__(self, sql: Sql) -> None:
        """Work in the transaction of `sql`."""
        self._sql = sql
        self.archive = ArchiveStore(sql)

    def find_sessions(self, before: datetime, limit: int) -> list[str]:
        """Return offer sets whose sessions all ended before then and have no files left, at most `limit`."""
        other = sessions.alias()
        blocked = exists().where(other.c.offerset == S.offerset, ~_is_old(other.c, micros(before)))
        query = (
            select(S.offerset)
            .where(S.created < micros(before), S.phase.in_(ENDED), ~blocked)
            .group_by(S.offerset)
            .limit(limit)
        )
        return [row[0] for row in self._sql.select(query)]

    def forget_sessions(self, offersets_: Sequence[str], before: datetime) -> int:
        """Remove these offer sets and their sessions if they still qualify; their usage is kept."""
        theirs = S.offerset.in_(list(offersets_))
        of_the_same_offers = [read_session(row) for row in self._sql.select(SESSION.where(theirs))]
        old = {row[0] for row in self._sql.select(select(S.id).where(theirs, _is_old(S, micros(before))))}
        young = {session.offerset for session in of_the_same_offers if session.id not in old}
        gone = [session for session in of_the_same_offers if session.offerset not in young]
        self._keep_accounts(gone)
        ids, sets = [session.id for session in gone], list({session.offerset for session in gone})
        remove_belongings(self._sql, [*ids, *sets])
        self._remove_hooks(ids)
        self._sql.modify(delete(sessions).where(S.id.in_(ids)))
        self._sql.modify(delete(offersets).where(offersets.c.id.in_(sets)))
        return sum(session.phase.value in ENDED for session in gone)

    def find_events(self, before: datetime, limit: int) -> list[int]:
        """Return events from before then, oldest first, except those of active sessions."""
        active = select(S.id).where(WORKED_ON)
        query = select(events.c.id).where(events.c.time < micros(before), events.c.session.not_in(active))
        return [row[0] for row in self._sql.select(query.order_by(events.c.id).limit(limit))]

    def forget_events(self, ids: Sequence[int]) -> int:
        """Remove these events; return how many were removed."""
        return self._sql.modify(delete(events).where(events.c.id.in_(list(ids))))

    def find_audit(self, before: datetime, limit: int) -> list[int]:
        """Return entries of the audit log from before then, oldest first."""
        query = select(audit.c.id).where(audit.c.time < micros(before)).order_by(audit.c.id).limit(limit)
        return [row[0] for row in self._sql.select(query)]

    def forget_audit(self, ids: Sequence[int]) -> int:
        """Remove these entries; return how many were removed."""
        return self._sql.modify(delete(audit).where(audit.c.id.in_(list(ids))))

    def _remove_hooks(self, ids: Sequence[str]) -> None:
        """Remove hooks that were for these sessions alone, with their deliveries."""
        theirs = hooks.c.session.in_(list(ids))
        self._sql.modify(delete(deliveries).where(deliveries.c.hook.in_(select(hooks.c.id).where(theirs))))
        self._sql.modify(delete(hooks).where(theirs))

    def _keep_accounts(self, gone: Sequence[Session]) -> None:
        """Record the usage of sessions that ran and have no record of it yet."""
        ids = [session.id for session in gone]
        counted = {row[0] for row in self._sql.select(select(uses.c.session).where(uses.c.session.in_(ids)))}
        for session in gone:
            use = ran(session) if session.id not in counted else None
            if use:
                row: dict[str, object] = {
                    "session": use.session,
                    "person": plain(use.person),
                    "platform": use.platform,
                    "app": "",
                }
                row |= {"nodes": use.nodes, "cores": use.cores, "gpus": use.gpus}
                times = {"accepted": micros(session.created), "started": micros(use.started)}
                times |= {"ended": micros(use.ended or use.started), "reserved": 0}
                self._sql.modify(insert(uses).values(row | times))


def _is_old(c: ReadOnlyColumnCollection[str, Column[Any]], before: int) -> ColumnElement[bool]:
    """Return the condition for removing a session: ended, its files gone or long overdue, and not part of a lease."""
    files_gone = or_(c.due.is_(None), c.due < before)
    ended = and_(c.phase.in_(ENDED), c.modified < before, c.ended.is_(None) | (c.ended < before), files_gone)
    leased = exists().where(leases.c.session == c.id)
    return or_(c.phase.in_(DECLINED), and_(ended, ~leased))
