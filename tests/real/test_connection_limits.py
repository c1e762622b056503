"""Whoever reaches the TCP port without a token can't stop a service: not by silence, half a request or numbers."""

from __future__ import annotations

import json
import os
import re
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from sublet.client import Client
from sublet.people.calls import people
from tests.serving import PATIENCE, Serving, eventually

MOST = 40
WHOLE = b"GET /health HTTP/1.1\r\nHost: sublet\r\nConnection: close\r\n\r\n"
HALF_HEAD = b"GET /health HTTP/1.1\r\nHost: sub"
HALF_BODY = (
    "POST /requests HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nConnection: close\r\n"
    "Content-Type: application/json\r\nContent-Length: 99\r\n\r\n["
)
SETTINGS = f"""
[connections]
most = {MOST}
request_timeout = "1s"

[platforms.memory]
kind = "memory"
"""


class Crowd:
    """People at the TCP port, who keep what they opened."""

    def __init__(self, stack: ExitStack, home: Path) -> None:
        self._stack = stack
        url = json.loads((home / "run" / "service.json").read_text())["url"]
        self.address = ("127.0.0.1", int(url.rpartition(":")[2]))

    def come(self, said: bytes = b"") -> socket.socket:
        """One more, who says this and then nothing."""
        one = self._stack.enter_context(socket.create_connection(self.address, timeout=PATIENCE))
        one.sendall(said)
        return one

    def ask(self) -> bytes:
        """What somebody is answered who asks properly."""
        return read_all(self.come(WHOLE))


def read_all(one: socket.socket) -> bytes:
    """All that comes to its end."""
    pieces = []
    try:
        while piece := one.recv(65536):
            pieces.append(piece)
    except ConnectionResetError:
        pass
    return b"".join(pieces)


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    home = tmp_path_factory.mktemp("doors") / "home"
    home.mkdir(mode=0o700)
    (home / "sublet.toml").write_text(SETTINGS)
    serving = Serving(home)
    serving.start()
    yield serving
    serving.stop()


@pytest.fixture
def crowd(serving: Serving) -> Iterator[Crowd]:
    with ExitStack() as stack:
        yield Crowd(stack, serving.home)


@pytest.fixture(scope="module")
def secret(serving: Serving) -> str:
    """A token of the owner's."""
    return Client(socket=serving.socket).do(people.new_token()).token


def count_sockets(serving: Serving) -> int:
    """Those that are open; connections to the database are files, and are opened when they are first needed."""
    assert serving.process
    links = Path(f"/proc/{serving.process.pid}/fd").iterdir()
    return sum(os.path.realpath(link).rpartition("/")[2].startswith("socket:") for link in links)


def test_many_silent_connections_keep_nobody_out(serving: Serving, crowd: Crowd) -> None:
    before = count_sockets(serving)
    log = len(serving.log())
    for _ in range(5 * MOST):
        crowd.come()
    assert Client(socket=serving.socket).health().status == "ok"
    assert crowd.ask().startswith(b"HTTP/1.1 200 ")
    eventually(lambda: count_sockets(serving) <= before + MOST + 5, "that only so many are open")
    assert len(serving.log()) - log < 20_000


def test_half_a_request_is_answered_and_closed_when_its_time_is_over(
    serving: Serving, crowd: Crowd, secret: str
) -> None:
    before = count_sockets(serving)
    said = [b"", HALF_HEAD, HALF_BODY.format(secret).encode(), HALF_BODY.format("wrong").encode()]
    silent, *answers = map(read_all, [crowd.come(half) for half in said])
    assert silent == b""
    assert [answer[:13] for answer in answers] == [b"HTTP/1.1 408 ", b"HTTP/1.1 408 ", b"HTTP/1.1 401 "]
    assert b"urn:sublet:problem:request-too-slow" in answers[0]
    eventually(lambda: count_sockets(serving) <= before, "that all are closed")
    assert "Traceback" not in serving.log()


def test_a_request_that_drips_is_cut_off_though_something_comes_all_the_time(crowd: Crowd) -> None:
    dripping = crowd.come(HALF_HEAD)
    dripping.settimeout(0.05)
    deadline = time.monotonic() + PATIENCE
    while True:
        assert time.monotonic() < deadline
        try:
            dripping.sendall(b"x")
            answer = dripping.recv(1000)
        except TimeoutError:
            continue
        except (ConnectionResetError, BrokenPipeError):
            break
        assert answer == b"" or answer.startswith(b"HTTP/1.1 408 ")
        break


def test_the_owner_is_served_while_every_place_is_taken(serving: Serving, crowd: Crowd, secret: str) -> None:
    head = f"GET /v1/events HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nAuthorization: Bearer {secret}\r\n\r\n"
    streams = [crowd.come(head.encode()) for _ in range(MOST)]
    for stream in streams:
        assert stream.recv(1000).startswith(b"HTTP/1.1 200 ")
    refused = crowd.ask()
    assert not refused or b"urn:sublet:problem:too-many-connections" in refused
    assert Client(socket=serving.socket).health().status == "ok"
    streams[0].close()
    eventually(lambda: crowd.ask().startswith(b"HTTP/1.1 200 "), "that a place which came free is given again")
    assert re.search(r'"connections.full"', serving.log())


@pytest.fixture
def scarce(tmp_path: Path) -> Iterator[tuple[Client, Path, Path]]:
    """A service that may have 64 descriptors, and was given 48 of them by a shell."""
    home, log = tmp_path / "home", tmp_path / "log"
    home.mkdir(mode=0o700)
    (home / "sublet.toml").write_text('[platforms.here]\nkind = "local"\ncores = 2\n')
    words = ["sh", "-c", 'ulimit -Sn 48; ulimit -Hn 64; exec "$@"', "sh", sys.executable, "-m", "sublet", "serve"]
    environment = {**os.environ, "SUBLET_HOME": str(home), "SUBLET_ANYWAY": "1"}
    with log.open("wb") as file:
        process = subprocess.Popen([*words, "--anyway"], env=environment, stdout=file, stderr=file)
    try:
        client = Client(socket=home / "run" / "sublet.sock")
        eventually(lambda: process.poll() is not None or (home / "run" / "service.json").exists(), "its start", 60)
        assert process.poll() is None, log.read_text()
        assert resource.prlimit(process.pid, resource.RLIMIT_NOFILE) == (64, 64)
        yield client, home, log
    finally:
        process.terminate()
        process.wait(PATIENCE)


def test_sessions_run_in_a_service_with_few_descriptors_among_silent_strangers(
    scarce: tuple[Client, Path, Path],
) -> None:
    client, home, log = scarce
    with ExitStack() as stack:
        crowd = Crowd(stack, home)
        for _ in range(200):
            crowd.come()
        sessions = [client.ask(run=["sh", "-c", "ulimit -Sn"], cores=1, time="1m")[0].accept() for _ in range(6)]
        for session in sessions:
            assert session.wait(timeout=120).phase == "COMPLETED", session.explain()
            assert "".join(session.logs()).strip() == "48", "a job has the limit that the service was started with"
        assert client.health().status == "ok"
    assert log.stat().st_size < 100_000
