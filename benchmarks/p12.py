"""P12: a whole day of an aggregator: 10,000 requests to 50 sites, of which one in five is accepted.

It takes a quarter of an hour on a quiet machine, and runs only when it is named; `--requests` plays less of the day.
The requests come faster than on a day; the clock of the service and of the sites is moved on with each of them, so that
offers expire, sessions end and what nobody took is forgotten as on that day. SIGUSR1 to the process of the service ends
the day early; the table tells how many requests were made.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.brokers import start_brokers
from benchmarks.moved_clock import MovedClock
from benchmarks.p8 import read_peak
from benchmarks.row import Row, write_table
from benchmarks.size import WHOLE, Size
from sublet.app import open_service
from sublet.kernel.logs import start_logs
from sublet.kernel.settings import Settings
from sublet.people.model.person import Person
from sublet.server.server import spare_collector
from sublet.service import Service

NAME = "an aggregator through its day: requests to 50 sites at the pace of 10,000 a day, one in five accepted"
SITES, REQUESTS, AT_ONCE, TAKEN = 50, 10_000, 4, 5
OFFERS = 1  # of each site, to each request
PEOPLE = 40
DAY, HOUR = 86_400.0, 3_600.0
PACE = DAY / REQUESTS  # seconds of the day that pass with each request
SLOWEST = 0.2  # seconds that the slowest site takes for its answer
QUIET_ASKS = 9
FEW = 25  # requests, to see that it works
SAMPLE = 100  # requests after which memory and database are looked at
REQUEST = {"executable": {"kind": "command", "argv": ["true"]}, "schedule": {"requested": {"duration": "PT30M"}}}
MIB = 1 << 20


def run(size: Size = WHOLE) -> list[Row]:
    """A whole day, or a few requests of it."""
    return play_day(size.of(SITES, 3), REQUESTS if size.is_whole else FEW)


def play_day(sites: int, requests: int) -> list[Row]:
    """The service in a process of its own, so that its memory is its own."""
    with tempfile.TemporaryDirectory() as folder:
        clock = Path(folder) / "clock"
        clock.write_bytes(bytes(8))
        with start_brokers(sites, SLOWEST, offers=OFFERS, clock=clock) as urls:
            words = [sys.executable, "-m", "benchmarks.p12", "--requests", str(requests), "--folder", folder]
            done = subprocess.run(words, check=True, input=json.dumps(urls), stdout=subprocess.PIPE, text=True)
    return make_rows(json.loads(done.stdout.splitlines()[-1]), sites)


def make_rows(day: dict[str, float], sites: int) -> list[Row]:
    """What is published of a day."""
    requests, made = f"{day['requests']:,.0f}", day["offers"]
    return [
        Row(f"{requests} requests to {sites} sites, {AT_ONCE} at a time: they took", f"{day['took'] / 60:.1f} min"),
        Row("÷ the pace of a day with so many", f"{day['rate'] * DAY / REQUESTS:.0f} ×"),
        Row("load of the machine (its cores are shared) before, and after", f"{day['before']:.0f}, {day['after']:.0f}"),
        Row(f"the slowest site answers after {SLOWEST:g} s; a single ask before the day", f"{day['quiet']:.2f} s"),
        Row("asks of the day: middle, p99", f"{day['median']:.2f} s, {day['p99']:.2f} s"),
        Row("p99 ÷ a single ask", f"{day['p99'] / day['quiet']:.1f} ×"),
        Row("requests that were not answered with an offer of each site", f"{day['short']:.0f}", "0", not day["short"]),
        Row("processor time of the service for each request", f"{day['cpu'] * 1000:.0f} ms"),
        Row("for each site asked", f"{day['cpu'] * 1000 / sites:.2f} ms"),
        Row("memory after a tenth of the day, at its end, and the most", _megabytes(day, "early", "late", "peak")),
        Row("offers made; accepted; sessions that ran to their end", _counts(made, day["taken"], day["ended"])),
        Row("accepted sessions that ended in another way", f"{day['other']:.0f}", "0", not day["other"]),
        Row("database at its largest, and when the day was over", _megabytes(day, "largest", "at_end")),
        Row("forgotten in the end: requests, offers", _counts(day["forgotten_sets"], day["forgotten_offers"])),
        Row("left: requests with their sessions, offers of theirs", _counts(day["left_sets"], day["left_offers"])),
        Row("still held at sites when all was over", f"{day['open']:.0f}", "0", not day["open"]),
        Row(f"growth of the database by {requests} requests, once all is forgotten", _megabytes(day, "growth")),
        Row("for each that was accepted", f"{day['growth'] * 1024 / max(1, day['taken']):.1f} KiB"),
    ]


def _megabytes(day: dict[str, float], *names: str) -> str:
    return ", ".join(f"{day[name]:.1f} MiB" if day[name] < 10 else f"{day[name]:.0f} MiB" for name in names)


def _counts(*numbers: float) -> str:
    return ", ".join(f"{number:,.0f}" for number in numbers)


@dataclass
class PlayedDay:
    """One day, as it is played."""

    service: Service
    home: Path
    clock: MovedClock
    count: int
    sites: int
    times: list[float] = field(default_factory=list)
    sizes: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)
    offers: int = 0
    short: int = 0  # answers that lack the offers of a site
    taken: list[str] = field(default_factory=list)
    begun: int = 0

    async def play(self) -> dict[str, float]:
        """Ask and accept all day; then let what runs end, and what nobody took be forgotten."""
        quiet = [await self._ask(0) for _ in range(QUIET_ASKS)]
        self.times.clear()
        before, load = self._measure_database(), os.getloadavg()[1]
        began, cpu = time.monotonic(), time.process_time()
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, self.stop_early)
        await asyncio.gather(*(self._work() for _ in range(AT_ONCE)))
        took, cpu = time.monotonic() - began, time.process_time() - cpu
        late, at_end, after = _read_memory(), self._measure_database(), os.getloadavg()[1]
        peak = max(late, *self.memory, read_peak() * 1000 / 1024)
        await self._pass_until_all_ended()
        self._tell_others()
        left = await self._pass_until_forgotten()
        return {
            "requests": self.count,
            "took": took,
            "rate": self.count / took,
            "before": load,
            "after": after,
            "quiet": statistics.median(quiet),
            "median": statistics.median(self.times),
            "p99": statistics.quantiles(self.times, n=100)[98],
            "short": self.short,
            "cpu": cpu / self.count,
            "early": self.memory[len(self.memory) // 10],
            "late": late,
            "peak": peak,
            "offers": self.offers,
            "taken": len(self.taken),
            "largest": max(self.sizes),
            "at_end": at_end,
            "growth": self._measure_database() - before,
            "other": len(self.taken) - left["ended"],
            "forgotten_sets": self.count + QUIET_ASKS - left["left_sets"],
            "forgotten_offers": self.offers - len(self.taken) - left["left_offers"],
            **left,
        }

    def stop_early(self) -> None:
        """Let the day be shorter: what was played until now is told."""
        self.count = self.begun

    async def _ask(self, number: int) -> float:
        began, person = time.monotonic(), Person(f"person{number % PEOPLE}")
        asked = await self.service.asking.read(json.dumps(REQUEST).encode(), "application/json", person)
        answer = await self.service.asking.ask(person, asked)
        took = time.monotonic() - began
        self.times.append(took)
        self.offers += len(answer.offers)
        self.short += len(answer.offers) < OFFERS * self.sites
        if number % TAKEN == 1:
            self.taken.append((await self.service.sessions.accept(answer.offers[0].id, person)).id)
        return took

    async def _work(self) -> None:
        while self.begun < self.count:
            self.begun += 1
            number = self.begun
            self.clock.move(PACE)
            await self._ask(number)
            if number % SAMPLE == 0 or number == self.count:
                self.sizes.append(self._measure_database())
                self.memory.append(_read_memory())
                print(f"{number}: {self.times[-1]:.2f} s, {self.sizes[-1]:.0f} MiB", file=sys.stderr, flush=True)

    async def _pass_until_all_ended(self) -> None:
        """Move the clock on, as fast as all day, until every session has ended, and the sites hold nothing."""
        while self._count("SELECT count(*) FROM sessions WHERE phase NOT IN " + ENDED) or self._count(OPEN):
            self.clock.move(PACE)
            self.service.signals.nudged.set()
            await asyncio.sleep(0.1 * self.sites / SITES)  # about what a request takes

    def _tell_others(self) -> None:
        """Say how sessions ended that did not run to their end: a few of them, with what happened to each."""
        with sqlite3.connect(f"file:{self.home / 'sublet.db'}?mode=ro", uri=True) as connection:
            for id, platform in connection.execute(OTHERS).fetchall():
                told = connection.execute("SELECT time, kind, detail FROM events WHERE session = ? ORDER BY id", (id,))
                events = [f"{time / 1e6:.0f} {kind} {detail}".strip() for time, kind, detail in told]
                print(f"{platform}: {'; '.join(events)}", file=sys.stderr, flush=True)

    async def _pass_until_forgotten(self) -> dict[str, float]:
        """Move the clock to the day after the next, until nothing more is forgotten and the file gets no smaller."""
        self.clock.move(2 * DAY)
        known = -1.0
        while known != (now := self._count("SELECT count(*) FROM sessions") + self._measure_database()):
            known = now
            for _ in range(4):
                self.clock.move(90)
                self.service.signals.nudged.set()
                await asyncio.sleep(0.5)
        accepted = self._count("SELECT count(*) FROM sessions WHERE start IS NOT NULL")
        return {
            "left_sets": self._count("SELECT count(*) FROM offersets"),
            "left_offers": self._count("SELECT count(*) FROM sessions") - accepted,
            "ended": self._count("SELECT count(*) FROM sessions WHERE phase = 'COMPLETED'"),
            "open": self._count(OPEN),
        }

    def _count(self, words: str) -> int:
        with sqlite3.connect(f"file:{self.home / 'sublet.db'}?mode=ro", uri=True) as connection:
            return int(connection.execute(words).fetchone()[0])

    def _measure_database(self) -> float:
        """What is in use of the file; a few MiB of it are kept free for what comes next."""
        free = self._count("PRAGMA freelist_count")
        return (self._count("PRAGMA page_count") - free) * self._count("PRAGMA page_size") / MIB


ENDED = "('COMPLETED', 'FAILED', 'CANCELLED', 'REJECTED', 'EXPIRED')"
OTHERS = "SELECT id, platform FROM sessions WHERE start IS NOT NULL AND phase != 'COMPLETED' ORDER BY created LIMIT 10"
OPEN = "SELECT (SELECT count(*) FROM broker_offers) + (SELECT count(*) FROM broker_asks)"


def _read_memory() -> float:
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


async def measure(folder: Path, urls: list[str], count: int) -> dict[str, float]:
    """Open an aggregator above these sites, and play a day."""
    start_logs(level=logging.ERROR)
    clock, home = MovedClock(folder / "clock"), folder / "home"
    platforms: dict[str, Any] = {f"site{number}": {"kind": "broker", "url": url} for number, url in enumerate(urls)}
    # Times by the moved clock that are about this machine's work are long: minutes of the day pass in a second.
    settings = Settings.load(home, platforms=platforms, answer_within="30m", hold="5m", claim="10m")
    async with open_service(settings, now=clock) as service:
        spare_collector()  # as a server does that has begun
        return await PlayedDay(service, home, clock, count, len(urls)).play()


def main() -> None:
    """Play a day, or a part of it, and print the table; with a folder, be the service of one."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.p12", description=NAME)
    parser.add_argument("--requests", type=int, default=REQUESTS, help="how many, at the same pace; 600 are 86 minutes")
    parser.add_argument("--sites", type=int, default=SITES)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.folder is None:
        print(write_table(play_day(given.sites, given.requests)))
    else:
        print(json.dumps(asyncio.run(measure(given.folder, json.loads(sys.stdin.read()), given.requests))))


if __name__ == "__main__":
    main()
