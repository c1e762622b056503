"""What every work of a transaction reads is read once, and never as it no longer is."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from sublet.access.model.access import AccessRule
from sublet.booking.model.drain import Drain
from sublet.booking.model.phases import Phase
from sublet.kernel.db.audit import AuditEntry
from sublet.kernel.errors import NotFound
from sublet.people.model.people import Group
from sublet.store import Store, Tx
from tests.contract.stored import NOON, a_session, a_set, define

pytestmark = pytest.mark.anyio
RULE = AccessRule("0123", "allow", "*", "system", "*", NOON)


class Counted:
    """A driver's cursor that counts what it is given."""

    def __init__(self, cursor: Any) -> None:
        self.cursor, self.statements = cursor, 0

    def __getattr__(self, name: str) -> Any:
        self.statements += name in ("execute", "executemany")
        return getattr(self.cursor, name)


def read_all(tx: Tx) -> tuple[object, ...]:
    known = tx.people.find("email", "ann"), tx.people.identities("ann"), tx.groups.of("ann")
    return tx.rules.list("system"), tx.drains.get("here", NOON), tx.clocks.offset("boot"), known


def test_what_is_read_again_in_a_transaction_costs_no_statement(store: Store) -> None:
    def work(tx: Tx) -> tuple[int, bool]:
        before = read_all(tx)
        tx._sql._cursor = counted = Counted(tx._sql._cursor)
        same = read_all(tx) == before
        tx._sql._cursor = counted.cursor
        return counted.statements, same

    assert store.write_sync(work) == (0, True)
    assert store.read_sync(work) == (0, True)


def test_what_a_transaction_changes_it_reads_anew(store: Store) -> None:
    def work(tx: Tx) -> None:
        define(tx)
        read_all(tx)
        tx.rules.add(RULE)
        tx.drains.put(Drain("here", "op", NOON))
        tx.groups.add(Group("crew", NOON))
        tx.groups.join("crew", "ann")
        rules, drain, _, known = read_all(tx)
        assert rules == [RULE]
        assert drain is not None
        assert known[2] == ("crew",)  # type: ignore[index]
        tx.rules.remove(RULE.id)
        tx.drains.remove("here")
        assert read_all(tx)[:2] == ([], None)

    store.write_sync(work)


async def test_what_a_work_changed_and_took_back_is_not_seen_by_those_beside_it(store: Store) -> None:
    began, go = threading.Event(), threading.Event()

    def hold(tx: Tx) -> None:
        began.set()
        go.wait(60)

    def fail(tx: Tx) -> None:
        tx.rules.add(RULE)
        tx.audit.add(AuditEntry(NOON, "ann", "rule.add"))
        assert tx.rules.list("system") == [RULE]
        raise NotFound(noun="thing", name="x")

    first = asyncio.ensure_future(store.write(hold))
    await asyncio.to_thread(began.wait)
    works = [store.write(fail), store.write(lambda tx: tx.rules.list("system"))]  # one commit, once the first is done
    together = asyncio.gather(*works, return_exceptions=True)
    await asyncio.sleep(0)
    go.set()
    await first
    failed, rules = await together
    assert isinstance(failed, NotFound)
    assert rules == []
    assert await store.read(lambda tx: tx.audit.list()) == []


def test_another_transaction_reads_what_the_last_one_changed(store: Store) -> None:
    assert store.write_sync(lambda tx: tx.rules.list("system")) == []
    store.write_sync(lambda tx: tx.rules.add(RULE))
    assert store.write_sync(lambda tx: tx.rules.list("system")) == [RULE]


def test_a_session_that_is_moved_as_it_is_known_is_as_it_is_stored(store: Store) -> None:
    made = a_set()
    session = a_session(made)

    def work(tx: Tx) -> None:
        tx.offersets.add(made)
        tx.sessions.add_offers([session])
        moved = tx.sessions.move(session.id, Phase.ACCEPTED, now=NOON, known=session, start=NOON, until=None, due=NOON)
        assert moved == tx.sessions.get(session.id)
        assert tx.sessions.move(session.id, Phase.ACCEPTED, now=NOON, known=session) is None

    store.write_sync(work)
