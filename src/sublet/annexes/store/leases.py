"""Leases in the database: the resource requests of annexes, recorded before submission and kept as history."""

from __future__ import annotations

from datetime import datetime

from pydantic import TypeAdapter
from sqlalchemy import func, insert, select, update

from sublet.annexes.model.annex import Details, Lease
from sublet.annexes.store.tables import annexes, leases
from sublet.booking.model.timeline import micros, moment
from sublet.kernel.db.sql import Row, Sql, bind, dump, moment_or_none, plain

L = leases.c
COLUMNS = (L.id, L.annex, L.number, L.details, L.created, L.session, L.ended, L.why)
ADD = insert(leases)
LAST = select(func.max(L.number)).where(L.annex == bind("of_annex"))
GET = select(*COLUMNS).where(L.id == bind("of_id"))
OF_SESSION = select(*COLUMNS).where(L.session == bind("of_session"))
LIST = select(*COLUMNS).where(L.annex == bind("of_annex")).order_by(L.number)
LIVE = select(*COLUMNS).where(L.ended.is_(None)).order_by(L.created, L.id)
LATEST = (
    select(*COLUMNS)
    .join(annexes, annexes.c.id == L.annex)
    .where(annexes.c.person == bind("of_person"))
    .order_by(L.created.desc(), L.id)
    .limit(1)
)
SEND = update(leases).where(L.id == bind("of_id")).values(session=bind("s"))
EXPLAIN = update(leases).where(L.id == bind("of_id"), L.ended.is_(None)).values(why=bind("w"))
END = update(leases).where(L.id == bind("of_id"), L.ended.is_(None)).values(ended=bind("e"), why=bind("w"))

DETAILS = TypeAdapter(Details)


class LeaseStore:
    """The leases, in one transaction."""

    def __init__(self, sql: Sql) -> None:
        """Use this transaction."""
        self._sql = sql

    def next_number(self, annex: str) -> int:
        """Return the number of the annex's next lease."""
        row = self._sql.row(LAST, {"of_annex": annex})
        return 1 + (row[0] or 0 if row else 0)

    def add(self, lease: Lease) -> None:
        """Record a resource request."""
        self._sql.change(
            ADD,
            {
                "id": lease.id,
                "annex": lease.annex,
                "number": lease.number,
                "details": dump(DETAILS, lease.details),
                "created": micros(lease.created),
                "session": lease.session,
                "ended": None,
                "why": "",
            },
        )

    def get(self, id: str) -> Lease | None:
        """Return a lease by id."""
        return _lease(self._sql.row(GET, {"of_id": plain(id)}))

    def of_session(self, session: str) -> Lease | None:
        """Return the lease of a session."""
        return _lease(self._sql.row(OF_SESSION, {"of_session": plain(session)})) if session else None

    def live(self) -> list[Lease]:
        """List all leases that haven't ended, oldest first."""
        return _leases(self._sql.rows(LIVE, {}))

    def list(self, annex: str) -> list[Lease]:
        """List the leases of an annex, by number."""
        return _leases(self._sql.rows(LIST, {"of_annex": plain(annex)}))

    def latest(self, person: str) -> Lease | None:
        """Return a person's newest lease, of any annex."""
        return _lease(self._sql.row(LATEST, {"of_person": plain(person)}))

    def send(self, id: str, session: str) -> None:
        """Record the lease's session, before that is accepted."""
        self._sql.change(SEND, {"of_id": id, "s": session})

    def explain(self, id: str, why: str) -> None:
        """Record why a lease is being ended, before its system has ended it."""
        self._sql.change(EXPLAIN, {"of_id": id, "w": plain(why)})

    def end(self, id: str, now: datetime, why: str = "") -> bool:
        """Mark a lease as ended; return whether it hadn't ended before."""
        return self._sql.change(END, {"of_id": id, "e": micros(now), "w": plain(why)}) > 0


def _leases(rows: list[Row]) -> list[Lease]:
    return [lease for lease in map(_lease, rows) if lease]


def _lease(row: Row | None) -> Lease | None:
    if row is None:
        return None
    id, annex, number, details, created, session, ended, why = row
    made = moment(created)
    return Lease(id, annex, number, DETAILS.validate_json(details), made, session, moment_or_none(ended), why)
