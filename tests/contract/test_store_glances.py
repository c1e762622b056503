"""A glance sees what was there when it came, in the event loop where nothing is waited for; it fails as a read does."""

from __future__ import annotations

import asyncio
import threading

import pytest
from sqlalchemy import text

from sublet.booking.model.events import EventKind
from sublet.kernel.errors import BrokenStore, NotFound
from sublet.store import Store, Tx
from tests.contract.stored import NOON

pytestmark = pytest.mark.anyio
NONSENSE = text("SELECT nothing FROM nowhere")


def write_one(tx: Tx) -> None:
    tx.events.add(NOON, "s", "ann", EventKind.SUBMITTED)


def newest(tx: Tx) -> int:
    return tx.events.newest()


async def test_whoever_has_written_sees_that_at_once(store: Store) -> None:
    async def write_and_look() -> None:
        for _ in range(20):
            before = await store.glance(newest)
            await store.write(write_one)
            assert await store.glance(newest) > before

    await asyncio.gather(*(write_and_look() for _ in range(5)))


async def test_a_file_is_looked_at_in_the_event_loop_and_a_server_never_is(store: Store) -> None:
    here = threading.current_thread()
    thread = await store.glance(lambda tx: threading.current_thread())
    assert (thread is here) is not store._database.postgres


async def test_what_goes_wrong_comes_back_as_from_a_read_and_the_next_look_is_good(store: Store) -> None:
    def refuse(tx: Tx) -> None:
        raise NotFound(noun="thing", name="x")

    await store.write(write_one)
    for work, kind in (
        (refuse, NotFound),
        (lambda tx: 1 // 0, ZeroDivisionError),
        (lambda tx: tx.events._sql.rows(NONSENSE, {}), BrokenStore),
        (write_one, BrokenStore),  # nothing is written by a look
    ):
        with pytest.raises(kind):
            await store.glance(work)
        assert await store.glance(newest) == 1


async def test_who_looks_from_another_thread_meanwhile_waits_for_nobody(store: Store) -> None:
    busy, go = threading.Event(), threading.Event()

    def slow(tx: Tx) -> str:
        busy.set()
        assert go.wait(60)
        return "slow"

    other = asyncio.create_task(asyncio.to_thread(asyncio.run, store.glance(slow)))
    await asyncio.to_thread(busy.wait, 60)
    assert await store.glance(newest) == 0
    go.set()
    assert await other == "slow"


async def test_a_look_at_a_store_that_was_closed_is_refused(store: Store) -> None:
    assert await store.glance(newest) == 0
    store.close()
    with pytest.raises(BrokenStore):
        await store.glance(newest)
