"""Old records go, and nothing that runs, has files or is counted goes with them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import Text

from sublet.app import build_context, open_service
from sublet.booking.loop.retention import BATCH, forget_old
from sublet.booking.model.events import EventKind
from sublet.booking.model.handover import HandOver
from sublet.booking.model.phases import Phase
from sublet.booking.model.session import Dependency, Session
from sublet.kernel.db.audit import AuditEntry
from sublet.kernel.settings import Settings
from sublet.notices.model.hooks import Hook
from sublet.people.store.tokens import Token
from sublet.store import Store, Tx
from sublet.store.tables import metadata
from tests.contract.stored import HOUR, NOON, define, offer_some, rows, whole
from tests.contract.stored import accept as take

DAY = timedelta(days=1)
KEPT = {"uses", "charges", "draws", "archive", "archive_details"}  # what people used, and the archive
ENDING = (Phase.WAITING, Phase.PREPARING, Phase.RUNNING, Phase.RELEASING)


def run_one(tx: Tx, created: datetime, *, to: Phase = Phase.COMPLETED, due: datetime | None = None) -> Session:
    """A session that began at a time, and is in a phase an hour later; two siblings were rejected."""
    session = offer_some(tx, created=created, hold=(whole("n0", created),))[0]
    moved = take(tx, session.id, created, (whole("n0", created),))
    for phase in ENDING:
        if moved and moved.phase is not to:
            moved = tx.sessions.move(session.id, phase, now=created, started=created)
    if to is Phase.COMPLETED:
        ended = created + HOUR
        moved = tx.sessions.move(session.id, to, now=ended, ended=ended, due=due)
        tx.books.release("here", session.id)
    assert moved
    tx.events.add(created, session.id, "alice", EventKind.RUNNING)
    return moved


def forget(store: Store, before: datetime) -> int:
    ids = store.read_sync(lambda tx: tx.retention.find_sessions(before, 100))
    return store.write_sync(lambda tx: tx.retention.forget_sessions(ids, before))


def left(store_url: str) -> set[object]:
    return {row[0] for row in rows(store_url, "SELECT id FROM sessions WHERE phase NOT IN ('REJECTED')")}


def test_sessions_that_ended_long_ago_go_with_all_that_belongs_to_them(store: Store, store_url: str) -> None:
    store.write_sync(define)
    old, young = (store.write_sync(lambda tx, c=c: run_one(tx, c)) for c in (NOON, NOON + 10 * DAY))
    assert forget(store, NOON + 5 * DAY) == 1
    assert left(store_url) == {young.id}
    for table, column in (("offersets", "id"), ("events", "session"), ("sessions", "offerset")):
        found = {row[0] for row in rows(store_url, f"SELECT {column} FROM {table}")}
        assert not found & {old.id, old.offerset}, table
    assert forget(store, NOON + 5 * DAY) == 0


def surround(tx: Tx, session: Session) -> None:
    """Rows of each table that refers to a session and has no retention of its own."""
    tx.handovers.put(HandOver(session.id, "alice", "bob", session.created))
    tx.visits.note(session.id, session.created)
    tx.dependencies.add(session.id, [Dependency("earlier")])
    tx.tokens.add(Token("t", "alice", "its own", session.created, session=session.id), "hash")
    for id, of in (("its-own", session.id), ("all", "")):
        tx.hooks.add(
            Hook(id, "alice", of, "https://example.org/", "", (), session.created, session.created + 900 * DAY)
        )
        tx.hooks.spread(tx.hooks.get(id) or pytest.fail(id), 1, [1], session.created)


def mentions(store_url: str, *ids: str) -> set[str]:
    """The tables that mention one of these ids, except by a released booking, which the calendar removes itself."""
    columns = [column for table in metadata.tables.values() for column in table.c if isinstance(column.type, Text)]
    condition = "IN ({})".format(", ".join(f"'{id}'" for id in ids))
    released = {"bookings": " AND takes IS NOT NULL"}
    looks = [
        f'SELECT \'{name}\' FROM "{name}" WHERE "{column}" {condition}{released.get(name, "")}'
        for name, column in ((column.table.name, column.name) for column in columns)
    ]
    return {str(name) for (name,) in rows(store_url, " UNION ".join(looks))}


def test_forgotten_sessions_leave_rows_only_in_what_people_used(store: Store, store_url: str) -> None:
    store.write_sync(define)
    session = store.write_sync(lambda tx: run_one(tx, NOON))
    store.write_sync(lambda tx: surround(tx, session))
    assert mentions(store_url, session.id) >= {"sessions", "handovers", "visits", "dependencies", "tokens", "hooks"}
    assert forget(store, NOON + 5 * DAY) == 1
    assert mentions(store_url, session.id, session.offerset) <= KEPT
    assert store.read_sync(lambda tx: [hook.id for hook in tx.hooks.of("alice")]) == ["all"]
    assert rows(store_url, "SELECT hook FROM deliveries") == [("all",)]


def test_a_deleted_session_leaves_no_hand_over_visit_or_token(store: Store, store_url: str) -> None:
    store.write_sync(define)
    session = store.write_sync(lambda tx: run_one(tx, NOON))
    store.write_sync(lambda tx: surround(tx, session))
    assert store.write_sync(lambda tx: tx.sessions.delete(session.id))
    assert mentions(store_url, session.id) <= {*KEPT, "hooks"}, "hooks expire by themselves"


def test_what_runs_or_has_files_stays_however_old_it_is(store: Store, store_url: str) -> None:
    store.write_sync(define)
    running = [store.write_sync(lambda tx, n=n, p=p: run_one(tx, NOON + n * HOUR, to=p)) for n, p in enumerate(ENDING)]
    with_files = store.write_sync(lambda tx: run_one(tx, NOON + 9 * HOUR, due=NOON + 30 * DAY))
    assert forget(store, NOON + 5 * DAY) == 0
    assert left(store_url) == {session.id for session in (*running, with_files)}
    before = store.read_sync(lambda tx: tx.events.after())
    ids = store.read_sync(lambda tx: tx.retention.find_events(NOON + 5 * DAY, 1000))
    store.write_sync(lambda tx: tx.retention.forget_events(ids))
    after = store.read_sync(lambda tx: tx.events.after())
    assert {event.session for event in before if event not in after} <= {
        with_files.id,
        *(session.offerset for session in (*running, with_files)),
    }
    assert forget(store, NOON + 31 * DAY) == 1, "a platform that never comes back keeps nothing for ever"


def test_a_session_that_was_found_old_and_is_used_meanwhile_stays(store: Store, store_url: str) -> None:
    store.write_sync(define)
    session = store.write_sync(lambda tx: run_one(tx, NOON))
    ids = store.read_sync(lambda tx: tx.retention.find_sessions(NOON + DAY, 100))
    store.write_sync(lambda tx: tx.sessions.change(session.id, now=NOON + 2 * DAY, condition="fetched again"))
    assert store.write_sync(lambda tx: tx.retention.forget_sessions(ids, NOON + DAY)) == 0
    assert left(store_url) == {session.id}


def test_what_people_used_is_told_after_their_sessions_are_forgotten(store: Store) -> None:
    store.write_sync(define)
    store.write_sync(lambda tx: run_one(tx, NOON))
    used = store.read_sync(lambda tx: tx.uses.ran(NOON - DAY, NOON + DAY))
    assert len(used) == 1
    assert forget(store, NOON + 5 * DAY) == 1
    assert store.read_sync(lambda tx: tx.uses.ran(NOON - DAY, NOON + DAY)) == used


def test_old_entries_of_the_audit_log_go(store: Store) -> None:
    for day in range(3):
        store.write_sync(lambda tx, d=day: tx.audit.add(AuditEntry(NOON + d * DAY, "op", f"rule.add.{d}")))
    ids: Sequence[int] = store.read_sync(lambda tx: tx.retention.find_audit(NOON + 2 * DAY, 100))
    assert store.write_sync(lambda tx: tx.retention.forget_audit(ids)) == 2
    assert [entry.action for entry in store.read_sync(lambda tx: tx.audit.list())] == ["rule.add.2"]


@pytest.mark.anyio
async def test_a_service_forgets_what_its_settings_say_in_bounded_steps(store_url: str, tmp_path: Path) -> None:
    later = NOON + 400 * DAY
    keep = {"sessions": "90d", "events": "30d", "audit": "forever", "archive_people": "forever"}
    settings = Settings.load(tmp_path, database=store_url, retention=keep, platforms={})
    async with open_service(settings, now=lambda: later, loop=False) as service:

        def fill(tx: Tx) -> None:
            define(tx)
            run_one(tx, NOON)
            tx.audit.add(AuditEntry(NOON, "op", "rule.add"))
            for number in range(2 * BATCH + 1):
                tx.events.add(NOON, f"gone-{number}", "alice", "session.completed")
            tx.events.add(later - DAY, "recent", "alice", "session.completed")

        await service.store.write(fill)
        assert await forget_old(build_context(service)) == {
            "sessions": 1,
            "events": 2 * BATCH + 1,
            "audit": 0,
            "archive": 0,
            "archive_people": 0,
        }
        assert [event.session for event in await service.store.read(lambda tx: tx.events.after())] == ["recent"]
        assert not any((await forget_old(build_context(service))).values())


@pytest.fixture
def anyio_backend() -> str:
    """The service runs on asyncio alone."""
    return "asyncio"
