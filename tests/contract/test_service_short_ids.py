"""A session is named by the beginning of its id, if that tells it from the person's others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sublet.booking.asking import find_named
from sublet.booking.model.phases import Phase
from sublet.kernel.errors import Ambiguous, IdTooShort
from sublet.people.model.person import Person
from sublet.store import Store, Tx
from tests.contract.stored import NOON, a_session, a_set

ALICE, OPERATOR = Person("alice"), Person("root", operator=True)


def test_the_shortest_beginning_that_tells_sessions_apart_names_one(store: Store) -> None:
    def put(tx: Tx) -> None:
        mine, other = tx.offersets.add(a_set()), tx.offersets.add(a_set("bob"))
        tx.sessions.add_offers(
            [replace(a_session(mine), id=id) for id in ("3551-1", "3562-1", "3563-1", "abc1-1", "abc2-1")]
        )
        tx.sessions.add_offers([replace(a_session(other), id="3559-2")])
        tx.sessions.move("abc2-1", Phase.EXPIRED, now=NOON)

    store.write_sync(put)

    def find(name: str, person: Person = ALICE) -> str | None:
        session = store.read_sync(lambda tx: find_named(tx, name, person))
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


def test_a_session_is_named_by_its_name_too_if_no_other_has_it(store: Store) -> None:
    def put(tx: Tx) -> None:
        mine, other = tx.offersets.add(a_set()), tx.offersets.add(a_set("bob"))
        named_so = {
            "1000-1": "cubes",
            "2000-1": "cafe",
            "cafe-1": "x",
            "3000-1": "fit",
            "4000-1": "fit",
            "5000-1": "ab",
            "8000-1": "runs/a1",
        }
        tx.sessions.add_offers([replace(a_session(mine), id=id, name=name) for id, name in named_so.items()])
        tx.sessions.add_offers([replace(a_session(other), id="6000-2", name="cubes")])
        for id in (*named_so, "6000-2"):
            tx.sessions.move(id, Phase.ACCEPTED, now=NOON)
        tx.sessions.add_offers([replace(a_session(mine), id="7000-1", name="cubes")])  # an offer that nobody took yet

    store.write_sync(put)

    def find(name: str, person: Person = ALICE) -> str | None:
        session = store.read_sync(lambda tx: find_named(tx, name, person))
        return session.id if session else None

    assert (find("runs/a1"), find("runs%2Fa1")) == ("8000-1", "8000-1"), "as clients send a slash"
    assert (find("cubes"), find("ab")) == ("1000-1", "5000-1")
    assert find("cafe") == "cafe-1", "an id goes before a name"
    assert find("Cubes") is None
    assert find("cubes", Person("bob")) == "6000-2"
    assert find("cubes", OPERATOR) is None, "others' sessions are named by their ids"
    with pytest.raises(Ambiguous, match="fit could mean several sessions") as caught:
        find("fit")
    assert caught.value.advice == "Name one by its id; the newest is the first."
