"""Two hundred people at once never get more than there is, and a crash takes nothing from them."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
from collections.abc import Callable

import pytest

from sublet.booking.model.phases import Phase
from sublet.kernel.errors import NotBookable
from sublet.store import Store
from tests.contract.crowd import Told, crowd, go, note, start
from tests.contract.stored import (
    HOUR,
    NODES,
    NOON,
    PLEDGES,
    booked,
    define,
    define_pledged,
    most_cores,
    offer_some,
    rows,
    whole,
)


def all_is_there(url: str) -> None:
    """By the rows alone: no node and no pledge is over its capacity."""
    has = {node.name: node.cores for node in NODES}
    pledged = PLEDGES["srcnet"].cores or 0
    has |= {"pledge:srcnet": pledged, "pledge:open": sum(has.values()) - pledged}
    most = most_cores(url)
    assert {where: cores for where, cores in has.items() if most.get(where, 0) > cores} == {}


def nothing_is_oversold(url: str, told: Told) -> None:
    """By the rows alone: no node is over its capacity, and what was acknowledged is there, and nothing else."""
    taken = booked(url)
    all_is_there(url)
    assert {key: sorted(str(take[0]) for take in taken[key]) for key in told.accepted} == {
        key: sorted(nodes) for key, nodes in told.accepted.items()
    }
    assert set(taken) == set(told.accepted) | told.held


def test_two_hundred_threads_never_oversell(store: Store, store_url: str) -> None:
    store.write_sync(define_pledged)
    told, lock = Told(), threading.Lock()

    def tell(what: str, key: str, nodes: list[str]) -> None:
        with lock:
            note(told, what, key, nodes)

    crowd(store, range(200), 2, tell)
    nothing_is_oversold(store_url, told)
    assert told.refused  # more was wanted than there is


def test_two_hundred_people_in_four_processes_never_oversell(store: Store, store_url: str) -> None:
    store.write_sync(define_pledged)
    processes = [start(store_url, range(first, first + 50), 4) for first in range(0, 200, 50)]
    go(*processes)
    told = Told()
    for process in processes:
        for line in process.lines():
            note(told, *json.loads(line))
        assert process.wait(120) == 0
    nothing_is_oversold(store_url, told)
    assert told.refused
    # And who was not there sees the same.
    calendar = store.write_sync(lambda tx: tx.books.calendar("here"))
    assert {key for key in told.accepted if calendar.takes(key)} == set(told.accepted)


def test_twenty_event_loops_share_one_store(store: Store, store_url: str) -> None:
    store.write_sync(define)
    keys = itertools.count()
    won: list[str] = []

    async def one() -> None:
        key = f"k{next(keys)}"
        start = NOON + (int(key[1:]) % 5) * HOUR
        try:
            await store.write(lambda tx: tx.books.take("here", key, [whole("n0", start)]))
        except NotBookable:
            await store.read(lambda tx: tx.sessions.next_due())
        else:
            won.append(key)

    async def ten() -> None:
        await asyncio.gather(*(one() for _ in range(10)))

    threads = [threading.Thread(target=asyncio.run, args=(ten(),)) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 5
    assert set(booked(store_url)) == set(won)


@pytest.mark.parametrize("lines", [1, 60])
def test_a_process_killed_in_a_burst_loses_nothing_acknowledged_and_leaves_nothing_half_done(
    store: Store, store_url: str, lines: int
) -> None:
    store.write_sync(define_pledged)
    told = Told()
    process = start(store_url, range(20), 100)
    go(process)
    for line in itertools.islice(process.lines(), lines):
        note(told, *json.loads(line))
    process.kill()
    for line in process.lines():  # what was acknowledged before it died
        if line.endswith("\n"):
            note(told, *json.loads(line))
    taken = booked(store_url)
    assert set(told.accepted) | told.held <= set(taken)
    all_is_there(store_url)
    phases = {str(id): str(phase) for id, phase in rows(store_url, "SELECT id, phase FROM sessions")}
    sets: dict[str, list[str]] = {}
    for id, offerset in rows(store_url, "SELECT id, offerset FROM sessions"):
        sets.setdefault(str(offerset), []).append(str(id))
    for offerset, ids in sets.items():
        accepted = [id for id in ids if phases[id] == Phase.ACCEPTED]
        assert len(ids) == 3
        assert sorted(phases[id] for id in ids) in (["ACCEPTED", "REJECTED", "REJECTED"], ["OFFERED"] * 3)
        assert all(id in taken for id in accepted)
        assert not (accepted and offerset in taken)
    known = set(sets) | set(phases)
    assert all(key in known or key.startswith("grab-") for key in taken)
    # The next process goes on at once.
    assert store.write_sync(lambda tx: offer_some(tx, hold=(whole("n0", NOON + 100 * HOUR),)))


def test_a_cancelled_or_forgotten_caller_does_not_stop_the_writer(store: Store) -> None:
    store.write_sync(define)
    busy, go = threading.Event(), threading.Event()

    def slow(tx: object) -> str:
        busy.set()
        go.wait(30)
        return "done"

    async def leave() -> None:
        tasks = [asyncio.ensure_future(store.write(slow)) for _ in range(3)]
        await asyncio.to_thread(busy.wait, 30)
        tasks[0].cancel()
        tasks[1].cancel()
        with pytest.raises(asyncio.CancelledError):
            await tasks[0]
        tasks[2].cancel()

    asyncio.run(leave())  # the loop is closed while the work is under way
    go.set()
    assert store.write_sync(lambda tx: tx.events.newest()) == 0


def test_works_that_fail_among_others_fail_alone(open_store: Callable[[], Store], store_url: str) -> None:
    store = open_store()
    store.write_sync(define)

    async def many() -> list[object]:
        def work(number: int) -> Callable[..., int]:
            def run(tx) -> int:  # type: ignore[no-untyped-def]
                tx.books.take("here", f"k{number}", [whole("n0", NOON + number * HOUR)])
                offer_some(tx)
                if number % 3 == 0:
                    tx.sessions.delete("no")
                    raise ZeroDivisionError
                return number

            return run

        return await asyncio.gather(*(store.write(work(n)) for n in range(30)), return_exceptions=True)

    results = asyncio.run(many())
    good = [n for n in range(30) if n % 3]
    assert [r for r in results if isinstance(r, int)] == good
    assert all(isinstance(r, ZeroDivisionError) for r in results[::3])
    assert set(booked(store_url)) == {f"k{n}" for n in good}
    assert len(rows(store_url, "SELECT id FROM offersets")) == len(good)
    assert len(store.read_sync(lambda tx: tx.events.after(0))) == len(good)
    calendar = store.write_sync(lambda tx: tx.books.calendar("here"))
    assert calendar.fits([whole("n0", NOON + n * HOUR) for n in range(0, 30, 3)])
