"""A shell and JupyterLab are really started: their secret is asked for, and what is typed is run."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from sublet.booking.model.request import Executable
from sublet.kinds.interactive import INTERACTIVE
from tests.ports import free_port
from tests.real.programs import Place
from tests.real.visits import answers, get, wait_for

SECRET = {"Authorization": "token s3cret"}


@contextmanager
def started(place: Place, interface: str, **tools: str) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """An interactive session that listens."""
    executable = Executable("interactive", fields={"interface": interface})
    program = place.program(INTERACTIVE, executable, tools, secret="s3cret", base_url="/connect/x/")
    assert "s3cret" not in " ".join(program.argv)
    assert not any(b"s3cret" in content for content in program.files.values())
    port = free_port()
    with place.start(program, SUBLET_PORT=str(port), SHELL="/bin/sh") as process:
        try:
            wait_for(lambda: answers(port) or process.poll() is not None, 60)
            yield port, process
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=30)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def attach(port: int, **options: Any) -> ClientConnection:
    return connect(f"ws://127.0.0.1:{port}/connect/x/ws", proxy=None, **options)


def read_until(web: ClientConnection, wanted: bytes) -> bytes:
    seen = b""
    while wanted not in seen:
        message = web.recv(timeout=20)
        assert isinstance(message, bytes)
        seen += message
    return seen


def test_the_page_of_a_shell_is_for_who_brings_the_secret(place: Place) -> None:
    with started(place, "shell") as (port, _):
        assert get(port, "/connect/x/")[0] == 403
        assert get(port, "/connect/x/?token=wrong")[0] == 403
        status, headers, _ = get(port, "/connect/x/?token=s3cret")
        assert (status, headers["Location"]) == (303, "/connect/x/")
        status, _, page = get(port, "/connect/x/", {"Cookie": headers["Set-Cookie"].split(";")[0]})
        assert status == 200
        assert b"<title>Shell</title>" in page
        assert get(port, "/etc/passwd", SECRET)[0] == 404
        with pytest.raises(InvalidStatus):
            attach(port)


def test_what_is_typed_is_run_in_the_working_directory(place: Place) -> None:
    with started(place, "shell") as (port, _), attach(port, additional_headers=SECRET) as web:
        web.send(b"pwd; env; echo sum $((40 + 2))\n")
        seen = read_until(web, b"sum 42")
        assert str(place.work).encode() in seen
        assert b"TERM=dumb" in seen
        assert b"s3cret" not in seen


def test_a_shell_is_hung_up_also_where_nohup_started_all(place: Place) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with started(place, "shell") as (port, process), attach(port, additional_headers=SECRET) as web:
            web.send(b"echo he''re\n")
            read_until(web, b"here")
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 128 + signal.SIGHUP
    finally:
        signal.signal(signal.SIGHUP, before)


def test_who_comes_back_finds_the_same_shell_and_what_it_printed(place: Place) -> None:
    with started(place, "shell") as (port, _):
        with attach(port, additional_headers=SECRET) as web:
            web.send(b"kept=here; echo first\n")
            read_until(web, b"first\r\n")
        with attach(port, additional_headers=SECRET) as web:
            read_until(web, b"first\r\n")
            web.send(json.dumps({"rows": 33, "cols": 99}))
            web.send(b"echo $kept; stty size\n")
            read_until(web, b"33 99")


def test_a_long_output_arrives_whole(place: Place) -> None:
    with started(place, "shell") as (port, _), attach(port, additional_headers=SECRET, max_size=None) as web:
        web.send(b"yes 0123456789 | head -n 20000 | tr -d '\\n' | wc -c; yes | head -n 50000; echo en''d\n")
        seen = read_until(web, b"end\r\n")
        assert b"200000" in seen
        assert seen.count(b"y\r\n") == 50000


def test_who_leaves_the_shell_ends_the_session_well_whatever_the_last_command_said(place: Place) -> None:
    with started(place, "shell") as (port, process):
        with attach(port, additional_headers=SECRET) as web:
            web.send(b"exit 7\n")
            with pytest.raises(ConnectionClosed):
                read_until(web, b"never printed")
        process.wait(20)
    assert process.returncode == 0


def test_a_foreign_page_with_the_cookie_is_turned_away(place: Place) -> None:
    with started(place, "shell") as (port, _):
        cookie = get(port, "/connect/x/?token=s3cret")[1]["Set-Cookie"].split(";")[0]
        with pytest.raises(InvalidStatus):
            attach(port, additional_headers={"Cookie": cookie}, origin="http://evil.example")
        with attach(port, additional_headers={"Cookie": cookie}, origin=f"http://127.0.0.1:{port}") as web:
            web.send(b"echo we''lcome\n")
            read_until(web, b"welcome")


def test_jupyterlab_serves_the_working_directory_under_its_path_to_who_has_the_secret(place: Place) -> None:
    lab = shutil.which("jupyter-lab", path=str(Path(sys.executable).parent))
    if lab is None:
        pytest.skip("JupyterLab is not installed")
    (place.work / "mine.txt").write_text("mine")
    with started(place, "lab", **{"jupyter-lab": lab}) as (port, _):
        assert get(port, "/connect/x/api/contents")[0] == 403
        assert get(port, "/connect/x/lab")[0] == 302
        status, _, body = get(port, "/connect/x/api/contents", SECRET)
        assert status == 200
        assert "mine.txt" in [item["name"] for item in json.loads(body)["content"]]
        assert get(port, "/connect/x/lab", SECRET)[0] == 200
        assert get(port, "/lab", SECRET)[0] == 404
