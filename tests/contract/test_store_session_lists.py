"""Sessions are listed page by page, filtered, and found by the beginning of their ids."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sublet.annexes.model.annex import Lease
from sublet.apps.model.app import App
from sublet.booking.model.phases import Phase
from sublet.kernel.errors import BadRequest
from sublet.store import Page, Store, Tx
from tests.contract.stored import (
    HOUR,
    MINUTE,
    NOON,
    a_session,
    a_set,
    an_offer,
    offer_some,
)
from tests.contract.test_store_annexes import ANNEX, DETAILS
from tests.contract.test_store_apps import FIRST


def test_sessions_are_listed_newest_first_page_by_page(store: Store) -> None:
    made = [store.write_sync(lambda tx, n=n: offer_some(tx, created=NOON + n * MINUTE)) for n in range(4)]
    store.write_sync(lambda tx: offer_some(tx, "bob"))
    expected = sorted((s for some in made for s in some), key=lambda s: (s.created, s.id), reverse=True)
    found: list[object] = []
    after: str | None = None
    while True:
        page: Page = store.read_sync(lambda tx, a=after: tx.sessions.list(person="alice", limit=5, after=a))
        found += page.items
        # What comes meanwhile is newer, and moves no page.
        store.write_sync(lambda tx: offer_some(tx, created=NOON + HOUR))
        after = page.next
        if after is None:
            break
    assert found == expected
    assert store.read_sync(lambda tx: len(tx.sessions.list(limit=1000).items)) == 24


def test_a_list_is_filtered(store: Store) -> None:
    def put(tx: Tx) -> None:
        offerset = tx.offersets.add(a_set())
        plain = a_session(offerset)
        tx.sessions.add_offers(
            [
                replace(plain, id="1", name="100% sure"),
                replace(plain, id="2", name="1000 Fold", phase=Phase.RUNNING),
                replace(plain, id="3", name="_", kind="bag", phase=Phase.COMPLETED),
                replace(plain, id="4", name="x", offer=an_offer(platform="there")),
            ]
        )

    store.write_sync(put)

    def ids(**filters: object) -> set[str]:
        return {s.id for s in store.read_sync(lambda tx: tx.sessions.list(**filters)).items}  # type: ignore[arg-type]

    assert ids(name="1000 Fold") == {"2"}
    assert ids(name="100") == ids(name="1000 fold") == set(), "a name is the whole one"
    assert ids(name="100*") == {"1", "2"}
    assert ids(name="100%*") == {"1"}
    assert ids(name="*FOLD*") == {"2"}
    assert ids(name="_") == ids(name="_*") == {"3"}
    assert ids(name="\0") == ids(name="\ud800") == set()
    assert ids(kind="bag") == {"3"}
    assert ids(platform="there") == {"4"}
    assert ids(active=True) == {"2"}
    assert ids(active=False) == {"3"}
    assert ids(phases=[Phase.OFFERED, Phase.RUNNING]) == {"1", "2", "4"}
    assert ids(phases=[]) == set()
    assert ids(person="bob") == set()


def test_a_list_is_filtered_by_app_annex_and_time(store: Store) -> None:
    second = replace(FIRST, id=FIRST.id[:-1] + "2", number=2)
    lease = Lease("l1", ANNEX.id, 1, DETAILS, NOON, session="4")

    def put(tx: Tx) -> None:
        plain = a_session(tx.offersets.add(a_set()))
        tx.apps.add(App(FIRST.app, "ann@example.org", FIRST.repository, NOON))
        for version in (FIRST, second):
            tx.apps.add_version(version)
        tx.annexes.add(ANNEX)
        tx.leases.add(lease)
        tx.sessions.add_offers(
            [
                replace(plain, id="1", app=FIRST.id, created=NOON),
                replace(plain, id="2", app=second.id, created=NOON + HOUR),
                replace(plain, id="3", offer=an_offer(platform=f"annex-{ANNEX.name}"), created=NOON + 2 * HOUR),
                replace(plain, id="4", kind="pilot", created=NOON + 3 * HOUR),
            ]
        )

    store.write_sync(put)

    def ids(**filters: Any) -> set[str]:
        return {s.id for s in store.read_sync(lambda tx: tx.sessions.list(**filters)).items}

    assert ids(app=FIRST.app) == {"1", "2"}
    assert ids(app=f"{FIRST.app}@2") == {"2"}
    assert ids(app=f"{FIRST.app}@x") == ids(app="other") == set()
    assert ids(annex=ANNEX.name) == {"3", "4"}
    assert ids(annex="other") == set()
    assert ids(since=NOON + HOUR) == {"2", "3", "4"}
    assert ids(until=NOON + HOUR) == {"1"}
    assert ids(since=NOON + HOUR, until=NOON + 2 * HOUR, app=FIRST.app) == {"2"}
    counts = store.read_sync(lambda tx: (tx.sessions.count_by_phase("alice"), tx.sessions.count_by_phase("bob")))
    assert [sum(one.values()) for one in counts] == [4, 0]


@pytest.mark.parametrize("cursor", ["x", "12", "12.", ".a", "-1.a", "1" * 40 + ".a", "\0.\0"])
def test_a_cursor_that_is_none_is_refused(store: Store, cursor: str) -> None:
    with pytest.raises(BadRequest, match="cursor"):
        store.read_sync(lambda tx: tx.sessions.list(after=cursor))


def test_a_session_is_found_by_the_beginning_of_its_id(store: Store) -> None:
    def put(tx: Tx) -> None:
        offerset, other = tx.offersets.add(a_set()), tx.offersets.add(a_set("bob"))
        tx.sessions.add_offers([replace(a_session(offerset), id=i) for i in ("abcd-1", "abce-1", "abcf-1")])
        tx.sessions.add_offers([replace(a_session(other), id="abcd-2")])

    store.write_sync(put)

    def find(prefix: str, person: str | None = None) -> list[str]:
        return [s.id for s in store.read_sync(lambda tx: tx.sessions.find(prefix, person))]

    assert find("abcd") == ["abcd-1", "abcd-2"]
    assert find("ABCD", "alice") == ["abcd-1"]
    assert find("abcd-2") == ["abcd-2"]
    assert find("abc", "alice") == ["abcd-1", "abce-1", "abcf-1"]
    assert find("") == find("%") == find("ab_") == find("\0") == find("abcd-3") == []
