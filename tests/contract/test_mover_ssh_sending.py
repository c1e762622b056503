"""Results go out over real OpenSSH: streamed past the disk, whole or not at all, also by the login that is open."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from sublet.booking.model.request import Data
from sublet.booking.platforms.known import KnownPlatforms
from sublet.booking.system_files import SystemFilesMover
from sublet.kernel.errors import DataNotSent, DataNotThere, LoginNeeded
from sublet.movers.port import Pushes
from sublet.platforms.batch.remote import RemotePlatform
from sublet.platforms.registry import load_platforms
from sublet.reach.prompts import nobody
from tests.contract.moving import content, quiet
from tests.contract.ssh_data import (
    BOTH,
    LARGE,
    SHA,
    allow,
    data,
    list_below,
    mover_for,
    needs_rsync,
    serve_data,
    sign_in,
)
from tests.sshd import Sshd, needs_sshd, sshd

pytestmark = [pytest.mark.anyio, needs_sshd]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with serve_data(tmp_path_factory.mktemp("sshd")) as running:
        yield running


@pytest.mark.parametrize("scheme", BOTH)
async def test_results_are_sent_whole_into_folders_that_are_made(server: Sshd, scheme: str) -> None:
    mover, told = mover_for(scheme, allow(server)), list[int]()
    begin = f"{scheme}://127.0.0.1:{server.port}"
    folder = f"{server.home}/sent-{mover.name}/new/"
    for body in (b"first", LARGE):
        await mover.push(content("out/big file.bin", body), f"{begin}{folder}", lambda done, total: told.append(done))
    place = server.home / f"sent-{mover.name}/new/out/big file.bin"
    assert place.read_bytes() == LARGE
    assert max(told) == len(LARGE)
    await mover.push(content("x.txt", b"x"), f"{begin}{server.home}/sent-{mover.name}/named.txt", quiet)
    assert (server.home / f"sent-{mover.name}/named.txt").read_bytes() == b"x"
    assert sorted(os.listdir(place.parent)) == ["big file.bin"]
    with pytest.raises(DataNotSent, match=r"cube\.fits"):
        await mover.push(content("x.txt", b"x"), f"{begin}{server.home}/cube.fits/below/", quiet)
    with pytest.raises(DataNotSent, match="a folder has that name; write a / at the end of the address"):
        await mover.push(content("x.txt", b"x"), f"{begin}{folder.rstrip('/')}", quiet)
    assert os.listdir(server.home / f"sent-{mover.name}/new") == ["out"]


@pytest.mark.parametrize("scheme", BOTH)
async def test_which_versions_of_files_a_server_has_is_told_so_that_others_changes_are_seen(
    server: Sshd, scheme: str
) -> None:
    mover, folder = mover_for(scheme, allow(server)), server.home / f"versions-{scheme}"
    (folder / "deep").mkdir(parents=True)
    for path in ("a b.txt", "deep/ü.txt"):
        (folder / path).write_text("1")
    whole = data(server, f"/{folder.name}/", scheme)
    before = await mover.list_versions(whole)
    assert before.is_folder
    assert {path: size for path, (size, _) in before.files.items()} == {"a b.txt": 1, "deep/ü.txt": 1}
    os.utime(folder / "a b.txt", (1, 1))
    after = await mover.list_versions(whole)
    assert [path for path in before.files if before.files[path] != after.files[path]] == ["a b.txt"]
    alone = await mover.list_versions(data(server, f"/{folder.name}/a%20b.txt", scheme))
    assert (alone.is_folder, alone.files) == (False, {"a b.txt": after.files["a b.txt"]})
    with pytest.raises(DataNotThere):
        await mover.list_versions(data(server, f"/{folder.name}/gone.txt", scheme))


async def _refuse_what_can_not_be_sent(mover: SystemFilesMover, home: Path) -> None:
    """Nothing that looks complete, and no part, stays of a file that could not be sent."""
    with pytest.raises(DataNotSent, match="a folder has that name; write a / at the end of the address"):
        await mover.push(content("x.txt", b"x"), f"ssh://far{home}/by-login/a", quiet)
    with pytest.raises(DataNotSent, match="Not a directory"):
        await mover.push(content("x.txt", b"x"), f"ssh://far{home}/cube.fits/below/", quiet)
    with pytest.raises(DataNotSent, match="it has 9 bytes, and 1 arrived"):
        await mover.push(replace(content("short.txt", b"x"), size=9), f"ssh://far{home}/by-login/", quiet)
    await mover.push(content("empty.txt", b""), f"ssh://far{home}/by-login/a/", quiet)
    assert {file.name: file.read_bytes() for file in (home / "by-login/a").iterdir()} == {
        "b.txt": b"b",
        "empty.txt": b"",
    }
    assert os.listdir(home / "by-login") == ["a"]
    (home / "by-login/a/empty.txt").unlink()


@pytest.mark.parametrize("scheme", [*BOTH, "ssh"])
async def test_a_result_that_is_sent_over_ssh_is_never_copied_to_the_disk_here(
    server: Sshd, scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = tmp_path / "tmp"
    parts.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(parts))
    largest = 0

    def look(*_: object) -> None:
        nonlocal largest
        sizes = [file.stat().st_size for file in parts.rglob("*") if file.is_file()]
        largest = max([largest, *sizes])

    async with contextlib.AsyncExitStack() as stack:
        if scheme == "ssh":
            mover: Pushes = await stack.enter_async_context(sign_in(server, tmp_path / "run"))
            begin = f"ssh://far{server.home}"
        else:
            mover, begin = mover_for(scheme, allow(server)), f"{scheme}://127.0.0.1:{server.port}{server.home}"
        sent = await mover.push(content("large.bin", LARGE), f"{begin}/streamed-{scheme}/", look)
    assert sent == f"{begin}/streamed-{scheme}/large.bin"
    assert (server.home / f"streamed-{scheme}/large.bin").read_bytes() == LARGE
    assert largest < len(LARGE) / 10


@needs_rsync
async def test_a_host_that_lets_nothing_in_but_rsync_gets_results_too(tmp_path: Path) -> None:
    only = tmp_path / "only-rsync"  # as rrsync does, which backup hosts have in authorized_keys
    only.write_text(
        '#!/bin/sh\ncase $SSH_ORIGINAL_COMMAND in rsync\\ *) exec sh -c "$SSH_ORIGINAL_COMMAND" ;; esac\nexit 1\n'
    )
    only.chmod(0o755)
    with sshd(tmp_path / "sshd", ForceCommand=str(only)) as strict:
        address = f"rsync+ssh://127.0.0.1:{strict.port}{strict.home}/sent/"
        assert await mover_for("rsync+ssh", allow(strict)).push(content("a b.bin", LARGE), address, quiet)
        assert (strict.home / "sent/a b.bin").read_bytes() == LARGE


async def test_files_of_a_system_come_and_go_over_the_login_that_is_open(server: Sshd, tmp_path: Path) -> None:
    ssh = server.options | {"BatchMode": "yes"}
    platforms, _ = load_platforms({"far": {"kind": "slurm", "host": "127.0.0.1", "port": server.port, "ssh": ssh}})
    far = platforms["far"]
    assert isinstance(far, RemotePlatform)
    far.way(tmp_path / "run")
    mover = SystemFilesMover(KnownPlatforms(None, datetime.now, timedelta(1), platforms), is_allowed=True)  # type: ignore[arg-type]
    file = Data("cube", "simple-data-resource", f"ssh://far{server.home}/cube.fits", checksum=SHA)
    assert not mover.check(file)
    with pytest.raises(LoginNeeded):
        await mover.bring(file, tmp_path, quiet)
    assert far.login
    await far.login.open(nobody)
    try:
        assert await mover.measure(file) == len(LARGE)
        await mover.bring(file, tmp_path, quiet)
        assert (tmp_path / "cube.fits").read_bytes() == LARGE
        await mover.bring(
            replace(file, location=f"ssh://far{server.home}/survey", checksum=""), tmp_path / "all", quiet
        )
        assert list_below(tmp_path / "all") >= {"deep/a 'b'*.txt", "run.sh"}
        await mover.push(content("a/b.txt", b"b"), f"ssh://far{server.home}/by-login/", quiet)
        assert (server.home / "by-login/a/b.txt").read_bytes() == b"b"
        await _refuse_what_can_not_be_sent(mover, server.home)
        folder = replace(file, location=f"ssh://far{server.home}/by-login/", checksum="")
        there = await mover.links(folder)
        assert [(link.path, link.size) for link in there.links] == [("a/b.txt", 1)]
        alone = await mover.links(replace(folder, location=f"{folder.location}a/b.txt"))
        [link] = alone.links
        assert (alone.is_folder, link.path, link.version) == (False, "b.txt", there.links[0].version)
        (server.home / "by-login" / "empty").mkdir()
        assert (await mover.links(replace(folder, location=f"{folder.location}empty/"))).links == []
        with pytest.raises(DataNotThere, match="No such file"):
            await mover.bring(replace(file, location="ssh://far/no/such"), tmp_path, quiet)
        with pytest.raises(DataNotThere, match="its checksum is"):
            await mover.bring(replace(file, checksum="sha256:" + "0" * 64), tmp_path, quiet)
    finally:
        await far.login.close()
    assert "sftp://other/x" in mover.check_push("ssh://other/x")
    assert mover.check_push("ssh://me@far/x")
    assert "own service alone" in replace(mover, is_allowed=False).check_push("ssh://far/x")
