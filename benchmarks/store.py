"""The store by itself: an ask-like write beside a bare SQLite commit. Run it with `python -m benchmarks.store`."""

from __future__ import annotations

import asyncio
import sqlite3
import statistics
import tempfile
import time
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.row import Row, write_table
from benchmarks.size import WHOLE, Size
from sublet.booking.model.events import EventKind
from sublet.booking.model.offer import Node, Offer, Quote, Take
from sublet.booking.model.phases import Phase
from sublet.booking.model.request import GIB, Executable, Request
from sublet.booking.model.session import OfferSet, Session
from sublet.booking.model.shape import Shape
from sublet.store import Store, Tx

NAME = "an offer set with four offers, its hold and its event, durably, without HTTP"

T0 = datetime(2030, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
NODES = 1024
ROUNDS = 5  # bare and Sublet take turns, so that a slow moment of the machine hits both
ASKS = 1000  # in one round

Answer = tuple[OfferSet, list[Session], list[Take]]


def answers(first: int, count: int) -> list[Answer]:
    """What the service would have decided; making it is not the store's work."""
    return [_answer(number) for number in range(first, first + count)]


def _answer(number: int) -> Answer:
    now = datetime.now(UTC)
    expires = now + timedelta(minutes=5)
    node, start = f"n{number % NODES}", T0 + number // NODES * HOUR
    id = str(uuid.uuid4())
    request = Request(Executable("command", "hello", {"argv": ["python", "sim.py"]}))
    offerset = OfferSet(id, "alice", now, expires, "YES", request, '{"run": "python sim.py"}' * 5, "application/json")
    costs = (Quote("urn:ivoa:calycopis:cost:monetary", 1.0, 2.0, "EUR"),)
    offer = Offer("here", "sh", start, start, HOUR, (node,), Shape(4, 16 * GIB), costs=costs, why="earliest")
    sessions = [
        Session(str(uuid.uuid4()), id, "alice", "hello", "command", Phase.OFFERED, offer, now, now, expires)
        for _ in range(4)
    ]
    return offerset, sessions, [Take(node, start, start + HOUR, 4, 16 * GIB)]


def ask(tx: Tx, answer: Answer) -> None:
    """What is written for one request."""
    offerset, sessions, takes = answer
    tx.books.take("here", offerset.id, takes)
    tx.offersets.add(offerset)
    tx.sessions.add_offers(sessions)
    tx.events.add(offerset.created, offerset.id, offerset.person, EventKind.OFFERED, "4 offers")


async def asks_per_second(store: Store, all_of_them: list[Answer], at_once: int) -> float:
    """So many askers, each of whom asks again as soon as it was answered."""
    waiting = iter(all_of_them)

    async def asker() -> None:
        for answer in waiting:
            await store.write(lambda tx, a=answer: ask(tx, a))  # type: ignore[misc]

    began = time.perf_counter()
    await asyncio.gather(*(asker() for _ in range(at_once)))
    return len(all_of_them) / (time.perf_counter() - began)


def commits_per_second(path: Path, count: int) -> float:
    """One insert and one commit at a time, with nothing in between."""
    connection = sqlite3.connect(path, isolation_level=None)
    for words in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", "CREATE TABLE IF NOT EXISTS t (v TEXT)"):
        connection.execute(words)
    began = time.perf_counter()
    for _ in range(count):
        connection.execute("INSERT INTO t VALUES (?)", ("x" * 200,))
    took = time.perf_counter() - began
    connection.close()
    return count / took


def run(size: Size = WHOLE) -> list[Row]:
    """Bare, alone and sixteen at once, in turns."""
    ratios: dict[int, list[float]] = {1: [], 16: []}
    bare: list[float] = []
    asks = size.of(ASKS, least=16)
    with tempfile.TemporaryDirectory() as directory:
        store = Store.open(f"sqlite:///{directory}/sublet.db")
        nodes = [Node(f"n{number}", 64, 256 * GIB) for number in range(NODES)]
        store.write_sync(lambda tx: tx.books.define("here", nodes, {}))
        made = 0
        for _ in range(size.of(ROUNDS)):
            bare.append(commits_per_second(Path(directory, "bare.db"), asks))
            for at_once, found in ratios.items():
                found.append(asyncio.run(asks_per_second(store, answers(made, asks), at_once)) / bare[-1])
                made += asks
        store.close()
    alone, together = (statistics.median(found) for found in ratios.values())
    return [
        Row("bare: one insert, one commit (synchronous=FULL)", f"{statistics.median(bare):.0f}/s"),
        Row("asks ÷ bare, one at a time", f"{alone:.2f}"),
        Row("asks ÷ bare, sixteen at a time", f"{together:.2f}", "≥ 0.5", together >= 0.5),
    ]


if __name__ == "__main__":
    print(f"{NAME}\n{write_table(run())}")
