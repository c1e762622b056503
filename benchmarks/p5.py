"""P5: a sweep of 1,000 points on Slurm over SSH: scheduler's calls, round trips, seconds; beside one sbatch each."""

from __future__ import annotations

import asyncio
import json
import logging
import tempfile
import time
from collections import Counter
from pathlib import Path

from benchmarks.row import Row
from benchmarks.sites import Counted, NoSite, Site, counted, site
from benchmarks.size import WHOLE, Size
from sublet.app import open_service
from sublet.kernel.logs import start_logs
from sublet.kernel.settings import Settings
from sublet.people.model.person import Person
from sublet.reach.port import Command, read_printed
from sublet.service import Service

NAME = "a sweep of 1,000 points on Slurm, over SSH with 20 ms round trips"
POINTS = 1_000
BY_HAND = 40
LIMITER = (30, 2.0)  # what Slurm's own limiter, where a site has it on, lets through at once and in a second
SUBMITS, LOOKS = "REQUEST_SUBMIT_BATCH_JOB", "REQUEST_JOB_USER_INFO"
NOT_OURS = {"REQUEST_COMPLETE_BATCH_SCRIPT", "REQUEST_COMPLETE_PROLOG", "REQUEST_PING", "REQUEST_STATS_INFO"}


def run(size: Size = WHOLE) -> list[Row]:
    """On a site of the testbed, which is started for this."""
    start_logs(level=logging.WARNING)
    try:
        with site("--latency", "20") as there, tempfile.TemporaryDirectory() as home:
            return asyncio.run(measure(there, Path(home), size))
    except NoSite as why:
        return [Row("not measured", str(why))]


async def measure(there: Site, home: Path, size: Size) -> list[Row]:
    """The sweep through a service, then some of its points by hand over the same connection."""
    points, some = size.of(POINTS), size.of(BY_HAND)
    settings = Settings.load(home, platforms={"far": there.settings})
    async with open_service(settings) as service:
        reach = counted(service.platforms.by_name["far"])
        await service.platforms.survey("far")
        there.forget()
        reach.execs, reach.commands = 0, Counter()
        seconds, ran = await sweep(service, points)
        asked, execs, polls = _ours(there.asked()), reach.execs, reach.commands["squeue"]
        there.forget()
        reach.execs = 0
        each = await by_hand(reach, some)
        hand = _ours(there.asked())
    whole = each / some * points
    limited = max(0, points - LIMITER[0]) / LIMITER[1]
    one = asked[SUBMITS] == 1
    return [
        Row(f"{points:,} points: submissions", str(asked[SUBMITS]), "1", one),
        Row("looks at the queue ÷ polls", f"{asked[LOOKS]} ÷ {polls}", "1 call a poll", asked[LOOKS] <= polls),
        Row("calls of the scheduler in all, from the ask to the results", str(asked.total())),
        Row("SSH round trips", str(execs)),
        Row("from the ask to the results", f"{seconds:.1f} s"),
        Row("of which its parts ran; the rest is mostly waiting for the next poll, every 30 s", f"{ran:.1f} s"),
        Row(f"one sbatch each by hand, {some} points: calls, round trips", f"{hand.total()}, {reach.execs}"),
        Row(f"the same, to submit {points:,} (extrapolated)", f"{whole:.0f} s"),
        Row(f"the same under Slurm's limiter ({LIMITER[0]}, then {LIMITER[1]:.0f}/s; computed)", f"≥ {limited:.0f} s"),
        Row("the sweep ÷ submitting by hand, extrapolated", f"{seconds / whole:.2f} ×"),
    ]


def _ours(asked: Counter[str]) -> Counter[str]:
    """Without what nodes tell their scheduler, and what the counting itself asks."""
    return Counter({name: count for name, count in asked.items() if name not in NOT_OURS})


async def sweep(service: Service, points: int) -> tuple[float, float]:
    """Ask, accept, wait for the end, and read the record of every point; how long that took, and it ran."""
    person = Person("someone")
    bag = {"template": ["true", "{x}"], "grid": {"x": list(range(points))}}
    document = json.dumps({"bag": bag, "platform": "far", "queue": "shared", "time": "10m", "memory": "64MiB"})
    began = time.perf_counter()
    found = await service.asking.ask(person, await service.asking.read(document.encode(), "application/json", person))
    assert found.offers, found.reasons
    session = await service.sessions.accept(found.offers[0].id, person)
    while session.end is None:
        await asyncio.sleep(0.1)
        session = await service.sessions.get(session.id, person)
    assert session.end.code == 0, session.end
    _, read_from = await service.output.result(session.id, person, "tasks.jsonl")
    record = b"".join([piece async for piece in read_from(0)])
    assert len({json.loads(line)["task"] for line in record.splitlines()}) == points
    assert session.started
    assert session.ended
    return time.perf_counter() - began, (session.ended - session.started).total_seconds()


async def by_hand(reach: Counted, points: int) -> float:
    """Submit some points one by one, each as a command of its own over the open connection; how long that took."""
    words = ("sbatch", "--parsable", "--partition=shared", "--ntasks=1", "--mem=64", "--time=10", "--output=/dev/null")
    began = time.perf_counter()
    for _ in range(points):
        await reach.run(Command((*words, "--wrap=true"), read_printed))
    return time.perf_counter() - began
