"""A service whose home was removed ends, and does nothing to a home that was made anew in its place."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from sublet.kernel.db.record import read_record
from sublet.kernel.home import Home
from sublet.kernel.serving import forget_serving, process_start, read_serving, record_serving
from sublet.kernel.settings import Settings
from sublet.server.home_watch import end_without_home
from sublet.server.server import listen_unix
from sublet.store.guard import DatabaseGuard
from sublet.store.store import Store

pytestmark = pytest.mark.anyio
OFTEN = 0.01


@pytest.fixture
def short() -> Iterator[Path]:
    """A directory whose path is short enough for sockets."""
    with TemporaryDirectory() as directory:
        yield Path(directory)


@pytest.mark.parametrize("made_anew", [False, True])
async def test_a_service_whose_home_was_removed_ends(tmp_path: Path, made_anew: bool) -> None:
    (home := tmp_path / "home").mkdir()
    ended = asyncio.Event()
    watch = asyncio.create_task(end_without_home(str(home), ended.set, OFTEN))
    await asyncio.sleep(OFTEN)
    home.rmdir()
    if made_anew:  # such as by the next command, which starts a service of its own there
        home.mkdir()
    async with asyncio.timeout(10):
        await ended.wait()
    await watch


async def test_a_home_that_can_not_be_reached_is_not_gone(tmp_path: Path) -> None:
    (home := tmp_path / "home").mkdir()
    ended = asyncio.Event()
    watch = asyncio.create_task(end_without_home(str(home), ended.set, OFTEN))
    await asyncio.sleep(OFTEN)
    home.rename(tmp_path / "away")
    home.symlink_to("home")  # ELOOP, in place of the ESTALE or EIO of a server that is away
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(10 * OFTEN):
            await ended.wait()
    home.unlink()
    async with asyncio.timeout(10):
        await ended.wait()
    await watch


def test_a_service_that_ends_leaves_the_socket_and_the_record_of_the_next_one(short: Path) -> None:
    home = Home(str(short / "home"))
    home.make()
    with listen_unix(home.socket), closing(socket.socket(socket.AF_UNIX)) as theirs:
        record_serving(home, "", home.socket)
        shutil.rmtree(home.root)
        home.make()
        theirs.bind(home.socket)
        other = {"pid": os.getppid(), "start": process_start(os.getppid()), "url": "", "socket": home.socket}
        Path(home.state).write_text(json.dumps(other), encoding="utf-8")
        forget_serving(home)
    assert Path(home.socket).is_socket()
    assert (serving := read_serving(home))
    assert serving.pid == os.getppid()
    record_serving(home, "", home.socket)
    forget_serving(home)
    assert not Path(home.state).exists()


def test_a_service_records_nothing_about_a_database_that_took_the_place_of_its_own(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    guard = DatabaseGuard(settings)
    with closing(Store.open(settings.database_url)) as store:
        guard.check_store(store)
        assert read_record(str(tmp_path))
        (tmp_path / "database.json").unlink()
        (tmp_path / "sublet.db").rename(tmp_path / "moved.db")
        (tmp_path / "sublet.db").touch()
        guard.record(store)
        assert read_record(str(tmp_path)) is None
