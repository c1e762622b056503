"""A server that answers as Skaha does, written from its public description and what its own client reads.

Headless sessions are real processes here, so that logs and ends are not invented. No CANFAR stands behind it.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

from tests.threads import serving

TOKEN = "token-of-skaha-9d8e7f"
CONTEXT = {
    "cores": {"default": 2, "defaultRequest": 1, "defaultLimit": 8, "options": [1, 2, 4, 8, 16]},
    "memoryGB": {"default": 4, "defaultRequest": 2, "defaultLimit": 32, "options": [1, 2, 4, 8, 32]},
    "gpus": {"options": [0, 1, 2]},
    "maxInteractiveSessions": 3,
}
IMAGES = {
    "images.canfar.net/skaha/terminal:1.1.2": ["headless"],
    "images.canfar.net/skaha/astroml:24.07": ["notebook", "headless"],
}
LIFE = timedelta(days=4)


@dataclass
class Launched:
    """A session."""

    id: str
    given: dict[str, list[str]]
    process: subprocess.Popen[bytes] | None = None
    log: bytes = b""
    renewals: int = 0
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    is_pending: bool = False

    def first(self, name: str, default: str = "") -> str:
        return self.given.get(name, [default])[0]

    @property
    def status(self) -> str:
        if self.is_pending:
            return "Pending"
        code = self.process.poll() if self.process else None
        return "Running" if code is None else "Failed" if code else "Succeeded"

    def describe(self) -> dict[str, object]:
        """As the API tells of it."""
        expiry = self.started + LIFE * (1 + self.renewals)
        about = {"id": self.id, "userid": "marie", "name": self.first("name"), "image": self.first("image")}
        about |= {"type": self.first("type"), "status": self.status, "appid": "<none>", "runAsUID": "1000"}
        about |= {"startTime": f"{self.started:%Y-%m-%dT%H:%M:%SZ}", "expiryTime": f"{expiry:%Y-%m-%dT%H:%M:%SZ}"}
        about |= {"requestedCPUCores": self.first("cores", "2"), "requestedRAM": f"{self.first('ram', '4')}G"}
        url = f"https://ws-uv.canfar.net/session/notebook/{self.id}/lab/tree/arc/home/marie?token={self.id}"
        return {**about, "connectURL": url if self.first("type") != "headless" else "not-applicable"}


class SkahaServer:
    """The sessions of one person."""

    def __init__(self) -> None:
        self.sessions: dict[str, Launched] = {}
        self.calls: list[str] = []
        self.lock = threading.Lock()
        self.loses_answer = False  # launch, and break off before the id is told
        self.keeps_pending = False

    def launch(self, given: dict[str, list[str]]) -> str | None:
        """Start one; None if its image isn't there."""
        session = Launched(uuid4().hex[:8], given, is_pending=self.keeps_pending)
        if session.first("image") not in IMAGES:
            return None
        if session.first("type") == "headless" and not session.is_pending:
            words = [*shlex.split(session.first("cmd", "true")), *session.first("args").split()]
            variables = dict(pair.split("=", 1) for pair in given.get("env", ()))
            session.process = subprocess.Popen(
                words, env={"PATH": "/usr/bin:/bin", **variables}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
            threading.Thread(target=self._read, args=(session,), daemon=True).start()
        self.sessions[session.id] = session
        return session.id

    def _read(self, session: Launched) -> None:
        assert session.process
        assert session.process.stdout
        while piece := session.process.stdout.read1(4096):  # type: ignore[attr-defined]
            session.log += piece
        session.process.wait()
        session.process.stdout.close()

    def remove(self, id: str) -> bool:
        """Stop and forget one."""
        session = self.sessions.pop(id, None)
        if session and session.process and session.process.poll() is None:
            session.process.kill()
        return session is not None


class Handler(BaseHTTPRequestHandler):
    """Answers below /skaha/v1."""

    skaha: SkahaServer

    def answer(self, status: int, body: bytes = b"", type: str = "text/plain") -> None:
        self.send_response(status)
        self.send_header("Content-Type", type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def tell(self, value: object) -> None:
        self.answer(200, json.dumps(value).encode(), "application/json")

    def handle_call(self) -> None:
        place = urlsplit(self.path)
        query = parse_qs(place.query)
        length = int(self.headers.get("Content-Length") or 0)
        if length:
            self.rfile.read(length)
        with self.skaha.lock:
            self.skaha.calls.append(
                f"{self.command} {place.path.removeprefix('/skaha/v1/')} {'&'.join(sorted(query))}".strip()
            )
            if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                self.answer(401, b"not authenticated")
                return
            self.route(place.path.removeprefix("/skaha/v1/").split("/"), query)

    def route(self, parts: list[str], query: dict[str, list[str]]) -> None:
        match self.command, parts:
            case "GET", ["context"]:
                self.tell(CONTEXT)
            case "GET", ["image"]:
                kind = query.get("type", [""])[0]
                digest = f"sha256:{'0' * 64}"
                self.tell(
                    [
                        {"id": id, "types": types, "digest": digest}
                        for id, types in IMAGES.items()
                        if not kind or kind in types
                    ]
                )
            case "GET", ["session"]:
                kind = query.get("type", [""])[0]
                listed = [session.describe() for session in self.skaha.sessions.values()]
                self.tell([each for each in listed if not kind or each["type"] == kind])
            case "POST", ["session"]:
                self.launch(query)
            case _, ["session", id] if id not in self.skaha.sessions:
                self.answer(404, f"session {id} not found".encode())
            case "GET", ["session", id]:
                self.show(self.skaha.sessions[id], query.get("view", [""])[0])
            case "POST", ["session", id]:
                self.skaha.sessions[id].renewals += 1
                self.answer(200)
            case "DELETE", ["session", id]:
                self.skaha.remove(id)
                self.answer(200)
            case _:
                self.answer(404, b"not found")

    def launch(self, query: dict[str, list[str]]) -> None:
        id = self.skaha.launch(query)
        if id is None:
            self.answer(400, f"image not found or not labelled: {query.get('image', [''])[0]}".encode())
        elif self.skaha.loses_answer:
            self.skaha.loses_answer = False
            self.close_connection = True
            self.connection.close()
        else:
            self.answer(200, f"{id}\n".encode())

    def show(self, session: Launched, view: str) -> None:
        if view == "logs":
            self.answer(200, session.log)
        elif view == "events":
            self.answer(
                200, b"TYPE     REASON             MESSAGE\nWarning  FailedScheduling   0/9 nodes: insufficient cpu\n"
            )
        else:
            self.tell(session.describe())

    do_GET = do_POST = do_DELETE = handle_call  # noqa: N815 - as the library calls them

    def log_message(self, format: str, *args: object) -> None:
        """Nobody reads it."""


@contextmanager
def serve_skaha() -> Iterator[tuple[SkahaServer, str]]:
    """A server, and its address with the version."""
    skaha = SkahaServer()
    handler = type("Bound", (Handler,), {"skaha": skaha})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    try:
        with serving(server):
            yield skaha, f"http://127.0.0.1:{server.server_port}/skaha/v1"
    finally:
        for id in list(skaha.sessions):
            skaha.remove(id)
