"""Who reads while others do shares their look at the database, sees what was there when it came, and fails alone."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from itertools import pairwise

import pytest
from sqlalchemy import event, text

from sublet.booking.model.events import EventKind
from sublet.kernel.db.engine import READERS
from sublet.kernel.errors import BadRequest, BrokenStore, NotFound
from sublet.store import Store, Tx
from sublet.store.readers import MOST
from sublet.store.writer import A_TURN
from tests.contract.stored import NOON
from tests.postgres import Postgres

pytestmark = pytest.mark.anyio
NONSENSE = text("SELECT nothing FROM nowhere")


def write_one(tx: Tx) -> None:
    tx.events.add(NOON, "s", "ann", EventKind.SUBMITTED)


async def test_a_hundred_who_read_at_once_share_a_few_looks(store: Store) -> None:
    looks = [0]

    def count(_: object) -> None:
        looks[0] += 1

    event.listen(store._database.reading, "begin", count)
    found = await asyncio.gather(*(store.read(lambda tx: tx.events.newest()) for _ in range(100)))
    assert found == [0] * 100
    assert looks[0] <= 100 / MOST + READERS


async def test_all_who_come_in_one_turn_of_the_event_loop_are_read_for_together(store: Store) -> None:
    looks: list[object] = []
    event.listen(store._database.reading, "begin", looks.append)

    async def come() -> int:
        time.sleep(0.002)  # noqa: ASYNC251 (whoever is busy meanwhile lets the readers' threads run)
        return await store.read(lambda tx: tx.events.newest())

    assert await asyncio.gather(*(come() for _ in range(2 * MOST))) == [0] * 2 * MOST
    assert len(looks) == 2


def test_a_loop_that_was_closed_before_its_next_turn_does_not_stop_the_readers(store: Store) -> None:
    loop = asyncio.new_event_loop()
    task = loop.create_task(store.read(lambda tx: tx.events.newest()))
    loop.call_soon(loop.stop)
    loop.run_forever()
    task.cancel()
    loop.close()
    assert asyncio.run(asyncio.wait_for(store.read(lambda tx: tx.events.newest()), 30)) == 0


async def test_whoever_has_written_reads_that_at_once_however_many_read(store: Store) -> None:
    async def write_and_read(times: int) -> None:
        for _ in range(times):
            before = await store.read(lambda tx: tx.events.newest())
            await store.write(write_one)
            assert await store.read(lambda tx: tx.events.newest()) > before

    await asyncio.gather(*(write_and_read(20) for _ in range(20)))


async def test_a_read_that_fails_fails_alone(store: Store) -> None:
    await store.write(write_one)

    def fail(number: int) -> Callable[[Tx], int]:
        def read(tx: Tx) -> int:
            if number % 5 == 1:
                raise NotFound(noun="thing", name="x")
            if number % 5 == 2:
                raise ZeroDivisionError
            if number % 5 == 3:
                tx.events._sql.rows(NONSENSE, {})
            if number % 5 == 4:
                write_one(tx)
            return tx.events.newest()

        return read

    results = await asyncio.gather(*(store.read(fail(number)) for number in range(50)), return_exceptions=True)
    newest = store.read_sync(lambda tx: tx.events.newest())
    kinds = (int, NotFound, ZeroDivisionError, BrokenStore, BrokenStore)  # the last wanted to write
    assert [type(one) for one in results] == list(kinds) * 10
    assert set(results[::5]) == {newest}
    assert isinstance(results[3], BrokenStore)
    assert results[3].__cause__ is not None


async def test_who_reads_slowly_holds_up_a_few_at_most(store: Store) -> None:
    busy, go = threading.Event(), threading.Event()

    def slow(tx: Tx) -> str:
        busy.set()
        go.wait(30)
        return "slow"

    waiting = asyncio.create_task(store.read(slow))
    await asyncio.to_thread(busy.wait, 30)
    async with asyncio.timeout(20):
        await asyncio.gather(*(store.read(lambda tx: tx.events.newest()) for _ in range(50)))
    assert not waiting.done()
    go.set()
    assert await waiting == "slow"


async def test_a_reader_who_went_away_is_not_read_for(store: Store) -> None:
    busy, go, read = threading.Event(), threading.Event(), []

    def slow(tx: Tx) -> None:
        busy.set()
        go.wait(30)

    slow_ones = [asyncio.create_task(store.read(slow)) for _ in range(READERS * MOST)]
    await asyncio.to_thread(busy.wait, 30)
    gone = asyncio.create_task(store.read(lambda tx: read.append("gone")))
    await asyncio.sleep(0)
    gone.cancel()
    go.set()
    await asyncio.gather(*slow_ones)
    await store.read(lambda tx: read.append("there"))
    assert read == ["there"]


def test_a_loop_that_was_closed_does_not_stop_the_readers(store: Store) -> None:
    busy, go = threading.Event(), threading.Event()

    def slow(tx: Tx) -> None:
        busy.set()
        go.wait(30)

    async def leave() -> None:
        task = asyncio.ensure_future(store.read(slow))
        await asyncio.to_thread(busy.wait, 30)
        task.cancel()

    asyncio.run(leave())
    go.set()
    for _ in range(READERS + 1):
        assert asyncio.run(store.read(lambda tx: tx.events.newest())) == 0


async def test_who_waits_when_a_store_closes_is_read_for(open_store: Callable[[], Store]) -> None:
    store = open_store()
    reading = [asyncio.create_task(store.read(lambda tx: tx.events.newest())) for _ in range(50)]
    await asyncio.sleep(0)
    await asyncio.to_thread(store.close)
    assert await asyncio.gather(*reading) == [0] * 50


async def test_readers_do_not_notice_a_restart_between_two_reads(postgres: Postgres) -> None:
    store = Store.open(postgres.create())
    try:
        await asyncio.gather(*(store.read(lambda tx: tx.events.newest()) for _ in range(50)))
        postgres.stop()
        for answer in await asyncio.gather(
            *(store.read(lambda tx: tx.events.newest()) for _ in range(20)), return_exceptions=True
        ):
            assert isinstance(answer, BrokenStore)
        postgres.start()
        assert await asyncio.gather(*(store.read(lambda tx: tx.events.newest()) for _ in range(50))) == [0] * 50
    finally:
        store.close()


async def test_what_can_not_be_asked_for_is_told_as_that(store: Store) -> None:
    with pytest.raises(BadRequest):
        await store.read(lambda tx: tx.events.after(2**70))
    assert await store.read(lambda tx: tx.events.after()) == []


async def test_a_monitor_hears_of_a_good_database_while_every_thread_that_reads_is_busy(store: Store) -> None:
    busy, free = threading.Semaphore(0), threading.Event()

    def hold(tx: Tx) -> None:
        tx.events.newest()
        busy.release()
        free.wait(60)

    reads = [asyncio.ensure_future(store.read(hold)) for _ in range(READERS * MOST)]
    checker = store._checker.submit(free.wait, 60)
    try:
        for _ in range(READERS):
            await asyncio.to_thread(busy.acquire)
        await store.write(write_one)
        await asyncio.wait_for(store.check(), 30)
    finally:
        free.set()
        checker.result()
    await asyncio.gather(*reads)


async def test_a_closed_store_is_not_good_because_it_was_just_now(store: Store) -> None:
    await store.write(write_one)
    store.close()
    with pytest.raises(BrokenStore, match="closed"):
        await store.check()


async def test_the_outcomes_of_a_commit_are_handed_out_over_several_turns_of_the_event_loop(store: Store) -> None:
    began, go = threading.Event(), threading.Event()

    def hold(tx: Tx) -> None:
        began.set()
        go.wait(60)

    first = asyncio.ensure_future(store.write(hold))
    await asyncio.to_thread(began.wait)
    writes = [asyncio.ensure_future(store.write(write_one)) for _ in range(3 * A_TURN)]
    await asyncio.sleep(0)  # they wait for the writer, and are one commit
    go.set()
    counts = [0]
    while counts[-1] < len(writes):
        await asyncio.sleep(0)
        counts.append(sum(write.done() for write in writes))
    await first
    assert max(after - before for before, after in pairwise(counts)) == A_TURN
