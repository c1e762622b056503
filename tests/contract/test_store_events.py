"""Events are read in the order in which they were committed, and none is missed."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from sqlalchemy import text

from sublet.booking.model.events import Event, EventKind
from sublet.booking.model.phases import Phase
from sublet.kernel.db.engine import Database
from sublet.store import Store, Tx
from tests.contract.stored import MINUTE, NOON


def test_events_come_back_in_order_and_after_a_point(store: Store) -> None:
    def add(tx: Tx) -> None:
        tx.events.add(NOON, "s1", "alice", "session.accepted", "by alice", Phase.ACCEPTED)
        tx.events.add(NOON + MINUTE, "s2", "bob", "session.cancelled")

    assert store.read_sync(lambda tx: tx.events.newest()) == 0
    store.write_sync(add)
    store.write_sync(add)
    events = store.read_sync(lambda tx: tx.events.after())
    assert [event.kind for event in events] == ["session.accepted", "session.cancelled"] * 2
    assert events[0] == Event(events[0].id, NOON, "s1", "alice", "session.accepted", "by alice", "ACCEPTED")
    ids = [event.id for event in events]
    assert ids == sorted(ids)
    assert store.read_sync(lambda tx: tx.events.newest()) == ids[-1]
    assert store.read_sync(lambda tx: tx.events.after(ids[1])) == events[2:]
    assert store.read_sync(lambda tx: tx.events.after(ids[0], limit=1)) == events[1:2]
    assert store.read_sync(lambda tx: tx.events.after(session="s1")) == events[::2]
    assert store.read_sync(lambda tx: tx.events.after(person="bob")) == events[1::2]
    assert store.read_sync(lambda tx: tx.events.after(session="s1", person="bob")) == []


def test_who_follows_misses_nothing_while_several_processes_write(open_store: Callable[[], Store]) -> None:
    writers = [open_store() for _ in range(3)]
    reader = open_store()
    each = 60

    def write(name: str, store: Store) -> None:
        for number in range(each):
            store.write_sync(lambda tx, n=number: tx.events.add(NOON, f"{name}{n}", name, EventKind.RUNNING))

    threads = [threading.Thread(target=write, args=(f"w{n}-", store)) for n, store in enumerate(writers)]
    for thread in threads:
        thread.start()
    seen: list[Event] = []
    while True:
        over = not any(thread.is_alive() for thread in threads)
        last = seen[-1].id if seen else 0
        new = reader.read_sync(lambda tx, last=last: tx.events.after(last, limit=7))
        seen += new
        if over and not new:
            break
    assert len(seen) == 3 * each
    assert {event.session for event in seen} == {f"w{n}-{k}" for n in range(3) for k in range(each)}


def test_ids_are_not_given_again_after_events_were_removed(store: Store) -> None:
    store.write_sync(lambda tx: tx.events.add(NOON, "s1", "alice", EventKind.WAITING))
    last = store.read_sync(lambda tx: tx.events.newest())
    store.write_sync(lambda tx: tx.retention.forget_events([last]))
    store.write_sync(lambda tx: tx.events.add(NOON, "s2", "alice", EventKind.RUNNING))
    assert store.read_sync(lambda tx: tx.events.newest()) > last


def test_what_has_no_kind_is_not_recorded_and_a_kind_of_a_newer_version_is_told_as_unknown(
    store: Store, store_url: str
) -> None:
    with pytest.raises(ValueError, match=r"'session\.imagined' is not a valid EventKind"):
        store.write_sync(lambda tx: tx.events.add(NOON, "s1", "alice", "session.imagined"))  # type: ignore[arg-type]
    store.write_sync(lambda tx: [tx.events.add(NOON, "s1", "alice", kind) for kind in EventKind])
    assert [event.kind for event in store.read_sync(lambda tx: tx.events.after())] == list(EventKind)
    database = Database(store_url)
    with database.writing.connect() as connection:
        database.begin(connection)
        connection.execute(text("UPDATE events SET kind = 'session.teleported'"))
        connection.commit()
    database.close()
    assert {event.kind for event in store.read_sync(lambda tx: tx.events.after())} == {EventKind.UNKNOWN}
