"""When the database fails, works fail, nothing is half done, and the next work finds it again."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sublet.booking.model.offer import Node
from sublet.kernel.errors import BadSettings, BrokenStore, NotBookable
from sublet.store import Store, Tx
from tests.contract.stored import NODES, booked, define, offer_some, whole
from tests.postgres import Postgres


@contextlib.contextmanager
def files_may_not_grow_beyond(size: int) -> Iterator[None]:
    """A disk that is full, as far as this process can tell."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_commit_that_fails_has_not_happened_in_memory_either(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/sublet.db"
    store = Store.open(url)
    try:
        store.write_sync(define)
        store.write_sync(lambda tx: tx.books.take("here", "before", [whole("n1")]))
        log = Path(f"{tmp_path}/sublet.db-wal").stat().st_size
        with files_may_not_grow_beyond(log), pytest.raises(BrokenStore):
            store.write_sync(lambda tx: tx.books.take("here", "lost", [whole("n0")]))
        store.write_sync(lambda tx: tx.books.take("here", "next", [whole("n0")]))
        with pytest.raises(NotBookable):
            store.write_sync(lambda tx: tx.books.take("here", "twice", [whole("n1")]))
        assert set(booked(url)) == {"before", "next"}
    finally:
        store.close()


def test_strangers_are_not_told_where_a_database_is_that_fails(tmp_path: Path) -> None:
    store = Store.open(f"sqlite:///{tmp_path}/sublet.db", discreet=True)
    try:
        store.write_sync(define)
        log = Path(f"{tmp_path}/sublet.db-wal").stat().st_size
        with files_may_not_grow_beyond(log), pytest.raises(BrokenStore) as told:
            store.write_sync(lambda tx: tx.books.take("here", "lost", [whole("n0")]))
        said = f"{told.value.message} {told.value.advice} {told.value.values}"
        assert str(tmp_path) not in said
        assert (told.value.status, "at the moment" in said) == (503, True)
    finally:
        store.close()


def test_works_that_share_a_commit_fail_together_when_it_fails(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/sublet.db"
    store = Store.open(url)
    busy, go = threading.Event(), threading.Event()
    failed: list[str] = []

    def hold_up(tx: Tx) -> None:
        busy.set()
        go.wait(30)

    def take(key: str, node: str) -> None:
        try:
            store.write_sync(lambda tx: tx.books.take("here", key, [whole(node)]))
        except BrokenStore:
            failed.append(key)

    try:
        store.write_sync(define)
        log = Path(f"{tmp_path}/sublet.db-wal").stat().st_size
        slow = threading.Thread(target=store.write_sync, args=(hold_up,))
        slow.start()
        assert busy.wait(30)
        others = [threading.Thread(target=take, args=(f"k{n}", f"n{n}")) for n in range(4)]
        with files_may_not_grow_beyond(log):
            for thread in others:
                thread.start()
            go.set()
            for thread in (slow, *others):
                thread.join()
        assert sorted(failed) == ["k0", "k1", "k2", "k3"]
        assert booked(url) == {}
        store.write_sync(lambda tx: tx.books.take("here", "all", [whole(f"n{n}") for n in range(4)]))
    finally:
        store.close()


def read_nodes(tx: Tx) -> tuple[Node, ...]:
    return tx.books.calendar("here").nodes


def test_a_server_that_was_restarted_is_found_again(postgres: Postgres) -> None:
    store = Store.open(postgres.create())
    try:
        store.write_sync(define)
        store.write_sync(lambda tx: tx.books.take("here", "a", [whole("n0")]))
        store.read_sync(read_nodes)
        postgres.stop()
        with pytest.raises(BrokenStore):
            store.write_sync(offer_some)
        with pytest.raises(BrokenStore):
            store.read_sync(read_nodes)
        postgres.start()
        store.write_sync(lambda tx: tx.books.take("here", "b", [whole("n1")]))
        with pytest.raises(NotBookable):
            store.write_sync(lambda tx: tx.books.take("here", "c", [whole("n0")]))
        assert store.read_sync(read_nodes) == NODES
    finally:
        store.close()


def test_a_restart_between_two_works_is_not_noticed(postgres: Postgres) -> None:
    store = Store.open(postgres.create())
    try:
        store.write_sync(define)
        postgres.stop()
        postgres.start()
        store.write_sync(lambda tx: tx.books.take("here", "a", [whole("n0")]))
        assert store.read_sync(read_nodes) == NODES
    finally:
        store.close()


def test_a_connection_lost_in_the_middle_of_a_work_undoes_it(postgres: Postgres) -> None:
    url = postgres.create()
    store = Store.open(url)
    database = url.split("/")[3].split("?")[0]

    def lose(tx: Tx) -> None:
        tx.books.take("here", "lost", [whole("n0")])
        offer_some(tx)
        postgres.sql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}'")
        offer_some(tx)

    try:
        store.write_sync(define)
        with pytest.raises(BrokenStore):
            store.write_sync(lose)
        assert store.read_sync(lambda tx: tx.sessions.list().items) == ()
        store.write_sync(lambda tx: tx.books.take("here", "next", [whole("n0")]))
        assert set(booked(url)) == {"next"}
    finally:
        store.close()


def test_a_closed_store_says_so(open_store: Callable[[], Store]) -> None:
    store = open_store()
    store.close()
    with pytest.raises(BrokenStore, match="closed"):
        store.write_sync(define)
    store.close()


@pytest.mark.anyio
async def test_a_store_closes_although_a_read_has_only_just_begun_to_wait(open_store: Callable[[], Store]) -> None:
    store = open_store()
    await store.read(lambda tx: tx.events.newest())
    last = asyncio.ensure_future(store.read(lambda tx: tx.events.newest()))
    await asyncio.sleep(0)  # it waits now, and its reader is called in the next turn
    closing = threading.Thread(target=store.close, daemon=True)
    closing.start()
    closing.join(20)
    assert not closing.is_alive()
    assert await last == 0


@pytest.mark.anyio
async def test_a_closed_store_says_so_to_those_who_await(open_store: Callable[[], Store]) -> None:
    store = open_store()
    store.close()
    with pytest.raises(BrokenStore, match="closed"):
        await store.write(define)
    with pytest.raises(BrokenStore, match="closed"):
        await store.read(lambda tx: tx.events.newest())


def test_what_waits_is_done_before_a_store_closes(store_url: str) -> None:
    store = Store.open(store_url)
    busy, done = threading.Event(), []

    def slow(tx: Tx) -> None:
        busy.set()
        define(tx)

    threads = [threading.Thread(target=store.write_sync, args=(slow,))]
    threads[0].start()
    assert busy.wait(30)
    store.close()
    threads[0].join()
    done = Store.open(store_url)
    assert done.read_sync(read_nodes) == NODES
    done.close()


@pytest.mark.parametrize(
    "url",
    ["", "nonsense", "mysql://host/db", "sqlite://", "sqlite:///:memory:"],
)
def test_an_address_that_is_none_is_explained(url: str) -> None:
    with pytest.raises(BadSettings) as caught:
        Store.open(url)
    assert "sqlite:////" in caught.value.advice


def test_a_database_that_can_not_be_opened_is_explained(tmp_path: Path) -> None:
    with pytest.raises(BrokenStore, match="No such file"):
        Store.open(f"sqlite:///{tmp_path}/missing/sublet.db")
    garbage = tmp_path / "garbage.db"
    garbage.write_bytes(b"not a database at all " * 100)
    with pytest.raises(BrokenStore, match="not a database"):
        Store.open(f"sqlite:///{garbage}")
    with pytest.raises(BrokenStore):
        Store.open(f"postgresql://nobody@/none?host={tmp_path}")


def test_without_the_driver_it_says_what_to_install() -> None:
    program = """
import sys
sys.modules["psycopg"] = None
from sublet.errors import BrokenStore
from sublet.store import Store
try:
    Store.open("postgresql://someone@/some")
except BrokenStore as error:
    print(error.message, error.advice)
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "driver is not installed" in said
    assert 'pip install "sublet[postgres]"' in said


def test_a_password_is_not_shown(tmp_path: Path) -> None:
    with pytest.raises(BrokenStore) as caught:
        Store.open(f"postgresql://nobody:secret@/none?host={tmp_path}")
    assert "secret" not in caught.value.message


def test_the_files_are_their_owners_alone(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        store = Store.open(f"sqlite:///{tmp_path}/sublet.db")
        store.write_sync(define)
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
        store.close()
    finally:
        os.umask(old)
    assert modes["sublet.db"] == 0o600
    assert set(modes.values()) == {0o600}


def test_a_writer_waits_for_another_process_that_writes(tmp_path: Path) -> None:
    store = Store.open(f"sqlite:///{tmp_path}/sublet.db")
    other = sqlite3.connect(f"{tmp_path}/sublet.db", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    thread = threading.Thread(target=store.write_sync, args=(define,))
    thread.start()
    deadline = time.monotonic() + 0.2
    while time.monotonic() < deadline:
        assert thread.is_alive()
        thread.join(0.02)
    other.execute("COMMIT")
    thread.join()
    other.close()
    assert store.read_sync(read_nodes) == NODES
    store.close()
