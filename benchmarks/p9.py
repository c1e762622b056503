"""P9: data on its way to a cluster: a large file, many small ones, beside rsync, rclone and scp; the cache; memory."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from uuid import uuid4

from benchmarks.row import Row
from benchmarks.sites import NoSite, Site, site
from benchmarks.size import WHOLE, Size
from sublet.booking.model.request import Data
from sublet.data.journeys import Journey
from sublet.data.roads import take_road
from sublet.kernel.logs import start_logs
from sublet.movers.file import FileMover
from sublet.movers.port import SIMPLE, UNLIMITED
from sublet.platforms.port import quietly
from sublet.platforms.slurm.platform import Slurm

NAME = "data to a cluster: streamed over one login, beside rsync and scp, with round trips of 0 and 50 ms"
LARGE = 1 << 30
FILES, SMALL = 10_000, 12_000  # so many files, of so many bytes each; a tenth where each costs scp round trips
PAST, TIMES = (1 << 30, 10)  # bytes of a sparse file, and how often it passes: a site has little room
COPIES = ("rsynced", "rcloned", "copied")  # what the others leave there
TRIES = 3  # of the large file, in turns with rsync: single tries vary by a third
BESIDE = 1.2
GROWTH = 64 << 20  # bytes of memory


def run(size: Size = WHOLE) -> list[Row]:
    """On two sites of the testbed, one near and one far away."""
    start_logs(level=logging.WARNING)
    rows: list[Row] = []
    try:
        for latency in (0, 50) if size.is_whole else (0,):
            with site("--latency", str(latency)) as there, tempfile.TemporaryDirectory() as home:
                rows += asyncio.run(measure(there, Path(home), size, latency))
    except NoSite as why:
        return [Row("not measured", str(why))]
    return rows


async def measure(there: Site, home: Path, size: Size, latency: int) -> list[Row]:
    """The same data by each of them, one after another."""
    large, folder = home / "large", home / "many"
    make_data(large, folder, size.of(LARGE), size.of(FILES // 10 if latency else FILES, 100))
    (home / "platform").mkdir()
    settings = {name: value for name, value in there.settings.items() if name != "kind"}
    platform = Slurm.model_validate({"name": "far", "calls": 100, "cache": 0, **settings})
    await platform.open(home / "platform")
    try:
        in_turns = await race_rsync(platform, there, large, TRIES if size.is_whole else 1)
        beside = await bring(platform, folder)
        again = [await bring(platform, path) for path in (large, folder)]
        rows = compare(there, in_turns, beside, sum(again), large, folder, latency)
        there.on("service@login", "rm", "-rf", *COPIES)  # its disk has room for little more
        if not latency:
            rows.append(await measure_memory(platform, home / "sparse", size))
    finally:
        await platform.close()
    return rows


def make_data(large: Path, folder: Path, size: int, files: int) -> None:
    with large.open("wb") as file:
        for _ in range(size >> 20):
            file.write(os.urandom(1 << 20))
    for number in range(files):
        place = folder / str(number // 100)
        place.mkdir(parents=True, exist_ok=True)
        (place / str(number)).write_bytes(os.urandom(SMALL))


async def bring(platform: Slurm, path: Path, session: str = "") -> float:
    """The seconds until data of this machine is in the cache there."""
    journey = Journey(await platform.open_cache(), "far", session or str(uuid4()), "me", lambda what: quietly)
    began = time.monotonic()
    await take_road(journey, Data(path.name, SIMPLE, str(path)), FileMover(UNLIMITED))
    return time.monotonic() - began


async def race_rsync(platform: Slurm, there: Site, large: Path, tries: int) -> list[tuple[float, float]]:
    """The seconds that a large file takes by us and by rsync, in turns, with other bytes each time; the last stays."""
    taken: list[tuple[float, float]] = []
    for number in range(tries):
        with large.open("r+b") as file:
            file.write(os.urandom(1 << 10))
        session = str(uuid4())
        ours = await bring(platform, large, session)
        taken.append((ours, take_by_rsync(there, large)))
        if number < tries - 1:
            there.on("service@login", "rm", "-rf", *COPIES)
            await platform.clean(session)
            await platform.let_go()
    return taken


def compare(
    there: Site,
    in_turns: list[tuple[float, float]],
    ours: float,
    again: float,
    large: Path,
    folder: Path,
    latency: int,
) -> list[Row]:
    ssh, target = ssh_of(there), f"service@{there.name}"
    by_rsync = [median(rsync for _, rsync in in_turns), take_by_rsync(there, folder)]
    by_rclone = [take_by_rclone(f"{ssh} {target}", path) for path in (large, folder)]
    by_scp = take(["scp", "-q", "-r", *ssh.split()[1:], str(folder), f"{target}:copied"])
    ratio, beside, at = median(ours / rsync for ours, rsync in in_turns), ours / by_scp, f"{latency} ms"
    return [
        Row(f"{at}: a large file, by rsync", f"{by_rsync[0]:.1f} s"),
        Row(f"{at}: a large file, by rclone over SFTP", f"{by_rclone[0]:.1f} s"),
        Row(f"{at}: a large file, streamed ÷ rsync", f"{ratio:.2f} ×", f"≤ {BESIDE} ×", ratio <= BESIDE),
        Row(f"{at}: many small files, by rsync", f"{by_rsync[1]:.1f} s"),
        Row(f"{at}: many small files, by rclone over SFTP", f"{by_rclone[1]:.1f} s"),
        Row(f"{at}: many small files, by scp -r", f"{by_scp:.1f} s"),
        Row(f"{at}: many small files, streamed ÷ scp -r", f"{beside:.2f} ×", "≤ 1 ×", beside <= 1),
        Row(f"{at}: both once more, from the cache", f"{again:.2f} s"),
    ]


def ssh_of(there: Site) -> str:
    """The ssh that others use: the site's own settings and key."""
    return f"ssh -F {there.facts['ssh_config']} -i {there.facts['key_file']}"


def take_by_rsync(there: Site, path: Path) -> float:
    return take(["rsync", "-a", "-e", ssh_of(there), str(path), f"service@{there.name}:rsynced/"])


def take(words: list[str], **environment: str) -> float:
    began = time.monotonic()
    subprocess.run(words, check=True, capture_output=True, env={**os.environ, **environment})
    return time.monotonic() - began


def take_by_rclone(ssh: str, path: Path) -> float:
    """By its own ways, over the ssh of the others: many files side by side, and unchecked as those of the others."""
    words = [str(Path(sys.executable).with_name("rclone")), "copy", str(path)]
    words.append(f":sftp:rcloned/{path.name if path.is_dir() else ''}")
    options = {"RCLONE_SFTP_DISABLE_HASHCHECK": "true", "RCLONE_SFTP_SHELL_TYPE": "unix", "RCLONE_TRANSFERS": "16"}
    return take(words, RCLONE_SFTP_SSH=ssh, RCLONE_CONFIG=os.devnull, **options)


async def measure_memory(platform: Slurm, file: Path, size: Size) -> Row:
    """How much this process grows while a large file passes through it, again and again."""
    with file.open("wb") as opened:
        opened.truncate(size.of(PAST))
    before = peak()
    for _ in range(TIMES):
        session = str(uuid4())
        await bring(platform, file, session)
        await platform.clean(session)
        await platform.let_go()
    grown = peak() - before
    return Row(
        "memory of the service while 10 GiB pass", f"+{grown >> 20} MiB", f"≤ {GROWTH >> 20} MiB", grown <= GROWTH
    )


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
