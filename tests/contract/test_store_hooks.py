"""Hooks and deliveries in the store: each event is noted for each hook once, and tried by one process at a time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from sublet.notices.model.hooks import WAITS, Hook
from sublet.notices.webhooks import spread
from sublet.store.store import Store

pytestmark = pytest.mark.anyio
NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


def hook(id: str, person: str = "ann", session: str = "", *events: str) -> Hook:
    return Hook(id, person, session, "https://example.org/", "sealed", events, NOON, NOON + timedelta(days=30))


async def happened(store: Store, session: str, kind: str, person: str = "ann") -> None:
    await store.write(lambda tx: tx.events.add(NOON, session, person, kind))


async def test_a_hook_hears_of_its_own_and_each_event_is_noted_once(open_store: Callable[[], Store]) -> None:
    one, two = open_store(), open_store()
    for new in (hook("all"), hook("s1", "ann", "s1", "ended"), hook("bob", "bob")):
        await one.write(lambda tx, new=new: tx.hooks.add(new))
    for session, kind in (("s1", "session.running"), ("s2", "session.failed"), ("s1", "session.completed")):
        await happened(one, session, kind)
    await happened(one, "s1", "session.submitted")
    seen = {found.id: found for found in await one.read(lambda tx: tx.hooks.news(NOON))}
    assert set(seen) == {"all", "s1"}
    for store, expected in ((one, True), (two, False)):  # the second looked at the same time, and comes late
        for found in seen.values():
            assert await store.write(lambda tx, found=found: spread(tx, found, NOON)) is expected
    assert not await two.read(lambda tx: tx.hooks.news(NOON))
    first = await one.write(lambda tx: tx.hooks.claim(NOON, 2))
    second = await two.write(lambda tx: tx.hooks.claim(NOON, 10))
    told = sorted((each.hook, each.event) for each in (*first, *second))
    assert told == [("all", 1), ("all", 2), ("all", 3), ("s1", 3)]
    assert not await one.write(lambda tx: tx.hooks.claim(NOON, 10))


async def test_what_was_claimed_and_never_answered_for_is_due_again(store: Store) -> None:
    await store.write(lambda tx: tx.hooks.add(hook("h")))
    await happened(store, "s1", "session.failed")
    [found] = await store.read(lambda tx: tx.hooks.news(NOON))
    await store.write(lambda tx: spread(tx, found, NOON))
    [taken] = await store.write(lambda tx: tx.hooks.claim(NOON, 10))
    assert (taken.tries, taken.key) == (1, "h.1")
    assert await store.read(lambda tx: tx.hooks.next_due()) == NOON + WAITS[0]
    [again] = await store.write(lambda tx: tx.hooks.claim(NOON + WAITS[0], 10))
    assert (again.tries, again.key) == (2, "h.1")
    await store.write(lambda tx: tx.hooks.record_answer(again, "503", over=False))
    assert [told.answer for told in await store.read(lambda tx: tx.hooks.last("h"))] == ["503"]
    await store.write(lambda tx: tx.hooks.give_up("h", "it was too much"))
    assert await store.read(lambda tx: tx.hooks.next_due()) is None
    await happened(store, "s1", "session.failed")
    assert not await store.read(lambda tx: tx.hooks.news(NOON))
    await store.write(lambda tx: tx.hooks.revive("h", tx.events.newest()))
    await happened(store, "s1", "session.failed")
    [back] = await store.read(lambda tx: tx.hooks.news(NOON))
    assert (back.trouble, back.after) == ("", 2)
    assert not await store.read(lambda tx: tx.hooks.news(NOON + timedelta(days=31)))
    await store.write(lambda tx: tx.hooks.forget(NOON + timedelta(days=31)))
    assert await store.read(lambda tx: tx.hooks.get("h")) is None
