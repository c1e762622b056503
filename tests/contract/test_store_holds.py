"""What is held for offers that nobody has accepted yet, as the store tells it."""

from __future__ import annotations

from datetime import timedelta

from sublet.core.session import Phase
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
