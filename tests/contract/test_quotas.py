"""A quota of the file system is told as one at either end, and what came before takes no room: tried on a real one."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from sublet.kernel.errors import DataNotSent, DiskFull
from sublet.movers.file import FileMover
from sublet.movers.port import UNLIMITED
from tests.contract import test_data_cache as there
from tests.contract import test_local_cache as here
from tests.contract.moving import content
from tests.contract.test_movers import nothing
from tests.sites import limited, mounted
from tests.web_source import serve_source

pytestmark = pytest.mark.anyio
MIB = 1 << 20
QUOTA = 3 * MIB


def count_bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


async def test_a_quota_is_told_here_and_on_the_system_and_nothing_half_is_left(tmp_path: Path) -> None:
    with limited(tmp_path, QUOTA) as place, serve_source("127.0.0.1") as source:
        if place is None:
            pytest.skip("no file system with a quota can be mounted here")
        address = source.put("/large", os.urandom(8 * MIB))
        with pytest.raises(DiskFull, match="Disk quota exceeded"):
            await here.bring(here.make_cache(place / "here", quota=0), address)
        assert count_bytes(place) < MIB
        platform = await there.open_platform(tmp_path, place / "far")
        with pytest.raises(DiskFull, match="Disk quota exceeded"):
            await there.bring(platform, address)
        assert count_bytes(place) < MIB
        platform.downloads = False
        platform._heed()
        with pytest.raises(DiskFull, match="Disk quota exceeded"):
            await there.bring(platform, address)
        assert count_bytes(place) < MIB
        with pytest.raises(DataNotSent, match="Disk quota exceeded"):
            await FileMover(UNLIMITED).push(content("big", os.urandom(8 * MIB)), f"{place}/out/", nothing)
        assert not list(place.glob("out/*"))
        await platform.close()


async def test_results_that_find_no_room_are_not_sent_and_no_half_file_is_left(tmp_path: Path) -> None:
    small = tmp_path / "small"
    await asyncio.to_thread(small.mkdir)
    with mounted(small, "1m") as is_mounted:
        if not is_mounted:
            pytest.skip("no small file system can be mounted here")
        with pytest.raises(DataNotSent, match="No space left"):
            await FileMover(UNLIMITED).push(content("big", os.urandom(2 * MIB)), f"{small}/", nothing)
        assert not os.listdir(small)
