"""Downloads that go wrong leave nothing that looks whole, and are told as what they are."""

from __future__ import annotations

import errno
import os
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from sublet.kernel.errors import DataNotSent, DataNotThere
from sublet.kernel.part_names import name_part
from sublet.movers.file import FileMover
from sublet.movers.http import HttpMover
from sublet.movers.port import UNLIMITED
from tests.contract.moving import content
from tests.contract.test_movers import BODY, data, nothing, send, serving

pytestmark = pytest.mark.anyio


async def test_a_file_that_is_always_shorter_than_promised_is_not_there(tmp_path: Path) -> None:
    def answer(handler: BaseHTTPRequestHandler, number: int) -> None:
        send(handler, ranges=False, breaks=1_000_000)

    with serving(answer) as server, pytest.raises(DataNotThere, match=r"3 tries, 1000000 bytes so far"):
        await HttpMover(UNLIMITED, pause=0, tries=3).bring(data(f"{server.url}/cube"), tmp_path, nothing)
    assert not (tmp_path / "cube").exists()


async def test_a_server_without_ranges_that_breaks_off_now_here_now_there_is_not_asked_for_ever(tmp_path: Path) -> None:
    def answer(handler: BaseHTTPRequestHandler, number: int) -> None:
        send(handler, ranges=False, breaks=1_000_000 + number % 2 * 1_000_000)

    with serving(answer) as server:
        with pytest.raises(DataNotThere, match=r"5 tries"):
            await HttpMover(UNLIMITED, pause=0).bring(data(f"{server.url}/cube"), tmp_path, nothing)
        assert len(server.asked) == 5


async def test_parts_of_two_versions_are_never_joined_though_a_server_ignores_if_range(tmp_path: Path) -> None:
    new = b"n" * len(BODY)

    def answer(handler: BaseHTTPRequestHandler, number: int) -> None:
        if number == 1:
            return send(handler, breaks=2_000_000)
        handler.headers.replace_header("If-Range", '"two"') if "If-Range" in handler.headers else None
        return send(handler, new, tag='"two"')

    with serving(answer) as server:
        await HttpMover(UNLIMITED, pause=0).bring(data(f"{server.url}/cube"), tmp_path, nothing)
        assert [asked.get("Range") for asked in server.asked] == [None, "bytes=2000000-", None]
    assert (tmp_path / "cube").read_bytes() == new


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
async def test_a_full_disk_is_told_as_one_and_nothing_counts_as_there(tmp_path: Path) -> None:
    (tmp_path / name_part("cube")).symlink_to("/dev/full")
    with serving(lambda handler, _: send(handler)) as server, pytest.raises(OSError, match="No space left") as caught:
        await HttpMover(UNLIMITED, pause=0).bring(data(f"{server.url}/cube"), tmp_path, nothing)
    assert caught.value.errno == errno.ENOSPC
    assert not (tmp_path / "cube").exists()


async def test_a_file_does_not_take_the_place_of_a_folder_on_this_machine(tmp_path: Path) -> None:
    (tmp_path / "runs" / "7").mkdir(parents=True)
    for to, name, more in ((f"{tmp_path}/runs", "x", "; write a / at the end"), (f"{tmp_path}/runs/", "7", "")):
        with pytest.raises(DataNotSent, match=f"a folder has that name{more}"):
            await FileMover(UNLIMITED).push(content(name, b"x"), to, nothing)
    await FileMover(UNLIMITED).push(content("7", b"x"), f"{tmp_path}/runs/7/", nothing)
    assert (tmp_path / "runs/7/7").read_bytes() == b"x"
