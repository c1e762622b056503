"""P8: one service with 100,000 sessions on record, 10,000 of them active: memory, and what a turn of the loop costs."""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

from benchmarks.row import Row
from benchmarks.size import WHOLE, Size
from sublet.app import build_loop, open_service

NAME = "many sessions: memory of the service, and the time of a turn when nothing has changed"
FEW = 1_000
MANY = 100_000


def run(size: Size = WHOLE) -> list[Row]:
    """Each size in a process of its own, so that its memory is its own."""
    some, most = size.of(FEW), size.of(MANY)
    few, many = (json.loads(_measure(count)) for count in (some, most))
    ratio = many["turn"] / few["turn"]
    return [
        Row(
            f"RSS with {most:,} sessions, {most // 10:,} active",
            f"{many['rss']:.0f} MB",
            "< 300 MB",
            many["rss"] < 300,
        ),
        Row(f"a turn with {some:,} sessions", f"{few['turn'] * 1e3:.2f} ms"),
        Row(f"a turn with {most:,} sessions", f"{many['turn'] * 1e3:.2f} ms"),
        Row(f"÷ a turn with {some:,}", f"{ratio:.1f} ×", "≤ 2 × (costs what changed)", ratio <= 2),
    ]


def _measure(count: int) -> str:
    words = [sys.executable, "-m", "benchmarks.p8", str(count)]
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1]


def read_peak() -> float:
    """The most memory that this process had, in MB; what `getrusage` says counts whoever started it, too."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


async def measure(count: int) -> dict[str, float]:
    """Fill a store, open the service on it, and time the turns of its loop."""
    from sublet.kernel.settings import Settings
    from sublet.people.model.person import Person

    with tempfile.TemporaryDirectory() as home:
        node = {"cores": 64, "memory": "256GiB", "nodes": 400, "takes": "10h"}
        settings = Settings.load(Path(home), platforms={"trial": {"kind": "memory", **node}})
        async with open_service(settings, loop=False) as service:
            person = Person("someone")
            asked = await service.asking.read(b'{"run": ["true"], "time": "8h"}', "application/json", person)
            found = await service.asking.ask(person, asked)
            await fill(service, found.offers[0], count)
            loop = build_loop(service)
            await loop.turn()  # the first sweeps all that runs
            times = []
            for _ in range(50):
                began = time.perf_counter()
                await loop.turn()
                times.append(time.perf_counter() - began)
            await loop.stop()
            rss = read_peak()
            return {"turn": statistics.median(times), "rss": rss}


async def fill(service: object, pattern: object, count: int) -> None:
    """Sessions of every age: nine of ten are over, the tenth runs."""
    from sublet.booking.model.job import Job, Program
    from sublet.booking.model.offer import Take
    from sublet.booking.model.phases import Phase
    from sublet.booking.model.session import End, EndKind, Session
    from sublet.booking.model.shape import Amounts, Shape
    from sublet.service import Service

    assert isinstance(service, Service)
    assert isinstance(pattern, Session)
    now = service.now()
    until = now + timedelta(hours=8)
    platform = service.platforms.by_name["trial"]
    names = [node.name for node in (await service.platforms.survey("trial")).nodes]
    for first in range(0, count, 1000):
        some = []
        for number in range(first, min(count, first + 1000)):
            new = replace(pattern, id=str(uuid4()), created=now - timedelta(seconds=number), start=now, until=until)
            if number % 10:
                new = replace(new, phase=Phase.COMPLETED, ended=now, end=End(EndKind.EXITED, 0))
            else:
                job = Job(
                    Program(("true",)),
                    Amounts(Shape(1, 2**30)),
                    (names[number % len(names)],),
                    until,
                    timedelta(minutes=5),
                )
                new = replace(new, phase=Phase.RUNNING, job=await platform.submit(job, new.id), started=now)
            some.append(new)

        def add(tx: object, some: list[Session] = some, first: int = first) -> None:
            running = [session for session in some if session.phase is Phase.RUNNING]
            tx.sessions.add_offers(replace(session, expires=until) for session in some)  # type: ignore[attr-defined]
            for session in some:
                if session.end:
                    tx.sessions.change(session.id, now=now, due=None)  # type: ignore[attr-defined]
            for number, session in enumerate(running):
                take = Take(names[(first + number) % len(names)], now, until, cores=1, memory=2**30)
                tx.books.take("trial", session.id, [take])  # type: ignore[attr-defined]

        await service.store.write(add)


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure(int(sys.argv[1])))))
