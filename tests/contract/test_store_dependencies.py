"""Who waits for whom is kept, and what became of those is known even when they are gone."""

from __future__ import annotations

from sublet.booking.model.phases import Phase
from sublet.booking.model.session import Dependency
from sublet.store import Store


def test_those_that_wait_are_told_once_and_remember_how_it_ended(store: Store) -> None:
    done = Dependency("a", Phase.COMPLETED)
    store.write_sync(lambda tx: tx.dependencies.add("s", [done, Dependency("b")]))
    store.write_sync(lambda tx: tx.dependencies.add("t", [Dependency("b")]))
    assert store.read_sync(lambda tx: tx.dependencies.of("s")) == [done, Dependency("b")]
    told = store.write_sync(lambda tx: tx.dependencies.settle("b", Phase.FAILED, "b is FAILED"))
    assert sorted(told) == ["s", "t"]
    assert store.write_sync(lambda tx: tx.dependencies.settle("b", Phase.COMPLETED, "")) == []
    found = store.read_sync(lambda tx: tx.dependencies.of("s"))
    assert [(one.open, one.failed, one.words) for one in found] == [(False, False, ""), (False, True, "b is FAILED")]
    assert store.read_sync(lambda tx: tx.dependencies.of("nobody")) == []
