"""Web applications are really started, on the machine and in images: their secret is asked for, and they answer."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from sublet.booking.model.request import Executable
from sublet.kinds.interactive import INTERACTIVE
from tests.ports import free_port
from tests.real.programs import Place
from tests.real.visits import answers, get, wait_for

SECRET = {"Authorization": "token s3cret"}
BASE = "/connect/x/"
SERVE = """import http.server, sys
http.server.test(http.server.SimpleHTTPRequestHandler, port=int(sys.argv[1]), bind="127.0.0.1")"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@contextmanager
def started(
    place: Place, fields: dict[str, Any], tools: dict[str, str] | None = None, **environment: str
) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """A web application that listens, or has ended."""
    executable = Executable("interactive", fields=fields)
    program = place.program(INTERACTIVE, executable, tools or {}, secret="s3cret", base_url=BASE)
    assert not any(b"s3cret" in content for content in program.files.values())
    port = free_port()
    with place.start(program, SUBLET_PORT=str(port), TMPDIR=str(place.directory), **environment) as process:
        try:
            wait_for(lambda: answers(port) or process.poll() is not None, 60)
            yield port, process
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=30)


def test_an_application_of_ones_own_is_behind_the_door_on_a_port_that_it_is_told(place: Place) -> None:
    (place.work / "mine.txt").write_text("mine")
    fields = {"interface": "web", "command": [sys.executable, "-c", SERVE, "{port}"]}
    with started(place, fields) as (port, _):
        assert get(port, f"{BASE}mine.txt")[0] == 403
        status, headers, _ = get(port, f"{BASE}?token=s3cret")
        assert (status, headers["Location"]) == (303, BASE)
        cookie = {"Cookie": headers["Set-Cookie"].split(";")[0]}
        assert get(port, f"{BASE}mine.txt", cookie)[::2] == (200, b"mine")
        assert b"s3cret" not in get(port, f"{BASE}.sublet/web.json", SECRET)[2]


def test_an_application_ends_the_session_as_it_ends_itself(place: Place) -> None:
    with started(place, {"interface": "web", "command": ["/bin/sh", "-c", "exit 7"]}) as (_, process):
        assert process.wait(20) == 7


@pytest.mark.parametrize("command", [["/bin/sh", "-c", "sleep 60"], ["no-such-program"]])
def test_a_port_that_is_taken_and_a_program_that_is_not_there_are_told(place: Place, command: list[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        fields = {"interface": "web", "command": command, "port": other.getsockname()[1]}
        if command[0] == "no-such-program":
            del fields["port"]
        with started(place, fields) as (_, process):
            assert process.wait(20) == 125
        kind, why = (place.directory / "unstarted").read_text().splitlines()
        assert kind == "not-started"
        assert "is taken" in json.loads(why) or "No such file" in json.loads(why)


def need_desktop() -> dict[str, str]:
    server = shutil.which("Xvnc")
    if server is None or not Path("/usr/share/novnc/vnc.html").exists() or shutil.which("xterm") is None:
        pytest.skip("TigerVNC, noVNC or xterm is not installed: no desktop was started")
    return {"Xvnc": server}


def speak_vnc(port: int, **options: Any) -> tuple[int, int]:
    """Shake hands with a VNC server, as noVNC does; the size of its screen."""
    with connect(f"ws://127.0.0.1:{port}{BASE}websockify", proxy=None, subprotocols=["binary"], **options) as web:
        buffer = b""

        def take(size: int) -> bytes:
            nonlocal buffer
            while len(buffer) < size:
                buffer += web.recv(timeout=20)  # type: ignore[operator]
            taken, buffer = buffer[:size], buffer[size:]
            return taken

        assert take(12) == b"RFB 003.008\n"
        web.send(b"RFB 003.008\n")
        assert take(take(1)[0]) == b"\x01", "it asks for no password of its own"
        web.send(b"\x01")
        assert take(4) == b"\0\0\0\0"
        web.send(b"\x01")
        head = take(24)
        return int.from_bytes(head[:2], "big"), int.from_bytes(head[2:4], "big")


def test_a_desktop_is_shown_by_novnc_to_who_has_the_secret_and_to_no_other_user(place: Place) -> None:
    tools = need_desktop()
    with started(place, {"interface": "desktop"}, tools, SUBLET_GEOMETRY="640x480") as (port, process):
        assert process.poll() is None, process.communicate()
        _, headers, _ = get(port, f"{BASE}?token=s3cret")
        assert headers["Location"].startswith(f"{BASE}vnc.html?")
        assert b"noVNC" in get(port, headers["Location"], SECRET)[2]
        assert get(port, f"{BASE}core/rfb.js", SECRET)[1]["Content-Type"].startswith("text/javascript")
        assert get(port, f"{BASE}core/rfb.js")[0] == 403
        assert get(port, f"{BASE}../../../../etc/passwd", SECRET)[0] == 404
        assert get(port, f"{BASE}%2e%2e/Xauthority", SECRET)[0] == 404
        assert speak_vnc(port, additional_headers=SECRET) == (640, 480)
        with pytest.raises(InvalidStatus):
            speak_vnc(port)
        assert (place.directory / "app.sock").stat().st_mode & 0o077 == 0
        display = f":{(place.work / '.sublet' / 'display').read_text().strip()}"
        ask = ["xlsclients", "-display", display]
        if shutil.which(ask[0]):
            assert subprocess.run(ask, capture_output=True, env={"PATH": "/usr/bin"}, check=False).returncode != 0
