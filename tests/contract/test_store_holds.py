"""What is held for offers that nobody has accepted yet, as the store tells it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy.sql.elements import ClauseElement

from sublet.booking.model.phases import Phase
from sublet.booking.store import holds, sessions
from sublet.store import Store, Tx
from tests.contract.stored import NOON, offer_some


def test_the_oldest_open_sets_of_a_person_on_a_platform_are_found_without_reading_the_others(store: Store) -> None:
    def put(tx: Tx) -> list[str]:
        sets = [offer_some(tx, created=NOON + timedelta(minutes=n))[0].offerset for n in range(6)]
        offer_some(tx, "bob")
        for session in tx.sessions.of_set(sets[1]):
            tx.sessions.move(session.id, Phase.EXPIRED, now=NOON)
        return sets

    sets = store.write_sync(put)

    def find(person: str, platform: str, limit: int) -> list[str]:
        return [hold.offerset for hold in store.read_sync(lambda tx: tx.holds.find_oldest(person, platform, limit))]

    assert find("alice", "here", 3) == [sets[3], sets[2], sets[0]]
    assert find("alice", "here", 100) == [sets[5], sets[4], sets[3], sets[2], sets[0]]
    assert find("alice", "elsewhere", 3) == find("eve", "here", 3) == []


def test_sets_of_one_moment_are_no_more_than_were_asked_for(store: Store) -> None:
    sets = store.write_sync(lambda tx: {offer_some(tx)[0].offerset for _ in range(4)})
    found = store.read_sync(lambda tx: tx.holds.find_oldest("alice", "here", 3))
    assert len(found) == 3
    assert {hold.offerset for hold in found} < sets
    assert all(hold.offers == 3 for hold in found)


def test_whether_there_are_many_on_a_platform_is_told_apart_from_how_many(store: Store) -> None:
    store.write_sync(lambda tx: [offer_some(tx, person) for person in ("alice", "bob", "carol")])
    told = store.read_sync(lambda tx: [tx.holds.are_fewer(name, 3) for name in ("here", "elsewhere")])
    assert told == [False, True]
    assert store.read_sync(lambda tx: tx.holds.are_fewer("here", 4))


@pytest.mark.parametrize(
    ("statement", "index"),
    [
        (sessions.HELD, "sessions_offered (phase=? AND person=?"),
        (holds.OF_PERSON, "sessions_offered (phase=? AND person=?"),
        (holds.OLDEST, "sessions_offered (phase=? AND person=? AND platform=?"),
        (holds.NO_NEWER, "sessions_offered (phase=? AND person=? AND platform=? AND created<?"),
        (sessions.WAITS, "sessions_waiting (platform=?"),
    ],
    ids=["how many are held", "a person's", "their oldest", "all of these", "who waits"],
)
def test_open_offers_of_others_and_what_waits_elsewhere_are_not_gone_through(
    tmp_path: Path, statement: ClauseElement, index: str
) -> None:
    store = Store.open(f"sqlite:///{tmp_path}/sublet.db")
    try:

        def explain(tx: Tx) -> str:
            sql = tx.holds._sql
            words, constants = sql._text(statement)
            names = ("of_person", "on_platform", "most", "last", "at")
            values = constants | {name: 1 for name in names if f":{name}" in words}
            return str(sql._cursor.execute(f"EXPLAIN QUERY PLAN {words}", values).fetchall())

        plan = store.read_sync(explain)
        assert index in plan
        assert "sessions_phase_expires" not in plan
    finally:
        store.close()
