"""Data comes from and goes to a real rsync server, with the right password alone."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sublet.booking.model.request import Data
from sublet.kernel.errors import DataNotThere
from sublet.movers import rsync_listing
from sublet.movers.port import UNLIMITED, Policy
from sublet.movers.rsync import RsyncMover
from tests.contract.moving import content, quiet
from tests.rsync_server import RsyncServer, serve_rsync

pytestmark = pytest.mark.anyio
LARGE = os.urandom(2_000_000)
SHA = f"sha256:{hashlib.sha256(LARGE).hexdigest()}"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RsyncServer]:
    with serve_rsync(tmp_path_factory.mktemp("rsyncd")) as server:
        (server.folder / "cube.fits").write_bytes(LARGE)
        yield server


async def test_an_rsync_server_brings_and_takes_files_with_the_right_password(
    daemon: RsyncServer, tmp_path: Path
) -> None:
    begin = daemon.begin
    item = Data("cube", "simple-data-resource", f"{begin}/open/cube.fits", checksum=SHA)
    await RsyncMover(replace(UNLIMITED, public_only=False)).bring(item, tmp_path, quiet)
    assert (tmp_path / "cube.fits").read_bytes() == LARGE
    with pytest.raises(DataNotThere, match="not a public address"):
        await RsyncMover(Policy()).bring(item, tmp_path, quiet)
    with pytest.raises(DataNotThere, match="auth failed on module closed"):
        await RsyncMover(UNLIMITED).bring(replace(item, location=f"{begin}/closed/"), tmp_path, quiet)
    mover = RsyncMover(Policy(public_only=False, credentials=[daemon.credential]))
    await mover.push(content("a/b.txt", b"b"), f"{begin}/closed/run1/", quiet)
    assert (daemon.folder / "run1/a/b.txt").read_bytes() == b"b"
    await mover.bring(replace(item, location=f"{begin}/closed/run1/", checksum=""), tmp_path / "there", quiet)
    assert (tmp_path / "there/a/b.txt").read_bytes() == b"b"
    assert await mover.measure(replace(item, location=f"{begin}/open/")) == len(LARGE) + 1, "all that is in a folder"
    assert await mover.measure(replace(item, location=f"{begin}/open/cube.fits")) == len(LARGE)
    assert await mover.measure(replace(item, location=f"{begin}/open/gone")) is None
    with pytest.raises(DataNotThere, match="it is a folder; write a /"):
        await mover.bring(replace(item, location=f"{begin}/closed/run1", checksum=""), tmp_path, quiet)


async def test_a_list_is_read_whole_however_long_it_is_and_refused_when_it_has_too_many_files(
    daemon: RsyncServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = daemon.folder / "many"
    many.mkdir()
    names = {f"{'long' * 50}-{number}" for number in range(500)}  # more than is kept of what a program says
    for name in names:
        (many / name).touch()
    item = Data("many", "simple-data-resource", f"rsync://127.0.0.1:{daemon.port}/open/many/")
    assert set((await RsyncMover(UNLIMITED).list_versions(item)).files) == names
    monkeypatch.setattr(rsync_listing, "MOST_FILES", 400)
    with pytest.raises(DataNotThere, match=r"it has more than .* files; bring an archive of them instead"):
        await RsyncMover(UNLIMITED).list_versions(item)
    shutil.rmtree(many)
