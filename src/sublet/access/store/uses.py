"""What a gateway's accepted sessions use; rows outlive their sessions, so that nobody deletes what they used."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import case, exists, false, func, insert, or_, select, update

from sublet.access.model.access import Use
from sublet.access.model.usage import Ran, ran
from sublet.access.store.tables import draws, uses
from sublet.apps.store.tables import versions
from sublet.booking.model.pledge import OPEN, shares
from sublet.booking.model.session import Session
from sublet.booking.model.shape import TotalAmounts
from sublet.booking.model.timeline import micros, moment
from sublet.booking.store.rows import SESSION, S, read_session
from sublet.kernel.db.sql import Row, Sql, bind, micros_or_none, plain

U, D = uses.c, draws.c
HOUR = 3_600_000_000  # microseconds
ADD = insert(uses)
DRAW = insert(draws)
EXTEND = update(uses).where(U.session == bind("of_session")).values(reserved=bind("new_reserved"))
END_USE = (
    update(uses).where(U.session == bind("of_session")).values(started=bind("new_started"), ended=bind("new_ended"))
)
APP = select(versions.c.app).where(versions.c.id == bind("version_id"))
UNDER_WAY = U.ended.is_(None)
TAKEN = case(
    (UNDER_WAY, U.reserved),
    (U.started.is_(None), 0),
    (U.started < U.ended, U.ended - U.started),
    else_=0,
)
TOTAL = select(
    func.coalesce(func.sum(case((UNDER_WAY, 1), else_=0)), 0), func.coalesce(func.sum(U.cores * TAKEN), 0)
).where(U.person == bind("of_person"), or_(UNDER_WAY, U.ended >= bind("since")))
DRAWN = select(
    func.coalesce(func.sum(case((UNDER_WAY, 1), else_=0)), 0), func.coalesce(func.sum(D.cores * TAKEN), 0.0)
).where(U.person == bind("of_person"), or_(UNDER_WAY, U.ended >= bind("since")), D.pledge == bind("of_name"))
BY = {
    "app": TOTAL.where(U.app == bind("of_name")),
    "place": TOTAL.where(false()),  # use of a directory isn't counted
    "project": TOTAL.where(false()),  # budgets count what is charged to a project
    "pledge": DRAWN.select_from(draws.join(uses, U.session == D.session)),
}
ELSE = TOTAL.where(U.platform == bind("of_name"))
OVER = select(U.session, U.person, U.platform, U.started, U.ended, U.nodes, U.cores, U.gpus)
IN_USE = (
    select(func.coalesce(func.sum(U.cores), 0), func.coalesce(func.sum(U.gpus), 0))
    .select_from(draws.join(uses, U.session == D.session))
    .where(D.pledge == bind("of_pledge"), U.platform == bind("of_platform"), UNDER_WAY)
)
DRAWN_SESSIONS = SESSION.where(
    S.platform == bind("of_platform"),
    S.id.in_(
        select(D.session)
        .select_from(draws.join(uses, U.session == D.session))
        .where(D.pledge == bind("of_pledge"), UNDER_WAY)
    ),
)
COUNTED = exists().where(U.session == S.id, U.ended.is_not(None))


class Uses:
    """Usage, as one transaction sees and adds to it."""

    def __init__(self, sql: Sql) -> None:
        """Work in this transaction."""
        self._sql = sql

    def add(self, session: Session, wanted: TotalAmounts, app: str, now: datetime) -> None:
        """Record an accepted session, with everything that is reserved for it until it ends."""
        self._sql.change(
            ADD,
            {
                "session": session.id,
                "person": plain(session.person),
                "platform": session.offer.platform,
                "app": plain(app),
                "accepted": micros(now),
                "nodes": wanted.nodes,
                "cores": wanted.cores,
                "gpus": wanted.gpus,
                "reserved": _length(wanted.time),
                "started": None,
                "ended": None,
            },
        )
        parts = shares(session.offer.pledge)
        rows = [(name, float(wanted.cores * part)) for name, part in parts.items() if name != OPEN]
        self._sql.change_many(DRAW, [{"session": session.id, "pledge": name, "cores": cores} for name, cores in rows])

    def extend(self, session: str, time: timedelta) -> None:
        """Change the time that is reserved for a session."""
        self._sql.change(EXTEND, {"of_session": session, "new_reserved": _length(time)})

    def of(self, person: str, noun: str, name: str, since: datetime) -> Use:
        """Return a person's active sessions on a target, and the core-hours of these and of those that ended since."""
        given_ = {"of_person": plain(person), "of_name": plain(name), "since": micros(since)}
        jobs, taken = self._sql.rows(BY.get(noun, ELSE), given_)[0]
        return Use(int(jobs), float(taken) / HOUR)

    def count_drawn(self, platform: str, pledge: str) -> dict[str, int]:
        """Sum the cores and GPUs of all active sessions under a pledge of a platform."""
        cores, gpus = self._sql.rows(IN_USE, {"of_platform": platform, "of_pledge": pledge})[0]
        return {"cores": round(cores), "gpus": round(gpus)}

    def sum_bytes_drawn(self, platform: str, pledge: str) -> dict[str, int]:
        """Sum the memory and storage of these sessions, from their offers."""
        rows = self._sql.rows(DRAWN_SESSIONS, {"of_platform": platform, "of_pledge": pledge})
        offers = [read_session(row).offer for row in rows]
        memory = sum(offer.amounts.total.memory for offer in offers)
        return {"memory": memory, "storage": sum(sum(offer.storage.values()) for offer in offers)}

    def ran(self, since: datetime, until: datetime, *, person: str = "", platform: str = "") -> list[Ran]:
        """List the sessions that ran in a period, deleted or not, and those still running."""
        over = OVER.where(U.ended >= micros(since), U.started < micros(until))
        live = SESSION.where(S.started < micros(until), or_(S.ended.is_(None), S.ended >= micros(since)), ~COUNTED)
        for column, other, value in ((U.person, S.person, person), (U.platform, S.platform, platform)):
            over = over.where(column == plain(value)) if value else over
            live = live.where(other == plain(value)) if value else live
        ended = [_ran(row) for row in self._sql.select(over)]
        return ended + [use for row in self._sql.select(live) if (use := ran(read_session(row)))]

    def app_of(self, version: str) -> str:
        """Return the app of a version; empty if there is none."""
        row = self._sql.row(APP, {"version_id": plain(version)}) if version else None
        return str(row[0]) if row else ""


def end_use(session: Session, now: datetime) -> dict[str, Any]:
    """Return the parameters of END_USE for a session that has ended."""
    ended = session.ended or now
    return {"of_session": session.id, "new_started": micros_or_none(session.started), "new_ended": micros(ended)}


def _ran(row: Row) -> Ran:
    session, person, platform, started, ended, *amounts = row
    return Ran(session, person, platform, moment(started), moment(max(started, ended)), *amounts)


def _length(time: timedelta) -> int:
    return time // timedelta(microseconds=1)
