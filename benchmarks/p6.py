"""P6: what Sublet adds to a job on Slurm: from accept until it runs, beside the same job by sbatch over one login."""

from __future__ import annotations

import asyncio
import json
import logging
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

from benchmarks.row import Row
from benchmarks.sites import NoSite, Site, counted, site
from benchmarks.size import WHOLE, Size
from sublet.app import open_service
from sublet.kernel.logs import start_logs
from sublet.kernel.settings import Settings
from sublet.people.model.person import Person
from sublet.reach.port import Command, read_printed
from sublet.service import Service

NAME = "what Sublet adds: accept → job running on Slurm, over SSH with 20 ms round trips"
ROUNDS = 20  # the two take turns, so that a slow moment of the machine hits both, each at so many moments of a second
BESIDE = 1.2
QUEUE = "shared"


def run(size: Size = WHOLE) -> list[Row]:
    """On a site of the testbed, which is started for this."""
    start_logs(level=logging.WARNING)
    try:
        with site("--latency", "20") as there, tempfile.TemporaryDirectory() as home:
            return asyncio.run(measure(there, Path(home), size.of(ROUNDS)))
    except NoSite as why:
        return [Row("not measured", str(why))]


async def measure(there: Site, home: Path, rounds: int) -> list[Row]:
    """Sessions and plain jobs in turn; what is timed is when their program writes a file."""
    hasty = {"calls": 100, "look": "0.5s"}  # neither a pace nor the wait for an end is what is timed
    settings = Settings.load(home, platforms={"far": there.settings | hasty})
    marks = Path(there.facts["home"]) / "service" / "marks"
    there.on("service@login", "mkdir", "-p", "marks")
    ours, plain = [], []
    async with open_service(settings) as service:
        reach = counted(service.platforms.by_name["far"])
        await service.platforms.survey("far")
        for number in range(rounds):
            await quiet(there)
            plain.append(await by_hand(reach, marks, number / rounds))
            await quiet(there)
            before = reach.execs
            ours.append(await session(service, marks, number / rounds))
            trips = reach.execs - before - 1  # without the ask
    by_sbatch, by_sublet = statistics.mean(plain), statistics.mean(ours)
    ratio, added = by_sublet / by_sbatch, by_sublet - by_sbatch
    return [
        Row("sbatch → running, by hand", f"{by_sbatch * 1000:.0f} ms"),
        Row("accept → running", f"{by_sublet * 1000:.0f} ms"),
        Row("both wait half a second for Slurm's scheduler; Sublet adds", f"{added * 1000:.0f} ms"),
        Row("SSH round trips of a session, from accept to its end", str(trips)),
        Row("accept → running ÷ by hand", f"{ratio:.2f} ×", f"≤ {BESIDE} ×", ratio <= BESIDE),
    ]


async def session(service: Service, marks: Path, moment: float) -> float:
    """The seconds from accept until the program of a session runs."""
    person, mark = Person("someone"), f"{uuid4()}"
    wish: dict[str, Any] = {"platform": "far", "queue": QUEUE, "time": "1m", "memory": "64MiB", "cores": 1}
    document = json.dumps(wish | {"script": f'> "$HOME/marks/{mark}"'})
    found = await service.asking.ask(person, await service.asking.read(document.encode(), "application/json", person))
    assert found.offers, found.reasons
    begin = await at(moment)
    accepted = await service.sessions.accept(found.offers[0].id, person)
    seconds = await seen(marks / mark) - begin
    while (await service.sessions.get(accepted.id, person)).end is None:  # noqa: ASYNC110 - the loop carries it on
        await asyncio.sleep(0.05)
    return seconds


async def quiet(there: Site) -> None:
    """Return when no job is there: a node that is still clearing up lets the next one wait."""
    while await asyncio.to_thread(there.on, "ctl", "squeue", "--noheader"):  # noqa: ASYNC110 - it happens elsewhere
        await asyncio.sleep(0.1)


async def at(moment: float) -> float:
    """Return at this moment of a second: Slurm's scheduler comes round once in each, and a job waits for that."""
    await asyncio.sleep((moment - time.time()) % 1)
    return time.perf_counter()


async def by_hand(reach: Any, marks: Path, moment: float) -> float:
    """The seconds from sbatch, as a command over the open connection, until the program of its job runs."""
    mark = f"{uuid4()}"
    words = ("sbatch", "--parsable", f"--partition={QUEUE}", "--ntasks=1", "--mem=64", "--time=2", "--output=/dev/null")
    begin = await at(moment)
    await reach.run(Command((*words, f'--wrap=> "$HOME/marks/{mark}"'), read_printed))
    return await seen(marks / mark) - begin


async def seen(mark: Path) -> float:
    """When a file is there."""
    deadline = time.perf_counter() + 60
    while not mark.exists():  # noqa: ASYNC240 - a job writes it, and the look is what is timed
        assert time.perf_counter() < deadline, f"{mark} was never written"
        await asyncio.sleep(0.002)
    return time.perf_counter()
