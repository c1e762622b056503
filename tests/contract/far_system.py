"""A system on this machine that a Slurm platform reaches, and how data is brought to its cache."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from sublet.booking.model.request import Data, Request
from sublet.data.executables import Movers
from sublet.data.journeys import Journey
from sublet.data.placing import travel
from sublet.data.roads import Arrival
from sublet.movers.port import Mover, Progress
from sublet.platforms.port import quietly
from sublet.platforms.slurm.platform import Slurm
from sublet.reach.local import LocalReach

System = TypeVar("System", bound=Slurm)


async def open_system(tmp_path: Path, kind: type[System], **settings: Any) -> System:
    """It as a platform, below `far`; its home here is `home`."""
    platform = kind(**{"name": "far", "directory": str(tmp_path / "far"), **settings})
    platform.use(LocalReach("far"))
    await asyncio.to_thread((tmp_path / "home").mkdir, exist_ok=True)
    await platform.open(tmp_path / "home")
    return platform


async def open_platform(tmp_path: Path, directory: Path, **settings: Any) -> Slurm:
    """The same in a directory of one's own."""
    return await open_system(tmp_path, Slurm, directory=str(directory), **settings)


@pytest.fixture
async def slurm(tmp_path: Path) -> AsyncIterator[Slurm]:
    """It, as most tests want it."""
    platform = await open_system(tmp_path, Slurm)
    yield platform
    await platform.close()


@pytest.fixture(scope="session")
def old_programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a system on which all that is called Python is too old; its shell is Bash, as on most."""
    if shutil.which("curl") is None:
        pytest.skip("there is no curl on this machine")
    folder = make_programs(tmp_path_factory.mktemp("old") / "bin")
    (folder / "sh").unlink()
    (folder / "sh").symlink_to(shutil.which("bash") or "/bin/sh")
    (folder / "python3").write_text("#!/bin/sh\nexit 1\n")
    (folder / "python3").chmod(0o755)
    return folder


@pytest.fixture
async def old_slurm(tmp_path: Path, old_programs: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Slurm]:
    """A system without a fitting Python."""
    monkeypatch.setenv("PATH", str(old_programs))
    platform = await open_system(tmp_path, Slurm)
    yield platform
    await platform.close()


def find_words(secret: str) -> list[str]:
    """Processes of this machine whose words or environment hold a secret."""
    holders = []
    for process in Path("/proc").glob("[0-9]*"):
        for name in ("cmdline", "environ"):
            try:
                if secret.encode() in (process / name).read_bytes():
                    holders.append(f"{process.name} {name}")
            except OSError:  # it has ended
                continue
    return holders


def ignore(what: str) -> Progress:
    """Nobody is told."""
    return quietly


async def begin(slurm: Slurm, session: str = "s1") -> Journey:
    """The way of a session's data to it."""
    return Journey(await slurm.open_cache(), "far", session, "me", ignore)


async def take(journey: Journey, mover: Mover, item: Data) -> Arrival | None:
    """Bring data there by the best road; None: it has to be brought here."""
    return await travel(journey, Request(None, data=(item,)), item, mover, Movers([mover]))


def content_of(tmp_path: Path, arrival: Arrival) -> Path:
    """What has come."""
    return tmp_path / "far" / "kept" / arrival.entry / "content"


def make_tree(folder: Path, deep: str) -> None:
    """What a server has: a folder with a file of an odd name (`deep`), and one that may be executed."""
    (folder / deep).parent.mkdir(parents=True)
    (folder / deep).write_text("a\n")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)


def make_old(folder: Path) -> None:
    """Let all of it be older than what may change within the same second."""
    for file in folder.rglob("*"):
        os.utime(file, (time.time() - 60,) * 2)


def make_young(file: Path) -> None:
    """Let it have changed only now, however long the next look takes: its time is a little ahead."""
    os.utime(file, (time.time() + 60,) * 2)


async def until(is_so: Callable[[], bool]) -> None:
    """Look again and again."""
    async with asyncio.timeout(60):
        while not is_so():  # noqa: ASYNC110 - another process does it
            await asyncio.sleep(0.05)


def make_programs(folder: Path, *without: str) -> Path:
    """The programs of this machine, without Python and some others."""
    folder.mkdir()
    for program in (path for place in ("/usr/bin", "/bin") for path in Path(place).iterdir()):
        if not program.name.startswith(("python", *without)) and not os.path.lexists(folder / program.name):
            (folder / program.name).symlink_to(program)
    return folder
