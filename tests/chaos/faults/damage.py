"""A database that is damaged or gone: a service refuses to start on it, and says why."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random

from tests.chaos.world import World

TABLES = ("sessions", "events", "offersets", "bookings")
ROOT = "SELECT rootpage FROM sqlite_master WHERE name = ?"
NOISE = b"\xa5"
SOON = 40.0  # seconds until it must have refused


def try_damaged(world: World, seed: int) -> Iterator[str]:
    """What is wrong: its service is stopped, and is started on a damaged page, on no database, and on the whole one."""
    file = world.home / "sublet.db"
    table = Random(seed).choice(TABLES)
    with _damaged(file, table):
        yield from _refuses(world, f"a damaged page of {table}", lambda log: "damaged" in log)
    with _gone(file):
        yield from _refuses(world, "a database that is gone", lambda log: "gone" in log or "is missing" in log)
    service = world.services[0]
    service.launch()
    if not service.wait_ready():
        yield f"it did not start on the database that was put back: {service.last_words()}"
    service.stop()


def _refuses(world: World, what: str, is_told: Callable[[str], bool]) -> Iterator[str]:
    service = world.services[0]
    before = service.log.stat().st_size
    service.launch()
    is_up = service.wait_ready(SOON)
    said = service.log.read_bytes()[before:].decode(errors="replace")
    if is_up:
        yield f"it started on {what} as if nothing were wrong"
    elif not is_told(said):
        yield f"it did not start on {what}, and does not say why: {said[-300:]}"
    if "Traceback" in said:
        yield f"a traceback tells of {what}: {said[-300:]}"
    service.kill()


@contextmanager
def _damaged(file: Path, table: str) -> Iterator[None]:
    with closing(sqlite3.connect(file)) as store:
        store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        ((page,),) = store.execute(ROOT, (table,)).fetchall()
        ((size,),) = store.execute("PRAGMA page_size").fetchall()
    whole = file.read_bytes()
    with file.open("r+b") as opened:
        opened.seek((page - 1) * size)
        opened.write(NOISE * size)
    try:
        yield
    finally:
        _put_back(file, whole)


@contextmanager
def _gone(file: Path) -> Iterator[None]:
    whole = file.read_bytes()
    file.unlink()
    try:
        yield
    finally:
        _put_back(file, whole)


def _put_back(file: Path, whole: bytes) -> None:
    for name in (f"{file}-wal", f"{file}-shm"):
        Path(name).unlink(missing_ok=True)
    file.write_bytes(whole)
