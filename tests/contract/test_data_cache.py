"""The cache of data on a system: policies of a gateway, full disks, quotas, and what someone has changed."""

from __future__ import annotations

import asyncio
import hashlib
import os
import zlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from sublet.booking.model.request import Data
from sublet.data.model.links import FileLink, LinkedFiles
from sublet.data.model.roads import Road
from sublet.data.roads import Arrival, Journey, take_road, watch_entry
from sublet.kernel.errors import DataNotThere, DiskFull
from sublet.movers.http import HttpMover
from sublet.movers.port import SIMPLE, UNLIMITED, Policy, Progress
from sublet.platforms.caching import CachePlacement
from sublet.platforms.port import quietly
from sublet.platforms.slurm.platform import Slurm
from sublet.reach.local import LocalReach
from tests.sites import mounted
from tests.web_source import WebSource, serve_source

pytestmark = pytest.mark.anyio
MIB = 1 << 20


@pytest.fixture(scope="module")
def source() -> Iterator[WebSource]:
    with serve_source("127.0.0.1") as server:
        yield server


async def open_platform(tmp_path: Path, directory: Path, **settings: Any) -> Slurm:
    platform = Slurm(name="far", directory=str(directory), **settings)
    platform.use(LocalReach("far"))
    await asyncio.to_thread((tmp_path / "home").mkdir, exist_ok=True)
    await platform.open(tmp_path / "home")
    return platform


@pytest.fixture
async def slurm(tmp_path: Path) -> AsyncIterator[Slurm]:
    platform = await open_platform(tmp_path, tmp_path / "far", cache="3MiB")
    yield platform
    await platform.close()


def ignore(what: str) -> Progress:
    return quietly


async def bring(slurm: Slurm, location: str, session: str = "s1", policy: Policy = UNLIMITED, **more: Any) -> Arrival:
    journey = Journey(await slurm.open_cache(), "far", session, "me", ignore)
    arrival = await take_road(journey, Data("cube", SIMPLE, location, **more), HttpMover(policy, pause=0.01))
    assert arrival
    return arrival


def content_of(tmp_path: Path, arrival: Arrival) -> Path:
    return tmp_path / "far" / "kept" / arrival.entry / "content"


async def test_people_of_a_gateway_get_nothing_from_private_addresses_on_any_road(
    slurm: Slurm, source: WebSource
) -> None:
    address = source.put("/private", os.urandom(MIB))
    with pytest.raises(DataNotThere, match="not a public address"):
        await bring(slurm, address, policy=Policy(public_only=True))
    assert not source.gets("/private")


async def test_the_program_that_fetches_checks_addresses_itself_also_after_a_redirection(
    slurm: Slurm, source: WebSource
) -> None:
    cache = await slurm.open_cache()
    await cache.want("data-1", "s1")
    link = FileLink("cube", source.put("/inner", b"x"))
    await cache.fetch("data-1", LinkedFiles([link]), public_only=True, largest=0)
    state = await watch_entry(cache, "data-1", quietly)
    assert (state.kind, state.why) == ("private", "127.0.0.1 is not a public address")
    assert not source.gets("/inner")


async def test_more_than_may_come_is_refused_there_too(slurm: Slurm, source: WebSource) -> None:
    with pytest.raises(DataNotThere, match="more than 1000 bytes"):
        await bring(slurm, source.put("/large", b"x" * 1001), policy=Policy(public_only=False, largest=1000))


async def test_a_full_disk_there_is_told_and_what_came_takes_no_room(tmp_path: Path, source: WebSource) -> None:
    small = tmp_path / "small"
    await asyncio.to_thread(small.mkdir)
    with mounted(small, "3m") as is_mounted:
        if not is_mounted:
            pytest.skip("no small file system can be mounted here")
        platform = await open_platform(tmp_path, small / "far")
        address = source.put("/full", os.urandom(8 * MIB))
        with pytest.raises(DiskFull):
            await bring(platform, address)
        platform.downloads = False
        platform._heed()
        with pytest.raises(DiskFull):
            await bring(platform, address)
        free = os.statvfs(small)
        assert free.f_bavail * free.f_frsize > 2 * MIB
        await platform.close()


async def test_a_cache_keeps_to_its_quota_and_never_removes_what_a_session_needs(
    slurm: Slurm, source: WebSource, tmp_path: Path
) -> None:
    first = await bring(slurm, source.put("/q1", os.urandom(MIB)), "s1")
    second = await bring(slurm, source.put("/q2", os.urandom(MIB)), "s2")
    cache = await slurm.open_cache()
    await cache.leave("s1")
    third = await bring(slurm, source.put("/q3", os.urandom(2 * MIB)), "s3")
    assert not content_of(tmp_path, first).exists()
    assert content_of(tmp_path, second).exists()
    assert content_of(tmp_path, third).exists()


async def test_what_someone_changed_in_the_cache_is_brought_anew(
    slurm: Slurm, source: WebSource, tmp_path: Path
) -> None:
    address = source.put("/tampered", b"right" * 1000)
    content = content_of(tmp_path, await bring(slurm, address))
    assert content.stat().st_mode & 0o222 == 0
    content.chmod(0o600)
    content.write_bytes(b"wrong" * 1000)
    later = content.stat().st_mtime + 5
    os.utime(content, (later, later))
    arrival = await bring(slurm, address, "s2")
    assert arrival.taken.road is Road.THERE
    assert content.read_bytes() == b"right" * 1000


async def test_a_link_needs_no_room_and_outlives_the_entry(slurm: Slurm, source: WebSource, tmp_path: Path) -> None:
    arrival = await bring(slurm, source.put("/linked", b"x" * 5000))
    cache = await slurm.open_cache()
    placements = [CachePlacement(arrival.entry, "data/cube/cube"), CachePlacement(arrival.entry, "work/own", True)]
    for _ in range(2):  # to do it again does no harm
        await cache.place("s1", placements)
    place = tmp_path / "far" / "incoming" / "s1"
    assert (place / "data/cube/cube").stat().st_ino == content_of(tmp_path, arrival).stat().st_ino
    (place / "work/own").write_bytes(b"y")
    assert content_of(tmp_path, arrival).read_bytes() == b"x" * 5000


@pytest.mark.parametrize("downloads", [True, False])
async def test_checksums_of_every_kind_are_checked_on_both_roads(
    tmp_path: Path, source: WebSource, downloads: bool
) -> None:
    platform = await open_platform(tmp_path, tmp_path / "far", downloads=downloads)
    content = os.urandom(5000)
    sums = {"md5": hashlib.md5(content).hexdigest(), "adler32": f"{zlib.adler32(content):08x}"}
    for kind, digits in sums.items():
        address = source.put(f"/{kind}/{downloads}", content)
        arrival = await bring(platform, address, checksum=f"{kind}:{digits}")
        assert arrival.taken.road is (Road.THERE if downloads else Road.STREAMED)
        with pytest.raises(DataNotThere, match=f"its checksum is {kind}:{digits}"):
            await bring(platform, address, checksum=f"{kind}:{'0' * len(digits)}")
    await platform.close()
