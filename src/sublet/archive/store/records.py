"""The SQL of records: written in the transaction that ends a session, and read in pages."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import uuid4

from sqlalchemy import Select, and_, case, delete, func, insert, or_, select, update

from sublet.apps.store.tables import versions
from sublet.archive.model.habits import KEPT, label_of
from sublet.archive.model.records import COLUMNS, Calibration, Erased, NamedRecord, SessionRecord, make_record
from sublet.archive.store.habits import HabitStore
from sublet.archive.store.tables import HINTS, archive, archive_details, archive_people
from sublet.booking.model.events import EventKind
from sublet.booking.model.phases import Phase
from sublet.booking.model.run_time import Run
from sublet.booking.model.session import EndKind, Session
from sublet.booking.model.timeline import micros, moment
from sublet.booking.store.offersets import REQUEST
from sublet.booking.store.older_rows import gather_request_options
from sublet.booking.store.rows import SESSION, S, read_session
from sublet.booking.store.tables import events, offersets
from sublet.kernel.db.sql import Row, Sql, bind, plain

A, D, P = archive.c, archive_details.c, archive_people.c
TIMES = frozenset(name for name in COLUMNS if HINTS[name] in (datetime, datetime | None))
A_SECOND = 1.0  # a smaller difference in run time doesn't count as wrong
KNOWN = select(A.session).where(A.session == bind("of_session"))
ADD = insert(archive)
ADD_DETAILS = insert(archive_details)
ADD_PERSON = insert(archive_people)
WHO = select(P.who).where(P.person == bind("of_person"))
APP = select(versions.c.app, versions.c.number).where(versions.c.id == bind("version_id"))
ACCEPTED = (
    select(events.c.time)
    .where(events.c.session == bind("of_session"), events.c.kind == EventKind.ACCEPTED.value)
    .order_by(events.c.id)
    .limit(1)
)
SIBLINGS = SESSION.where(S.offerset == bind("of_set")).order_by(S.created, S.id)
DOCUMENT = select(offersets.c.document, offersets.c.content_type, offersets.c.request).where(
    offersets.c.id == bind("of_set")
)
RECORD = select(*(A[name] for name in COLUMNS), P.person, D.name).select_from(
    archive.outerjoin(archive_people, P.who == A.who).outerjoin(archive_details, D.session == A.session)
)
_predicted = and_(A.earliest.is_not(None), A.latest.is_not(None), A.started.is_not(None))
_early, _late = A.started < A.earliest, A.started > A.latest
_staged = and_(A.staged.is_not(None), A.staging_high >= 1)
_ran = and_(
    A.run_high.is_not(None),
    A.wall.is_not(None),
    or_(A.phase == Phase.COMPLETED.value, A.outcome == EndKind.TIMEOUT.value),
)
_shorter = A.wall < A.run_low - A_SECOND
_longer = or_(A.wall > A.run_high + A_SECOND, A.outcome == EndKind.TIMEOUT.value)
CALIBRATION = (
    select(
        A.platform,
        A.queue,
        *(
            func.sum(case((test, 1), else_=0))
            for test in (
                _predicted,
                and_(_predicted, ~_early, ~_late),
                and_(_predicted, _early),
                and_(_predicted, _late),
                _staged,
                and_(_staged, A.staged <= A.staging_high),
                _ran,
                and_(_ran, ~_shorter, ~_longer),
                and_(_ran, _shorter),
                and_(_ran, _longer),
            )
        ),
    )
    .where(or_(_predicted, _staged, _ran))
    .group_by(A.platform, A.queue)
    .order_by(A.platform, A.queue)
)


class ArchiveStore:
    """The archive, as one transaction reads and changes it."""

    def __init__(self, sql: Sql) -> None:
        """Work in the transaction of `sql`."""
        self._sql = sql

    def add(self, session: Session, now: datetime) -> SessionRecord | None:
        """Record an accepted session that has ended, only once; return None if it wasn't accepted or is recorded."""
        if session.start is None or self._sql.row(KNOWN, {"of_session": session.id}):
            return None
        accepted = self._sql.row(ACCEPTED, {"of_session": session.id})
        siblings = [read_session(row) for row in self._sql.rows(SIBLINGS, {"of_set": session.offerset})]
        when = moment(accepted[0]) if accepted else None
        record = make_record(session, self.find_who(session.person), self._name_app(session.app), when, siblings)
        self._sql.change(ADD, {name: _to_stored(getattr(record, name)) for name in COLUMNS})
        document = self._sql.row(DOCUMENT, {"of_set": session.offerset}) or ("", "", "")
        details: dict[str, object] = {"session": session.id, "who": record.who, "name": plain(session.name)}
        details |= {"document": document[0], "content_type": document[1], "ended": micros(session.ended or now)}
        self._sql.change(ADD_DETAILS, details)
        self._learn(record, document[2], now)
        return record

    def _learn(self, record: SessionRecord, request: str, now: datetime) -> None:
        """Add what a completed run used to the person's habits."""
        if record.phase == Phase.COMPLETED and record.wall and request:
            label = label_of(REQUEST.validate_json(gather_request_options(request)).executable)
            where = (record.platform, record.queue, record.cores * record.nodes, record.time_limit)
            run = Run(record.wall, (record.cpu or 0) / record.wall, record.peak_memory or 0, *where)
            HabitStore(self._sql).add(record.who, label, run, now)

    def page(
        self,
        *,
        person: str = "",
        platform: str = "",
        since: datetime | None = None,
        until: datetime | None = None,
        after: str = "",
        limit: int = 100,
    ) -> list[NamedRecord]:
        """Return records by the time of their request, oldest first, after a cursor; of everyone or of one person."""
        query: Select[Any] = RECORD.order_by(A.asked, A.session).limit(limit)
        if person:
            query = query.where(P.person == plain(person))
        if platform:
            query = query.where(A.platform == plain(platform))
        if since:
            query = query.where(A.asked >= micros(since))
        if until:
            query = query.where(A.asked < micros(until))
        if after:
            asked, _, last = after.partition(".")
            query = query.where(or_(A.asked > int(asked), and_(A.asked == int(asked), A.session > last)))
        return [_read(row) for row in self._sql.select(query)]

    def calibrate(self, since: datetime, person: str = "") -> list[Calibration]:
        """Return how often predictions since then came true, by platform and queue; of everyone or of one person."""
        query: Select[Any] = CALIBRATION.where(A.asked >= micros(since))
        if person:
            query = query.where(A.who == select(P.who).where(P.person == plain(person)).scalar_subquery())
        return [Calibration(*row[:2], *(int(count or 0) for count in row[2:])) for row in self._sql.select(query)]

    def list_runs(self, app: str, since: datetime, limit: int = KEPT) -> list[Run]:
        """Return the newest completed runs of an app, by whomever, oldest first."""
        query = (
            select(A.wall, A.cpu, A.peak_memory, A.platform, A.queue, A.cores * A.nodes, A.time_limit)
            .where(A.asked >= micros(since), A.app.startswith(f"{plain(app)}@", autoescape=True), A.wall > 0)
            .where(A.phase == Phase.COMPLETED.value)
            .order_by(A.asked.desc())
            .limit(limit)
        )
        rows = reversed(self._sql.select(query))
        return [Run(wall, (cpu or 0) / wall, peak or 0, *where) for wall, cpu, peak, *where in rows]

    def document_of(self, session: str, person: str) -> tuple[str, str] | None:
        """Return the request of a person's session, as it was received, and its media type; None if there is none."""
        query = select(D.document, D.content_type).join(archive_people, P.who == D.who)
        rows = self._sql.select(query.where(D.session == plain(session), P.person == plain(person)))
        return (str(rows[0][0]), str(rows[0][1])) if rows else None

    def erase(self, person: str, *, records: bool = False) -> Erased:
        """Erase whose records these are, and what the person typed; with `records`, remove the records, too.

        The remaining records get new ids, so that other lists of sessions can't reveal whose they were.
        """
        row = self._sql.row(WHO, {"of_person": plain(person)})
        if row is None:
            return Erased(0, 0)
        who = row[0]
        details = self._sql.modify(delete(archive_details).where(D.who == who))
        HabitStore(self._sql).erase(who)
        if records:
            count = self._sql.modify(delete(archive).where(A.who == who))
        else:
            ids = [row[0] for row in self._sql.select(select(A.session).where(A.who == who))]
            for id in ids:
                self._sql.modify(update(archive).where(A.session == id).values(session=str(uuid4())))
            count = len(ids)
        self._sql.modify(delete(archive_people).where(P.who == who))
        return Erased(count, details)

    def find_old(self, before: datetime, limit: int) -> list[str]:
        """Return the sessions of records that ended before then, oldest first."""
        query = select(A.session).where(A.ended < micros(before)).order_by(A.ended).limit(limit)
        return [row[0] for row in self._sql.select(query)]

    def find_old_details(self, before: datetime, limit: int) -> list[str]:
        """Return the sessions that ended before then and still have details, oldest first."""
        query = select(D.session).where(D.ended < micros(before)).order_by(D.ended).limit(limit)
        return [row[0] for row in self._sql.select(query)]

    def forget(self, sessions: Sequence[str]) -> int:
        """Remove these records and their details; return how many records."""
        self._sql.modify(delete(archive_details).where(D.session.in_(sessions)))
        return self._sql.modify(delete(archive).where(A.session.in_(sessions)))

    def forget_details(self, sessions: Sequence[str]) -> int:
        """Remove the names and requests of these records, which stay under new ids and without a pseudonym."""
        gone = self._sql.modify(delete(archive_details).where(D.session.in_(sessions)))
        for id in sessions:
            self._sql.modify(update(archive).where(A.session == id).values(session=str(uuid4()), who=""))
        return gone

    def find_who(self, person: str) -> str:
        """Return a person's pseudonym, created if there is none yet."""
        row = self._sql.row(WHO, {"of_person": plain(person)})
        if row:
            return str(row[0])
        who = str(uuid4())
        self._sql.change(ADD_PERSON, {"who": who, "person": plain(person)})
        return who

    def _name_app(self, version: str) -> str:
        row = self._sql.row(APP, {"version_id": plain(version)}) if version else None
        return f"{row[0]}@{row[1]}" if row else ""


def cursor_of(last: NamedRecord) -> str:
    """Return the cursor that continues a list after this record."""
    return f"{micros(last.record.asked)}.{last.record.session}"


def _to_stored(value: Any) -> Any:
    if isinstance(value, datetime):
        return micros(value)
    return plain(value) if isinstance(value, str) else value


def _read(row: Row) -> NamedRecord:
    *values, person, name = row
    stored = dict(zip(COLUMNS, values, strict=True))
    times = {key: None if stored[key] is None else moment(stored[key]) for key in TIMES}
    return NamedRecord(SessionRecord(**(stored | times)), person or "", name or "")
