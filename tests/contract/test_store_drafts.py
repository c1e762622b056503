"""Drafts in the store: set until they are submitted, once; a person's own, newest first; forgotten in the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from sublet.apps.model.draft import Draft
from sublet.store.store import Store

pytestmark = pytest.mark.anyio
NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


async def test_a_draft_is_set_until_it_is_submitted_once(open_store: Callable[[], Store]) -> None:
    one, two = open_store(), open_store()
    draft = Draft("d1", "bob", NOON, NOON, {"param": {"a": 0, "b": "", "c": False}})
    await one.write(lambda tx: tx.drafts.add(draft))
    assert await two.read(lambda tx: tx.drafts.get("d1")) == draft
    assert await one.read(lambda tx: tx.drafts.count_open("bob")) == 1
    changed = replace(draft, fields={"hpc": "x"}, changed=NOON + timedelta(hours=1))
    assert await two.write(lambda tx: tx.drafts.set(changed))
    assert await one.write(lambda tx: tx.drafts.submit("d1", "s1", NOON))
    assert not await two.write(lambda tx: tx.drafts.submit("d1", "s2", NOON))
    assert not await two.write(lambda tx: tx.drafts.set(draft))
    await one.write(lambda tx: tx.drafts.reopen("d1", "s2"))  # of another try
    found = await one.read(lambda tx: tx.drafts.get("d1"))
    assert found is not None
    assert (found.session, found.fields) == ("s1", {"hpc": "x"})
    assert await one.read(lambda tx: tx.drafts.count_open("bob")) == 0
    await one.write(lambda tx: tx.drafts.reopen("d1", "s1"))
    assert await one.read(lambda tx: tx.drafts.count_open("bob")) == 1


async def test_drafts_are_listed_newest_first_and_forgotten_when_nobody_touched_them(store: Store) -> None:
    for number in range(3):
        time = NOON + timedelta(days=number)
        await store.write(lambda tx, n=number, t=time: tx.drafts.add(Draft(f"d{n}", "bob", t, t)))
    await store.write(lambda tx: tx.drafts.add(Draft("other", "ann", NOON, NOON)))
    assert [one.id for one in await store.read(lambda tx: tx.drafts.of("bob"))] == ["d2", "d1", "d0"]
    assert await store.write(lambda tx: tx.drafts.forget(NOON + timedelta(days=1))) == 3
    assert [one.id for one in await store.read(lambda tx: tx.drafts.of("bob"))] == ["d2"]
