"""P7: an aggregator above many brokers: the time of an ask beside the slowest of them, a dead one, and a busy day."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.brokers import start_brokers
from benchmarks.p8 import read_peak
from benchmarks.row import Row
from benchmarks.size import WHOLE, Size
from sublet.app import open_service
from sublet.booking.model.session import OfferSet
from sublet.kernel.logs import start_logs
from sublet.kernel.settings import Settings
from sublet.people.model.person import Person
from sublet.service import Service

NAME = "an aggregator: 100 brokers asked at once beside the slowest of them; 50 sites and 10,000 requests a day"
BROKERS, SITES = 100, 50
SLOWEST = 1.0  # seconds that the slowest broker takes for its answer
QUICK = 0.2  # the same, on the busy day
PLENTY = 20.0  # seconds that each has on the busy day, so that a busy machine loses no answer
LIMIT = 2.0  # seconds that each has
ROUNDS = 9
REQUESTS, AT_ONCE = 120, 2  # of the busy day so many are made, so many at a time; one in five is accepted
TAKEN = 5
A_DAY = 10_000
GOAL, DEAD_GOAL = 1.3, 1.3
REQUEST = {"executable": {"kind": "command", "argv": ["true"]}, "schedule": {"requested": {"duration": "PT1H"}}}


def run(size: Size = WHOLE) -> list[Row]:
    """Each in a process of its own, so that its memory is its own."""
    many, sites, rounds = size.of(BROKERS, 5), size.of(SITES, 3), size.of(ROUNDS, 2)
    whole = _measure("asks", many, rounds, 0)
    dead = _measure("asks", many, rounds, 1)
    day = _measure("day", sites, size.of(REQUESTS, 10), 0)
    slow, late = whole["median"] / SLOWEST, dead["median"] / LIMIT
    return [
        Row(f"{many} brokers, the slowest after {SLOWEST:g} s: an ask", f"{whole['median']:.2f} s"),
        Row("÷ the slowest", f"{slow:.2f} ×", f"≤ {GOAL} ×", slow <= GOAL),
        Row("the same, one of them never answers: an ask", f"{dead['median']:.2f} s"),
        Row(f"÷ its time limit, {LIMIT:g} s", f"{late:.2f} ×", f"≤ {DEAD_GOAL} ×", late <= DEAD_GOAL),
        Row("offers of the others", f"{dead['offers']:.0f} of {2 * (many - 1)}"),
        Row(
            f"{sites} sites, {day['requests']:.0f} requests, {AT_ONCE} at a time: p99 of an ask", f"{day['p99']:.2f} s"
        ),
        Row("requests an hour at that rate", f"{day['rate'] * 3600:,.0f}"),
        Row(f"÷ what {A_DAY:,} a day come to", f"{day['rate'] * 86400 / A_DAY:.0f} ×"),
        Row("memory of the aggregator at the end", f"{day['rss']:.0f} MB"),
        Row("database for each request, while its offers are remembered", f"{day['bytes'] / 1024:.0f} KiB"),
        Row("database for each that was accepted, once the others are forgotten", f"{day['kept'] / 1024:.0f} KiB"),
        Row(f"growth a day with {A_DAY:,} requests, one in {TAKEN} accepted", f"{_grow(day):.0f} MB"),
    ]


def _grow(day: dict[str, float]) -> float:
    """What stays of a day's requests, in MB."""
    return day["kept"] * A_DAY / TAKEN / 1e6


def _measure(what: str, brokers: int, count: int, silent: int) -> dict[str, float]:
    with start_brokers(brokers, SLOWEST if what == "asks" else QUICK, silent) as urls:
        words = [sys.executable, "-m", "benchmarks.p7", what, str(count)]
        done = subprocess.run(words, check=True, input=json.dumps(urls), stdout=subprocess.PIPE, text=True)
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


async def measure(what: str, urls: list[str], count: int) -> dict[str, float]:
    """Open an aggregator above these brokers, and ask."""
    start_logs(level=logging.ERROR)
    with tempfile.TemporaryDirectory() as home:
        platforms = {f"site{number}": {"kind": "broker", "url": url} for number, url in enumerate(urls)}
        settings = Settings.load(
            Path(home), platforms=platforms, answer_within=f"{LIMIT if what == 'asks' else PLENTY}s", hold="5m"
        )
        async with open_service(settings) as service:
            if what == "asks":
                return await _time_asks(service, count)
            return await _live_a_day(service, Path(home), count)


async def _time_asks(service: Service, count: int) -> dict[str, float]:
    await _ask(service)  # connections are opened, statements compiled
    times, offers = [], 0
    for _ in range(count):
        took, answer = await _ask(service)
        times.append(took)
        offers = len(answer.offers)
    return {"median": statistics.median(times), "offers": offers}


async def _ask(service: Service) -> tuple[float, OfferSet]:
    began, me = time.monotonic(), Person("someone")
    asked = await service.asking.read(json.dumps(REQUEST).encode(), "application/json", me)
    answer = await service.asking.ask(me, asked)
    return time.monotonic() - began, answer


async def _live_a_day(service: Service, home: Path, count: int) -> dict[str, float]:
    """Ask and accept as people do on a day, as fast as it goes; then forget what nobody took."""
    me, times, left = Person("someone"), [], list(range(count))
    await _ask(service)
    before, began = _size(home), time.monotonic()

    async def work() -> None:
        while left:
            number = left.pop()
            took, answer = await _ask(service)
            times.append(took)
            if number % TAKEN == 0:
                await service.sessions.accept(answer.offers[0].id, me)

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    took = time.monotonic() - began
    grown = _size(home) - before
    rss = read_peak()
    kept = await _measure_kept(service, count)
    return {
        "p99": statistics.quantiles(times, n=100)[98],
        "rate": count / took,
        "rss": rss,
        "bytes": grown / count,
        "kept": kept,
        "requests": count,
    }


async def _measure_kept(service: Service, count: int) -> float:
    """The bytes in rows of the requests that were accepted, of which the offer set and what was taken stay."""
    database = service.settings.database_url.removeprefix("sqlite:///")
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        sets = "SELECT offerset FROM sessions WHERE start IS NOT NULL"
        (accepted,) = connection.execute(f"SELECT count(DISTINCT offerset) FROM ({sets})").fetchone()
        (of_sessions,) = connection.execute(
            "SELECT sum(length(offer) + 400) FROM sessions WHERE start IS NOT NULL"
        ).fetchone()
        (of_sets,) = connection.execute(
            "SELECT sum(length(request) + length(document) + length(reasons) + 200) FROM offersets "
            f"WHERE id IN ({sets})"
        ).fetchone()
    average: float = (of_sessions + of_sets) / max(1, accepted)
    return average


def _size(home: Path) -> int:
    return sum(os.stat(file).st_size for file in home.glob("sublet.db*"))


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure(sys.argv[1], json.loads(sys.stdin.read()), int(sys.argv[2])))))
