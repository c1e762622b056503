"""Sessions: finding, listing, and moving them from phase to phase."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, lru_cache
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Select,
    Update,
    delete,
    func,
    insert,
    null,
    or_,
    select,
    tuple_,
    update,
)

from sublet.access.store.budgets import END_CHARGE
from sublet.access.store.uses import END_USE, end_use
from sublet.annexes.model.annex import ANNEX_PLATFORM
from sublet.annexes.store.tables import annexes, leases
from sublet.apps.store.tables import versions
from sublet.archive.store.records import ArchiveStore
from sublet.booking.model.phases import ACTIVE, MOVES, OVER, Phase
from sublet.booking.model.session import Session
from sublet.booking.model.timeline import micros
from sublet.booking.store.belongings import remove_belongings
from sublet.booking.store.claims import Claims
from sublet.booking.store.rows import SESSION, S, read_session, session_rows, to_stored
from sublet.booking.store.tables import OFFERED, WAITING, WORKED_ON, offersets, sessions
from sublet.kernel.db.sql import bind, moment_or_none, plain
from sublet.kernel.errors import BadRequest

STATES = tuple(str(phase) for phase in Phase)
ENDS = frozenset({Phase.COMPLETED, Phase.FAILED, Phase.CANCELLED})  # of accepted sessions

ADD = insert(sessions)
GET = SESSION.where(S.id == bind("session_id"))
OF_SET = SESSION.where(S.offerset == bind("of_set")).order_by(S.created, S.id)
BY_PREFIX = SESSION.where(S.id >= bind("low"), S.id < bind("high")).order_by(S.id).limit(bind("most"))
BY_PREFIX_OF = BY_PREFIX.where(S.person == bind("of"))
UNTAKEN = (Phase.OFFERED, Phase.REJECTED, Phase.EXPIRED)
BY_NAME = (
    SESSION.where(S.person == bind("of"), S.name == bind("called"), S.phase.not_in([one.value for one in UNTAKEN]))
    .order_by(S.created.desc(), S.id.desc())
    .limit(bind("most"))
)
OFFERED_SIBLINGS = SESSION.where(
    S.offerset == bind("of_set"), S.id != bind("session_id"), S.phase == Phase.OFFERED.value
)
REJECT_SIBLINGS = (
    update(sessions)
    .where(S.offerset == bind("of_set"), S.id != bind("session_id"), S.phase == Phase.OFFERED.value)
    .values(phase=Phase.REJECTED.value, modified=bind("now"), due=null())
)
HELD = select(func.count(S.offerset.distinct())).where(
    OFFERED,
    S.person == bind("of_person"),
    S.expires + 0 > bind("at"),  # + 0: else SQLite scans everyone's, by their expiry
)
COUNTS = select(S.phase, func.count()).group_by(S.phase)
COUNTS_OF = COUNTS.where(S.person == bind("of_person"))
RUNNING_JOBS = select(S.id, S.job).where(S.platform == bind("on_platform"), S.job > "", WORKED_ON)
WAITS = select(S.id).where(S.platform == bind("on_platform"), WAITING).order_by(S.start, S.created).limit(bind("most"))
DELETE = delete(sessions).where(S.id == bind("session_id"))
DELETE_EMPTY_SET = delete(offersets).where(
    offersets.c.id == bind("of_set"), ~select(S.id).where(S.offerset == offersets.c.id).exists()
)
VERSIONS = select(versions.c.id).where(versions.c.app == bind("app"))
_annexes = select(annexes.c.id).where(annexes.c.name == bind("annex"))
NARROWED: dict[str, ColumnElement[bool]] = {
    "person": S.person == bind("person"),
    "kind": S.kind == bind("kind"),
    "platform": S.platform == bind("platform"),
    "annex": or_(
        S.platform == bind("annex_platform"),
        S.id.in_(select(leases.c.session).where(leases.c.annex.in_(_annexes))),
    ),
    "since": S.created >= bind("since"),
    "until": S.created < bind("until"),
    "called": S.name == bind("called"),
    "pattern": func.lower(S.name).like(func.lower(bind("pattern")), escape="/"),
    "seen_id": tuple_(S.created, S.id) < tuple_(bind("seen_created"), bind("seen_id")),
}


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a longer list of sessions."""

    items: tuple[Session, ...]
    next: str | None  # the cursor of the next page


DUE = select(S.due).where(S.id == bind("of_id"))


class SessionStore(Claims):
    """The sessions, as one transaction sees and changes them."""

    def add_offers(self, new: Iterable[Session]) -> None:
        """Record offers; the loop looks at each when it expires."""
        self._sql.change_many(ADD, session_rows(new, lambda session: micros(session.expires)))

    def get(self, id: str) -> Session | None:
        """Return the session with this id, or None."""
        row = self._sql.row(GET, {"session_id": plain(id)})
        return None if row is None else read_session(row)

    def of_set(self, offerset: str) -> list[Session]:
        """Return all sessions of an offer set."""
        return [read_session(row) for row in self._sql.rows(OF_SET, {"of_set": plain(offerset)})]

    def find(self, prefix: str, person: str | None = None, limit: int = 100) -> list[Session]:
        """Find sessions by the beginning of their id, of everyone or of one person, up to a limit."""
        low = prefix.lower()
        if not low or not set(low) <= set("0123456789abcdef-"):
            return []
        values = {"low": low, "high": low + "g", "most": limit}
        rows = self._sql.rows(*((BY_PREFIX, values) if person is None else (BY_PREFIX_OF, values | {"of": person})))
        return [read_session(row) for row in rows]

    def find_by_name(self, name: str, person: str, limit: int = 100) -> list[Session]:
        """Find a person's accepted sessions of exactly this name, newest first."""
        rows = self._sql.rows(BY_NAME, {"of": person, "called": plain(name), "most": limit})
        return [read_session(row) for row in rows]

    def list(
        self,
        *,
        person: str | None = None,
        phases: Collection[Phase] | None = None,
        kind: str | None = None,
        platform: str | None = None,
        name: str | None = None,
        active: bool | None = None,
        app: str | None = None,
        annex: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> Page:
        """List sessions, newest first; `name` is a whole name, or a pattern with `*`.

        `active` selects active sessions, or ended ones if it is false. `app` is a name, or NAME@NUMBER for one version
        of it; `since` and `until` say when they were asked for.
        """
        among = None if active is None else (ACTIVE if active else OVER)
        kept = [set(some) for some in (phases, among) if some is not None]
        states = tuple(sorted(phase.value for phase in set.intersection(*kept))) if kept else None
        of_app, _, number = (app or "").partition("@")
        texts = {"person": person, "kind": kind, "platform": platform, "app": of_app or None, "annex": annex or None}
        values: dict[str, Any] = {key: plain(text) for key, text in texts.items() if text is not None}
        values |= {key: micros(time) for key, time in (("since", since), ("until", until)) if time}
        if number:
            values["number"] = int(number) if number.isdecimal() and len(number) < 10 else -1
        if annex:
            values["annex_platform"] = plain(f"{ANNEX_PLATFORM}{annex}")
        if name:
            values |= {"pattern": _escape(plain(name)).replace("*", "%")} if "*" in name else {"called": plain(name)}
        if after:
            values["seen_created"], values["seen_id"] = _cursor(after)
        rows = self._sql.rows(_listing(tuple(values), states), {**values, "most": limit + 1})
        more = len(rows) > limit
        items = tuple(read_session(row) for row in rows[:limit])
        return Page(items, f"{micros(items[-1].created)}.{items[-1].id}" if more and items else None)

    def move(
        self,
        id: str,
        to: Phase,
        *,
        now: datetime,
        when: Collection[Phase] | None = None,
        token: str | None = None,
        known: Session | None = None,
        **changes: Any,
    ) -> Session | None:
        """Move a session to a phase and return it; None if its present phase doesn't allow that.

        `when` narrows the allowed phases, `token` is a claim that must still hold, and `changes` are other fields of
        the session, or `due`. `known` is the session as this transaction has read it, so that it is not read again.
        """
        allowed = [phase for phase in (Phase if when is None else when) if to in MOVES[phase]]
        moved = self._change(id, allowed, now, token, {"phase": to, **changes}, known)
        if moved and to in ENDS:
            for statement in (END_USE, END_CHARGE):
                self._sql.change(statement, end_use(moved, now))
            ArchiveStore(self._sql).add(moved, now)
        return moved

    def change(
        self,
        id: str,
        *,
        now: datetime,
        when: Collection[Phase] | None = None,
        token: str | None = None,
        **changes: Any,
    ) -> Session | None:
        """Change fields of a session, or `due`, without a move; None if its phase isn't in `when`."""
        return self._change(id, tuple(Phase) if when is None else tuple(when), now, token, changes)

    def reject_siblings(self, accepted: Session, now: datetime) -> Sequence[Session]:
        """Reject the other offers of the set, and return them as they were."""
        params = {"of_set": accepted.offerset, "session_id": accepted.id}
        siblings = [read_session(row) for row in self._sql.rows(OFFERED_SIBLINGS, params)]
        if siblings:
            self._sql.change(REJECT_SIBLINGS, {**params, "now": micros(now)})
        return siblings

    def waiting(self, platform: str, limit: int) -> Sequence[str]:
        """Return the ids of sessions that wait for their time on a platform, the earliest start first."""
        return [id for (id,) in self._sql.rows(WAITS, {"on_platform": platform, "most": limit})]

    def active(self, platform: str) -> dict[str, str]:
        """Return the jobs of active sessions on a platform, by session id."""
        return dict(self._sql.rows(RUNNING_JOBS, {"on_platform": platform}))

    def find_due(self, id: str) -> datetime | None:
        """Return when the loop looks at a session next; for a session that is over, when its files are removed."""
        row = self._sql.row(DUE, {"of_id": id})
        return moment_or_none(row[0]) if row else None

    def with_files(self, ids: Collection[str]) -> set[str]:
        """Return which of these sessions are active, or over with their files still kept."""
        query = select(S.id).where(S.id.in_(list(ids)), or_(WORKED_ON, S.due.is_not(None)))
        return {row[0] for row in self._sql.select(query)}

    def by_job(self, platform: str, jobs: Collection[str]) -> Sequence[Session]:
        """Return the active sessions that have these jobs on a platform."""
        wanted = [job for job in jobs if job]
        query = SESSION.where(S.platform == platform, S.job.in_(wanted), WORKED_ON)
        return [read_session(row) for row in self._sql.select(query)] if wanted else []

    def count_held(self, person: str, now: datetime) -> int:
        """Count the requests of a person for which offers are held now."""
        return self._sql.number(HELD, {"at": micros(now), "of_person": plain(person)})

    def count_by_phase(self, person: str | None = None) -> dict[Phase, int]:
        """Count the sessions in each phase, of everyone or of one person."""
        of = {"of_person": plain(person or "")}
        counted: dict[str, int] = dict(self._sql.rows(COUNTS if person is None else COUNTS_OF, of if person else {}))
        return {phase: counted.get(phase.value, 0) for phase in Phase}

    def delete(self, id: str) -> bool:
        """Delete a session and what belongs to it, and its set if it was the last; return whether it was there."""
        session = self.get(id)
        if session is None:
            return False
        self._sql.change(DELETE, {"session_id": id})
        remove_belongings(self._sql, [session.id])
        self._sql.change(DELETE_EMPTY_SET, {"of_set": session.offerset})
        return True

    def _change(
        self,
        id: str,
        when: Sequence[Phase],
        now: datetime,
        token: str | None,
        changes: dict[str, Any],
        known: Session | None = None,
    ) -> Session | None:
        columns = {name: to_stored(name, value) for name, value in changes.items()}
        statement = _update(tuple(sorted(columns)), tuple(sorted(phase.value for phase in when)), token is not None)
        params = {f"new_{name}": value for name, value in columns.items()}
        params |= {"session_id": plain(id), "new_modified": micros(now)}
        if token is not None:
            params["token"] = token
        if not self._sql.change(statement, params):
            return None
        if known is None:
            return self.get(id)
        return replace(known, modified=now, **{name: value for name, value in changes.items() if name != "due"})


@cache
def _update(columns: tuple[str, ...], phases: tuple[str, ...], claimed: bool) -> Update:
    """Build the guarded update of these columns; cached, because there are few combinations."""
    new: dict[str, BindParameter[Any]] = {name: bind(f"new_{name}") for name in (*columns, "modified")}
    statement = update(sessions).where(S.id == bind("session_id")).values(new)
    if phases != tuple(sorted(STATES)):
        statement = statement.where(S.phase.in_(phases))
    return statement.where(S.claim_token == bind("token")) if claimed else statement


@lru_cache(maxsize=256)
def _listing(given: tuple[str, ...], states: tuple[str, ...] | None) -> Select[Any]:
    """Build the query with these filters; cached, because there are few combinations."""
    query: Select[Any] = SESSION.order_by(S.created.desc(), S.id.desc()).limit(bind("most"))
    if states is not None:
        query = query.where(S.phase.in_(states))
    for name in given:
        if name in NARROWED:
            query = query.where(NARROWED[name])
    if "app" in given:
        of = VERSIONS.where(versions.c.number == bind("number")) if "number" in given else VERSIONS
        query = query.where(S.app.in_(of))
    return query


def _escape(text: str) -> str:
    """Escape a text so that each character stands for itself in a LIKE."""
    return text.replace("/", "//").replace("%", "/%").replace("_", "/_")


def _cursor(text: str) -> tuple[int, str]:
    created, _, last = text.partition(".")
    if not created.isdecimal() or len(created) > 18 or not last:
        raise BadRequest(detail=f"{text!r} is not a cursor of this list", hint="Send back `next` as it came.")
    return int(created), plain(last)
