"""Uploads into a real service: by tus' own Python client and by ours, broken off, killed, and used by sessions."""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tusclient import client as tus
from tusclient.exceptions import TusCommunicationError

from sublet.cli.app import run as run_command
from sublet.client import AsyncClient, Client
from sublet.client.uploading import UploadTally, drive, plan_upload, upload_steps
from sublet.data.calls import uploads
from sublet.data.views.uploads import UploadShown
from sublet.kernel.errors import BadRequest, NotFound, ServiceUnreachable
from sublet.kernel.faults import UPLOAD_POINTS
from sublet.people.calls.people import new_token
from tests.ports import free_port
from tests.serving import Serving, serve

PORT = free_port()
SETTINGS = f'port = {PORT}\n[platforms.here]\nkind = "local"\ncores = 8\nmemory = "8GiB"\n'
MIB = 1 << 20


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serve(tmp_path_factory.mktemp("uploads") / "home", SETTINGS) as serving:
        yield serving


@pytest.fixture(scope="module")
def client(serving: Serving) -> Client:
    return serving.start()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    top = tmp_path / "forcing"
    (top / "deep").mkdir(parents=True)
    (top / "a.txt").write_text("hello\n")
    (top / "deep" / "big.bin").write_bytes(os.urandom(20 * MIB))
    (top / "empty").touch()
    (top / "go.sh").write_text("#!/bin/sh\necho it runs\n")
    (top / "go.sh").chmod(0o755)
    (top / "link").symlink_to("a.txt")
    (top / ".env").write_text("PASSWORD=x")
    return top


def send(client: Client, place: Path, name: str = "") -> tuple[UploadShown, UploadTally]:
    tally = UploadTally()
    return drive(upload_steps(plan_upload([place], name), tally), client.do), tally


def content(serving: Serving, client: Client, name: str) -> dict[str, str]:
    """What the service has, by path, as checksums."""
    area = serving.home / "uploads"
    return {
        file.path: hashlib.sha256((area / file.id[:2] / file.id).read_bytes()).hexdigest()
        for file in client.do(uploads.upload(name)).items
        if file.whole
    }


def checksums(folder: Path, *paths: str) -> dict[str, str]:
    return {path: hashlib.sha256((folder / path).read_bytes()).hexdigest() for path in paths}


def test_a_folder_is_data_of_a_session_as_it_was(serving: Serving, client: Client, folder: Path) -> None:
    shown, _ = send(client, folder)
    assert {file.path for file in shown.items} == {"a.txt", "deep/big.bin", "empty", "go.sh", "link"}
    session = client.run(
        run=["sh", "-c", "in/go.sh; cat in/a.txt; wc -c <in/deep/big.bin; sha256sum in/deep/big.bin >sum.txt"],
        data=[{"location": "upload:forcing/", "path": "in", "writable": True}],
        time="1m",
        timeout=60,
    )
    assert "".join(session.logs()).split() == ["it", "runs", "hello", str(20 * MIB)]
    assert session.result("sum.txt").text().split()[0] == checksums(folder, "deep/big.bin")["deep/big.bin"]
    one = client.run(
        run=["cat", "b.txt"],
        data=[{"location": "upload:forcing/a.txt", "path": "b.txt", "writable": True}],
        time="1m",
        timeout=60,
    )
    assert "".join(one.logs()) == "hello\n"


def test_only_what_changed_is_sent_again(serving: Serving, client: Client, folder: Path) -> None:
    send(client, folder, "twice")
    (folder / "a.txt").write_text("changed\n")
    _, tally = send(client, folder, "twice")
    assert (tally.sent, tally.skipped) == (len("changed\n") * 2, 3)  # the link is what it leads to
    assert content(serving, client, "twice")["a.txt"] == checksums(folder, "a.txt")["a.txt"]


def test_an_upload_that_was_cut_in_the_middle_goes_on_there(client: Client, serving: Serving, folder: Path) -> None:
    pieces = 0

    def cut(call: Any) -> Any:
        nonlocal pieces
        pieces += call.method == "PATCH"
        if pieces:
            raise KeyboardInterrupt
        return client.do(call)

    plan = plan_upload([folder / "deep" / "big.bin"], "cut")
    with pytest.raises(KeyboardInterrupt):
        drive(upload_steps(plan, UploadTally()), cut)
    [half] = client.do(uploads.upload("cut")).items
    assert (half.whole, half.offset) == (False, 8 * MIB)
    tally = UploadTally()
    drive(upload_steps(plan, tally), client.do)
    assert tally.sent == 12 * MIB
    assert content(serving, client, "cut") == checksums(folder / "deep", "big.bin")


@pytest.mark.parametrize("place", UPLOAD_POINTS)
def test_a_service_that_dies_in_the_middle_loses_and_doubles_nothing(
    serving: Serving, client: Client, folder: Path, place: str
) -> None:
    serving.stop()
    serving.start(SUBLET_CRASH_AT=place)
    name = place.replace(".", "-")
    died = threading.Event()

    def do(call: Any) -> Any:
        try:
            return client.do(call)
        except ServiceUnreachable:
            if not died.is_set():
                died.set()
                serving.died()
                serving.start()
            raise

    plan, tally = plan_upload([folder], name), UploadTally()
    shown = drive(upload_steps(plan, tally), do)
    assert died.is_set()
    assert all(file.whole for file in shown.items if file.path != "a.txt")
    drive(upload_steps(plan, UploadTally()), client.do)
    paths = ("a.txt", "deep/big.bin", "empty", "go.sh", "link")
    assert content(serving, client, name) == checksums(folder, *paths)
    whole = [file.path for file in client.do(uploads.upload(name)).items if file.whole]
    assert sorted(whole) == sorted(paths)


def test_links_that_lead_out_and_what_is_no_file_are_refused(client: Client, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    (folder / "out").symlink_to(tmp_path / "secret")
    with pytest.raises(BadRequest, match="leads elsewhere"):
        plan_upload([folder])
    (folder / "out").unlink()
    os.mkfifo(folder / "pipe")
    with pytest.raises(BadRequest, match="not a file or folder"):
        plan_upload([folder])
    (folder / "pipe").unlink()
    (folder / "new\nline").touch()
    with pytest.raises(BadRequest, match="control characters"):
        plan_upload([folder])


def test_a_session_whose_upload_was_removed_says_so(client: Client, folder: Path, tmp_path: Path) -> None:
    send(client, folder, "gone")
    gate = tmp_path / "gate"
    wait = ["sh", "-c", f"until [ -e {gate} ]; do sleep 0.1; done"]
    first = client.run(run=wait, time="1m", wait=False)
    waiting = client.run(run=["true"], after=[first.id], data=["upload:gone/a.txt"], time="1m", wait=False)
    client.do(uploads.remove("gone", force=True))
    with pytest.raises(NotFound):
        client.do(uploads.upload("gone"))
    gate.touch()
    assert waiting.wait(60).phase == "FAILED"
    assert waiting.end
    assert waiting.end.kind == "staging-failed"
    assert "the upload was removed, or its keep time was over" in waiting.end.detail


@pytest.fixture(scope="module")
def stock(serving: Serving, client: Client) -> tus.TusClient:
    """tus' own client, over TCP, with a token of a person's."""
    headers = {"Authorization": f"Bearer {client.do(new_token()).token}"}
    return tus.TusClient(f"http://127.0.0.1:{PORT}/v1/tus", headers=headers)


def test_tus_own_client_sends_and_resumes(serving: Serving, client: Client, stock: tus.TusClient, folder: Path) -> None:
    metadata = {"filename": "big.bin", "upload": "stock", "path": "deep/big.bin"}
    half = stock.uploader(str(folder / "deep" / "big.bin"), chunk_size=3 * MIB, metadata=metadata, upload_checksum=True)
    half.upload(stop_at=9 * MIB)
    assert [file.offset for file in client.do(uploads.upload("stock")).items] == [9 * MIB]
    rest = stock.uploader(str(folder / "deep" / "big.bin"), url=half.url, chunk_size=5 * MIB)
    assert rest.offset == 9 * MIB
    rest.upload()
    assert content(serving, client, "stock") == checksums(folder, "deep/big.bin")
    with pytest.raises(TusCommunicationError):
        stock.uploader(file_stream=io.BytesIO(b"x"), metadata={"filename": "../up"}).upload()


def test_a_service_on_another_machine_is_sent_what_a_command_names(
    client: Client, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    (folder / "sim.py").write_text("print(open('a.txt').read(), open('deep/x').read())\n")
    (folder / "deep" / "x").write_text("deep")
    (folder / "deep" / "big.bin").unlink()
    token = client.do(new_token()).token
    far = Client(f"http://127.0.0.1:{PORT}", token)
    session = far.run(run=["python3", "sim.py"], data=["a.txt", "deep"], time="1m", timeout=60)
    assert "".join(session.logs()) == "hello\n deep\n"
    whole = far.run(run=["cat", "deep/x"], workdir=".", time="1m", timeout=60)
    assert "".join(whole.logs()) == "deep"
    assert far.upload("a.txt", "deep", name="both").address == "upload:both/"
    assert {file.path for file in client.do(uploads.upload("both")).items} == {"a.txt", "deep/x"}
    monkeypatch.setenv("SUBLET_URL", f"http://127.0.0.1:{PORT}")
    monkeypatch.setenv("SUBLET_TOKEN", token)
    assert run_command(["run", "-t", "1m", "--data", "a.txt", "--", "cat", "a.txt"]) == 0
    assert capfd.readouterr().out == "hello\n"


async def upload_without_waiting(token: str, place: Path) -> str:
    async with AsyncClient(f"http://127.0.0.1:{PORT}", token) as far:
        return (await far.upload(place, name="async")).address


def test_the_async_client_sends_a_folder(serving: Serving, client: Client, folder: Path) -> None:
    assert asyncio.run(upload_without_waiting(client.do(new_token()).token, folder)) == "upload:async/"
    assert content(serving, client, "async")["a.txt"] == checksums(folder, "a.txt")["a.txt"]
