"""The server as a process: its sockets, its lock, its streams, its end."""

from __future__ import annotations

import gc
import json
import signal
import socket
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from sublet.server.server import spare_collector
from tests.nursery import begin
from tests.serving import Serving

PLAYED = ("--platform", "memory")
PATIENCE = 60.0


@dataclass
class Live:
    """A service that runs."""

    serving: Serving

    @property
    def home(self) -> Path:
        return self.serving.home

    @property
    def socket(self) -> Path:
        return self.serving.socket

    @property
    def port(self) -> int:
        return int(json.loads((self.home / "run" / "service.json").read_text())["url"].rpartition(":")[2])


class ByUnixSocket(HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=PATIENCE)
        self.path = str(path)

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE)
        self.sock.connect(self.path)


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    serving = Serving(tmp_path_factory.mktemp("live") / "home", *PLAYED)
    serving.start()
    try:
        yield Live(serving)
    finally:
        serving.stop()


def call(connection: HTTPConnection, method: str, path: str, body: object = None, **headers: str) -> tuple[int, Any]:
    sent = None if body is None else json.dumps(body)
    connection.request(method, path, sent, {"content-type": "application/json", **headers})
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def test_the_sockets_owner_is_the_person_and_tcp_needs_a_token(live: Live) -> None:
    owner, tcp = ByUnixSocket(live.socket), HTTPConnection("127.0.0.1", live.port, timeout=PATIENCE)
    status, who = call(owner, "GET", "/v1/whoami")
    assert (status, who["operator"]) == (200, True)
    assert call(tcp, "GET", "/v1/whoami")[0] == 401
    _, made = call(owner, "POST", "/v1/tokens", {})
    bearer = {"authorization": f"Bearer {made['token']}"}
    assert call(tcp, "GET", "/v1/whoami", **bearer)[1]["person"] == who["person"]
    _, offers = call(owner, "POST", "/v1/offersets", {"run": ["true"], "time": "1m"})
    assert offers["page"].startswith(f"http://127.0.0.1:{live.port}/web/")


def test_only_the_owner_can_open_the_socket(live: Live) -> None:
    assert stat.S_IMODE(live.socket.stat().st_mode) == 0o600
    assert stat.S_IMODE(live.socket.parent.stat().st_mode) == 0o700


def test_a_second_service_on_the_same_home_is_refused(live: Live, tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as log:
        second = begin(["serve", *PLAYED], live.serving.environment, log)
    assert second.wait(PATIENCE) == 1
    assert "another one already serves" in (tmp_path / "log").read_text()
    assert call(ByUnixSocket(live.socket), "GET", "/health")[0] == 200


def test_events_come_as_they_happen_and_a_broken_stream_goes_on_where_it_was(live: Live) -> None:
    _, offers = call(ByUnixSocket(live.socket), "POST", "/v1/offersets", {"run": ["true"], "time": "1m"})
    session = offers["offers"][0]["id"]
    stream = ByUnixSocket(live.socket)
    stream.request("GET", f"/v1/events?session={session}", headers={"accept": "text/event-stream"})
    answer = stream.getresponse()
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.readline().startswith(b":")
    call(ByUnixSocket(live.socket), "POST", f"/v1/sessions/{session}/accept")
    seen = list(read_events(answer, until="COMPLETED"))
    assert seen[0]["phase"] == "ACCEPTED"
    again = ByUnixSocket(live.socket)
    headers = {"accept": "text/event-stream", "last-event-id": str(seen[0]["id"])}
    again.request("GET", f"/v1/events?session={session}", headers=headers)
    assert list(read_events(again.getresponse(), until="COMPLETED")) == seen[1:]


def read_events(answer: Any, until: str) -> Iterator[dict[str, Any]]:
    while line := answer.readline():
        if line.startswith(b"data: "):
            event = json.loads(line[6:])
            yield event
            if event["phase"] == until:
                return


def test_followed_output_ends_with_the_session(live: Live) -> None:
    _, offers = call(ByUnixSocket(live.socket), "POST", "/v1/offersets", {"run": ["true"], "time": "1m"})
    session = offers["offers"][0]["id"]
    call(ByUnixSocket(live.socket), "POST", f"/v1/sessions/{session}/accept")
    stream = ByUnixSocket(live.socket)
    stream.request("GET", f"/v1/sessions/{session}/logs?follow=true")
    printed = stream.getresponse().read()
    whole = ByUnixSocket(live.socket)
    whole.request("GET", f"/v1/sessions/{session}/logs")
    assert printed == whole.getresponse().read()
    assert call(ByUnixSocket(live.socket), "GET", f"/v1/sessions/{session}")[1]["phase"] == "COMPLETED"


def test_a_document_of_ten_megabytes_is_not_read_to_its_end(live: Live) -> None:
    with socket.create_connection(("127.0.0.1", live.port), timeout=PATIENCE) as caller:
        token = call(ByUnixSocket(live.socket), "POST", "/v1/tokens", {})[1]["token"]
        head = f"POST /requests HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nTransfer-Encoding: chunked\r\n"
        caller.sendall(f"{head}Content-Type: application/yaml\r\n\r\n".encode())
        sent = 0
        try:
            for _ in range(160):
                caller.sendall(b"10000\r\n" + b"#" * 65536 + b"\r\n")
                sent += 65536
        except OSError:
            pass  # it has hung up
        assert b"413" in caller.recv(65536).split(b"\r\n")[0]
    assert call(ByUnixSocket(live.socket), "GET", "/health")[0] == 200


def test_a_terminated_service_ends_well_with_streams_open_and_the_next_one_takes_over(live: Live) -> None:
    stream = ByUnixSocket(live.socket)
    stream.request("GET", "/v1/events", headers={"accept": "text/event-stream"})
    assert stream.getresponse().readline()
    _, offers = call(ByUnixSocket(live.socket), "POST", "/v1/offersets", {"run": ["true"], "time": "1m"})
    assert live.serving.process
    live.serving.process.send_signal(signal.SIGTERM)
    assert live.serving.died() == 0
    assert not live.socket.exists()
    assert not (live.home / "run" / "service.json").exists()
    live.serving.start()
    status, accepted = call(ByUnixSocket(live.socket), "POST", f"/v1/sessions/{offers['offers'][0]['id']}/accept")
    assert (status, accepted["phase"]) == (200, "ACCEPTED")


def test_the_collector_looks_no_more_at_what_is_there_from_the_start() -> None:
    before = gc.get_threshold()
    try:
        spare_collector()
        assert gc.get_freeze_count() > 10_000
        assert len(gc.get_objects()) < 1000
        assert gc.get_threshold()[0] > before[0]
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
