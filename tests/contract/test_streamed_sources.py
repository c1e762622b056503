"""What a system can't fetch by itself is streamed to it from SSH hosts, and lies on no disk on the way."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from sublet.booking.model.request import Data
from sublet.booking.platforms.known import KnownPlatforms
from sublet.booking.system_files import SystemFilesMover
from sublet.data.model.roads import Road
from sublet.data.roads import SMALL, Arrival
from sublet.kernel.errors import DataNotThere
from sublet.movers.file import FileMover
from sublet.movers.port import SIMPLE, UNLIMITED, Links, Mover, SourceChanged
from sublet.movers.sftp import SftpMover
from sublet.platforms.batch.remote import RemotePlatform
from sublet.platforms.registry import load_platforms
from sublet.platforms.slurm.platform import Slurm
from sublet.reach.local import LocalReach
from sublet.reach.port import Command, T
from sublet.reach.prompts import nobody
from tests.contract.far_system import begin, content_of, make_old, make_tree, make_young, take
from tests.contract.test_mover_ssh import LARGE, SHA, allow, cutting, data
from tests.sshd import Sshd, needs_sshd, sshd

pytestmark = [pytest.mark.anyio, needs_sshd]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with sshd(tmp_path_factory.mktemp("sshd")) as running:
        make_tree(running.home / "tree", "deep/a 'b'*.txt")
        (running.home / "cube.fits").write_bytes(LARGE)
        for number in range(60):
            (running.home / "tree" / f"{number}.txt").write_text(str(number))
        make_old(running.home)
        yield running


async def drain(pieces: AsyncIterator[bytes]) -> bytes:
    return b"".join([piece async for piece in pieces])


async def bring(slurm: Slurm, mover: Mover, item: Data, session: str = "s1") -> Arrival | None:
    return await take(await begin(slurm, session), mover, item)


async def test_a_file_over_sftp_is_streamed_once_checked_and_goes_on_where_it_broke_off(
    server: Sshd, slurm: Slurm, tmp_path: Path
) -> None:
    async with cutting(server.port, len(LARGE) // 2) as (port, brought):
        item, mover = data(server, "/cube.fits", port=port, checksum=SHA), SftpMover(allow(server, port=port))
        for road in (Road.STREAMED, Road.CACHED):
            arrival = await bring(slurm, mover, item, road.value)
            assert arrival
            assert arrival.taken.road is road
        assert content_of(tmp_path, arrival).read_bytes() == LARGE
    long = [size for size in brought if size > 1_000_000]
    assert len(long) == 2
    assert sum(long) < 1.5 * len(LARGE), "what had come was not brought again"
    with pytest.raises(DataNotThere, match="its checksum is"):
        await bring(slurm, SftpMover(allow(server)), data(server, "/cube.fits", checksum="sha256:" + "0" * 64))
    with pytest.raises(DataNotThere, match="No such file"):
        await bring(slurm, SftpMover(allow(server)), data(server, "/gone"))


async def test_a_folder_over_sftp_comes_by_one_connection_and_keeps_what_may_be_executed(
    server: Sshd, slurm: Slurm, tmp_path: Path
) -> None:
    async with cutting(server.port, 1 << 40) as (port, brought):
        arrival = await bring(slurm, SftpMover(allow(server, port=port)), data(server, "/tree/", port=port))
    assert arrival
    assert (arrival.taken.road, arrival.files.is_folder) == (Road.STREAMED, True)
    assert len(brought) <= 3, "not one connection for each file"
    place = content_of(tmp_path, arrival)
    assert (place / "deep" / "a 'b'*.txt").read_text() == "a\n"
    assert sorted(int(file.stem) for file in place.glob("*.txt")) == list(range(60))
    assert (place / "run.sh").stat().st_mode & 0o100


async def test_a_file_over_sftp_that_changes_is_not_mixed_and_one_that_is_young_is_not_known_again(
    server: Sshd, tmp_path: Path
) -> None:
    source, mover = server.home / "changing", SftpMover(allow(server))
    source.write_bytes(LARGE)
    make_young(source)
    item = data(server, "/changing")
    [young] = (await mover.links(item)).links
    assert not young.identity, "it may change again within the same second"
    os.utime(source, (1, 1))
    [link] = (await mover.links(item)).links
    assert link.identity
    pieces = mover.read(item, link, 0)
    assert await anext(pieces), "it has begun"
    source.write_bytes(LARGE[::-1])
    with pytest.raises(SourceChanged):
        await drain(pieces)


async def test_what_lies_on_the_very_system_is_copied_there_once_and_anew_when_it_changed(
    slurm: Slurm, tmp_path: Path
) -> None:
    known = SimpleNamespace(get=lambda name: SimpleNamespace(login=SimpleNamespace(reach=LocalReach(name))))
    mover, tree = SystemFilesMover(known, is_allowed=True), tmp_path / "mine"  # type: ignore[arg-type]
    (tree / "deep dir").mkdir(parents=True)
    (tree / "deep dir" / "a 'b'.txt").write_text("a\n")
    (tree / "run.sh").write_text("#!/bin/sh\n")
    (tree / "run.sh").chmod(0o755)
    (tree / "link").symlink_to("run.sh")
    os.mkfifo(tree / "pipe")
    folder = Data("mine", SIMPLE, f"ssh://far{tree}/")
    for road in (Road.COPIED, Road.CACHED):
        arrival = await bring(slurm, mover, folder, road.value)
        assert arrival
        assert (arrival.taken.road, arrival.files.is_folder) == (road, True)
    place = content_of(tmp_path, arrival)
    assert sorted(str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()) == [
        "deep dir/a 'b'.txt",
        "link",
        "run.sh",
    ]
    assert not (place / "pipe").exists()
    assert (place / "run.sh").stat().st_mode & 0o100
    (tree / "run.sh").write_text("another\n")
    again = await bring(slurm, mover, folder)
    assert again
    assert (again.taken.road, content_of(tmp_path, again).joinpath("run.sh").read_text()) == (Road.COPIED, "another\n")
    file = Data("run", SIMPLE, f"ssh://far{tree}/run.sh")
    assert await mover.find_on(file, "far") == (f"{tree}/run.sh", await mover.links(file)), "offers know it, too"
    assert await mover.find_on(file, "elsewhere") is None
    alone = Data("run", SIMPLE, f"ssh://far{tree}/run.sh", checksum="sha256:" + "0" * 64)
    with pytest.raises(DataNotThere, match="its checksum is"):
        await bring(slurm, mover, alone)
    with pytest.raises(DataNotThere, match="No such file"):
        await bring(slurm, mover, replace(alone, location="ssh://far/no/such"))
    assert not list((tmp_path / "far" / "kept").glob("*/part*"))


async def test_empty_folders_of_this_machine_come_along_and_are_known_again(slurm: Slurm, tmp_path: Path) -> None:
    (tmp_path / "in" / "logs" / "old").mkdir(parents=True)
    (tmp_path / "in" / "big").write_bytes(os.urandom(2 * SMALL))
    entries = []
    for number in range(2):
        arrival = await bring(slurm, FileMover(UNLIMITED), Data("in", SIMPLE, str(tmp_path / "in")), f"s{number}")
        assert arrival
        assert (content_of(tmp_path, arrival) / "logs" / "old").is_dir()
        entries.append(arrival.entry)
    assert entries[0] == entries[1]


async def test_a_file_and_a_folder_of_another_system_are_streamed_over_its_login(
    server: Sshd, slurm: Slurm, tmp_path: Path
) -> None:
    ssh = server.options | {"BatchMode": "yes"}
    platforms, _ = load_platforms({"other": {"kind": "slurm", "host": "127.0.0.1", "port": server.port, "ssh": ssh}})
    other = platforms["other"]
    assert isinstance(other, RemotePlatform)
    other.way(tmp_path / "run")
    mover = SystemFilesMover(KnownPlatforms(None, datetime.now, timedelta(1), platforms), is_allowed=True)  # type: ignore[arg-type]
    assert isinstance(mover, Links)
    assert other.login
    await other.login.open(nobody)
    try:
        item = Data("cube", SIMPLE, f"ssh://other{server.home}/cube.fits", checksum=SHA)
        for road in (Road.STREAMED, Road.CACHED):
            arrival = await bring(slurm, mover, item, road.value)
            assert arrival
            assert arrival.taken.road is road
        assert content_of(tmp_path, arrival).read_bytes() == LARGE
        folder = await bring(slurm, mover, replace(item, location=f"ssh://other{server.home}/tree/", checksum=""))
        assert folder
        assert (folder.taken.road, folder.files.is_folder) == (Road.STREAMED, True)
        place = content_of(tmp_path, folder)
        assert (place / "deep" / "a 'b'*.txt").read_text() == "a\n"
        assert sorted(int(file.stem) for file in place.glob("*.txt")) == list(range(60))
        assert (place / "run.sh").stat().st_mode & 0o100
        with pytest.raises(DataNotThere, match="No such file"):
            await bring(slurm, mover, replace(item, location="ssh://other/no/such"))
        [link] = (await mover.links(item)).links
        await asyncio.to_thread(os.utime, server.home / "cube.fits", (2, 2))
        with pytest.raises(SourceChanged):
            await drain(mover.read(item, link, 0))
    finally:
        await other.login.close()


async def test_many_small_files_of_a_system_are_read_together_as_they_were_listed_or_not_at_all(
    slurm: Slurm, tmp_path: Path
) -> None:
    runs: list[str] = []

    class CountedReach(LocalReach):
        async def run(self, command: Command[T]) -> T:
            runs.append(command.argv[2])
            return await super().run(command)

    known = SimpleNamespace(get=lambda name: SimpleNamespace(login=SimpleNamespace(reach=CountedReach(name))))
    mover, tree = SystemFilesMover(known, is_allowed=True), tmp_path / "many"  # type: ignore[arg-type]
    (tree / "deep").mkdir(parents=True)
    for number in range(300):
        (tree / "deep" / f"-{number} é.txt").write_text(str(number))
    (tree / "hard").hardlink_to(tree / "deep" / "-1 é.txt")
    (tree / "soft").symlink_to("hard")
    (tree / "large").write_bytes(LARGE)
    item = Data("many", SIMPLE, f"ssh://other{tree}/")
    arrival = await bring(slurm, mover, item)
    assert arrival
    place = content_of(tmp_path, arrival)
    assert {file.read_text() for file in (place / "deep").iterdir()} == set(map(str, range(300)))
    assert [(place / name).read_bytes() for name in ("hard", "soft", "large")] == [b"1", b"1", LARGE]
    assert len([text for text in runs if text.startswith("exec tar")]) == 1
    links = [link for link in (await mover.links(item)).links if link.path == "hard"]
    (tree / "hard").write_text("2")
    with pytest.raises(SourceChanged):
        await mover.read_together(item, links)
