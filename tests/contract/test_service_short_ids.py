"""A session is named by the beginning of its id, if that tells it from the person's others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sublet.core.session import Phase
from sublet.errors import Ambiguous, IdTooShort
from sublet.service.asking import named
from sublet.service.person import Person
from sublet.store import Store, Tx
from tests.contract.stored import NOON, a_session, a_set

ALICE, OPERATOR = Person("alice"), Person("root", operator=True)


def test_the_shortest_beginning_that_tells_sessions_apart_names_one(store: Store) -> None:
    def put(tx: Tx) -> None:
        mine, other = tx.offersets.add(a_set()), tx.offersets.add(a_set("bob"))
        tx.sessions.add([replace(a_session(mine), id=id) for id in ("3551-1", "3562-1", "3563-1", "abc1-1", "abc2-1")])
        tx.sessions.add([replace(a_session(other), id="3559-2")])
        tx.sessions.move("abc2-1", Phase.EXPIRED, now=NOON)

    store.write_sync(put)

    def find(name: str, person: Person = ALICE) -> str | None:
        session = store.read_sync(lambda tx: named(tx, name, person))
        return session.id if session else None

    assert find("355") == "3551-1"
    assert find("abc") == "abc1-1"  # an offer that has expired stands in nobody's way
    assert find("abc2") == "abc2-1"  # and is found where nothing else is meant
    assert find("999") is None
    with pytest.raises(Ambiguous) as caught:
        find("356")
    assert "3562-1" in caught.value.message
    assert "3563-1" in caught.value.message
    assert "OFFERED" in caught.value.message
    with pytest.raises(Ambiguous, match="3559-2"):
        find("355", OPERATOR)
    with pytest.raises(IdTooShort):
        find("35")
