"""What is kept of sessions beyond their deletion, on both databases."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta

from sublet.archive.model.records import NamedRecord
from sublet.archive.store.records import cursor_of
from sublet.booking.model.offer import Predicted
from sublet.booking.model.phases import Phase
from sublet.booking.model.session import End, EndKind, Session, Usage
from sublet.store import Store, Tx
from tests.contract.stored import HOUR, NOON, define, offer_some, rows, whole
from tests.contract.stored import accept as take

DAY = timedelta(days=1)
USED = Usage(wall=1800.0, cpu=3000.0, peak_memory=3 << 30)


def end_one(tx: Tx, person: str, created: datetime, *, accepted: bool = True) -> Session:
    """A session of a person that ran for an hour, or an offer that its asker cancelled."""
    session = offer_some(tx, person, created, hold=(whole("n0", created),))[0]
    if not accepted:
        cancelled = tx.sessions.move(session.id, Phase.CANCELLED, now=created)
        assert cancelled
        return cancelled
    return run_accepted(tx, session, created)


def run_accepted(tx: Tx, session: Session, created: datetime) -> Session:
    """It is accepted, starts after five minutes, and ends an hour after it was asked for."""
    take(tx, session.id, created, (whole("n0", created),))
    tx.flush()  # as if the rest came in later writes
    for phase in (Phase.WAITING, Phase.PREPARING, Phase.RUNNING):
        tx.sessions.move(session.id, phase, now=created)
    end = End(EndKind.EXITED, code=0, usage=USED)
    started, ended = created + timedelta(minutes=5), created + HOUR
    tx.sessions.move(session.id, Phase.RELEASING, now=created, started=started, ended=ended, end=end)
    tx.books.release("here", session.id)
    over = tx.sessions.move(session.id, Phase.COMPLETED, now=ended)
    assert over
    return over


def listed(store: Store, person: str = "") -> list[NamedRecord]:
    return store.read_sync(lambda tx: tx.archive.page(person=person))


def fill(store: Store) -> dict[str, Session]:
    store.write_sync(define)
    people = {"alice": NOON, "bob": NOON + DAY}
    return {who: store.write_sync(lambda tx, w=who, c=c: end_one(tx, w, c)) for who, c in people.items()}


def test_a_record_outlives_its_session_with_what_was_asked_offered_used_and_how_it_ended(store: Store) -> None:
    session = fill(store)["alice"]
    store.write_sync(lambda tx: tx.sessions.delete(session.id))
    [kept] = listed(store, "alice")
    record = kept.record
    assert (kept.person, kept.name, record.session) == ("alice", "hello", session.id)
    assert (record.phase, record.outcome, record.code) == ("COMPLETED", "exited", 0)
    assert (record.asked, record.ended) == (NOON, NOON + HOUR)
    assert record.wait == 300.0
    assert (record.wall, record.cpu, record.peak_memory) == (1800.0, 3000.0, 3 << 30)
    offers = json.loads(record.offers)
    assert len(offers) == 3
    assert [offer["taken"] for offer in offers].count(True) == 1
    assert store.read_sync(lambda tx: tx.archive.document_of(session.id, "alice")) == (
        '{"run": "echo hello"}',
        "application/json",
    )
    assert store.read_sync(lambda tx: tx.archive.document_of(session.id, "bob")) is None


def test_an_offer_that_nobody_took_leaves_no_record(store: Store) -> None:
    store.write_sync(define)
    store.write_sync(lambda tx: end_one(tx, "alice", NOON, accepted=False))
    assert listed(store) == []


def test_no_record_names_anybody(store: Store, store_url: str) -> None:
    fill(store)
    for row in rows(store_url, "SELECT * FROM archive"):
        assert not any(word in str(row) for word in ("alice", "bob", "hello")), row
    assert rows(store_url, "SELECT count(DISTINCT who) FROM archive") == [(2,)]


def test_whoever_is_forgotten_is_in_no_table_of_the_archive_and_others_stay(store: Store, store_url: str) -> None:
    session = fill(store)["alice"]
    erased = store.write_sync(lambda tx: tx.archive.erase("alice"))
    assert (erased.records, erased.details) == (1, 1)
    assert {kept.person for kept in listed(store)} == {"", "bob"}
    for table in ("archive", "archive_people", "archive_details"):
        text = str(rows(store_url, f"SELECT * FROM {table}"))
        assert "alice" not in text, table
        assert session.id not in text, "by its id it could still be found whose it was"
    assert store.write_sync(lambda tx: tx.archive.erase("alice")).records == 0
    assert store.write_sync(lambda tx: tx.archive.erase("bob", records=True)).records == 1
    assert len(listed(store)) == 1


def test_names_go_before_records_and_both_when_they_are_too_old(store: Store) -> None:
    fill(store)
    old = store.read_sync(lambda tx: tx.archive.find_old_details(NOON + DAY, 10))
    assert store.write_sync(lambda tx: tx.archive.forget_details(old)) == 1
    assert [(kept.person, kept.record.who != "") for kept in listed(store)] == [("", False), ("bob", True)]
    assert store.read_sync(lambda tx: tx.archive.find_old_details(NOON + DAY, 10)) == []
    gone = store.read_sync(lambda tx: tx.archive.find_old(NOON + DAY, 10))
    assert store.write_sync(lambda tx: tx.archive.forget(gone)) == 1
    assert [kept.person for kept in listed(store)] == ["bob"]


def test_calibration_counts_how_often_the_truth_fell_inside(store: Store) -> None:
    store.write_sync(define)
    minutes = {"early": (10, 20), "inside": (0, 20), "late": (0, 1)}  # it starts after five

    def predict_and_run(tx: Tx, spread: tuple[int, int], created: datetime) -> None:
        low, high = (created + timedelta(minutes=each) for each in spread)
        terms = Predicted(low, high, high)
        session = offer_some(tx, "alice", created, hold=(whole("n0", created),))[0]
        tx.sessions.change(session.id, now=created, offer=replace(session.offer, queue="long", terms=terms))
        run_accepted(tx, session, created)

    for number, spread in enumerate(minutes.values()):
        store.write_sync(lambda tx, s=spread, n=number: predict_and_run(tx, s, NOON + n * DAY))
    [row] = store.read_sync(lambda tx: tx.archive.calibrate(NOON))
    assert (row.platform, row.queue) == ("here", "long")
    assert (row.starts, row.inside, row.earlier, row.later, row.stagings) == (3, 1, 1, 1, 0)
    assert store.read_sync(lambda tx: tx.archive.calibrate(NOON, "bob")) == []
    assert store.read_sync(lambda tx: tx.archive.calibrate(NOON + 9 * DAY)) == []


def test_a_list_goes_on_where_it_ended(store: Store) -> None:
    store.write_sync(define)
    for number in range(5):
        store.write_sync(lambda tx, n=number: end_one(tx, "alice", NOON + n * DAY))
    seen: list[NamedRecord] = []
    after = ""
    while page := store.read_sync(lambda tx, a=after: tx.archive.page(after=a, limit=2)):
        seen += page
        after = cursor_of(page[-1])
    assert [kept.record.asked for kept in seen] == [NOON + n * DAY for n in range(5)]
    since = store.read_sync(lambda tx: tx.archive.page(since=NOON + DAY, until=NOON + 3 * DAY, platform="here"))
    assert len(since) == 2
    assert store.read_sync(lambda tx: tx.archive.page(platform="there")) == []
