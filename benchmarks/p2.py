"""P2: from a request to offers that are held durably, over HTTP, beside a bare FastAPI POST with one SQLite commit."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.row import Row
from benchmarks.size import WHOLE, Size

NAME = "request → offers held durably, over HTTP, one process"

CONNECTIONS = 16
SECONDS = 4.0  # of each run
ROUNDS = 3  # bare and Sublet take turns, so that a slow moment of the machine hits both
PATIENCE = 60.0
NODES = 1024


def request_document() -> dict[str, Any]:
    """A container for an hour, some time next week: several offers are made and held."""
    day = (datetime.now(UTC) + timedelta(days=3)).strftime("%Y-%m-%dT09:00:00Z")
    kinds = "https://www.purl.org/ivoa.net/Calycopis-openapi/schema/v1.0/kinds"
    return {
        "executable": {
            "kind": f"{kinds}/executable/docker-container.yaml",
            "meta": {"name": "bench"},
            "image": {"locations": ["registry.example.org/tool:1"], "digest": f"sha256:{'0' * 64}"},
            "command": ["10", "0"],
        },
        "compute": {
            "kind": f"{kinds}/compute/simple-compute-resource.yaml",
            "cores": {"min": 1, "max": 2},
            "memory": {"min": 1, "max": 2},
        },
        "schedule": {"requested": {"start": f"{day}/PT3H", "duration": "PT1H"}},
    }


@dataclass(frozen=True)
class Load:
    """What a run of requests came to."""

    rate: float  # answers a second
    p99: float  # seconds
    size: int  # bytes of an answer's body


def bare(directory: str, listener: socket.socket) -> None:
    """A FastAPI POST that does one durable commit, and nothing else."""
    import uvicorn
    from fastapi import FastAPI

    database = sqlite3.connect(f"{directory}/bare.db", isolation_level=None)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("PRAGMA synchronous=FULL")
    database.execute("CREATE TABLE asked (id INTEGER PRIMARY KEY, document TEXT)")
    app = FastAPI()

    @app.post("/requests")
    async def post(document: dict[str, Any]) -> dict[str, int]:
        done = database.execute("INSERT INTO asked (document) VALUES (?)", (json.dumps(document),))
        return {"id": done.lastrowid or 0}

    uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="off")).run([listener])


@contextmanager
def bare_server(directory: str) -> Iterator[tuple[int, str]]:
    """The bare thing, in a process of its own."""
    with socket.socket(proto=socket.IPPROTO_TCP) as listener:  # so that asyncio sets TCP_NODELAY
        listener.bind(("127.0.0.1", 0))
        listener.listen(1024)
        process = multiprocessing.get_context("spawn").Process(target=bare, args=(directory, listener), daemon=True)
        process.start()
        try:
            yield listener.getsockname()[1], ""
        finally:
            process.terminate()
            process.join(10)


@contextmanager
def sublet_server(directory: str) -> Iterator[tuple[int, str]]:
    """Sublet as it is shipped, with the memory platform, in a process of its own."""
    home = Path(directory) / "home"
    home.mkdir(mode=0o700)
    (home / "sublet.toml").write_text(
        f'[platforms.memory]\nkind = "memory"\nnodes = {NODES}\ncores = 64\nmemory = "256GiB"\n'
    )
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from sublet.server.server import run; from sublet.kernel.serving import *; run(ServeOptions())",
        ],
        env={**os.environ, "SUBLET_HOME": str(home)},
        stderr=subprocess.DEVNULL,
    )
    try:
        yield _wait(home, process), _token(home)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)


def _wait(home: Path, process: subprocess.Popen[bytes]) -> int:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(OSError, ValueError):
            return int(json.loads((home / "run" / "service.json").read_text())["url"].rpartition(":")[2])
        time.sleep(0.05)
    raise RuntimeError("the service did not start")


def _token(home: Path) -> str:
    with socket.socket(socket.AF_UNIX) as caller:
        caller.connect(str(home / "run" / "sublet.sock"))
        caller.sendall(
            b"POST /v1/tokens HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
            b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
        )
        said = b"".join(iter(lambda: caller.recv(65536), b""))
    token: str = json.loads(said.partition(b"\r\n\r\n")[2])["token"]
    return token


def load(port: int, token: str, seconds: float) -> Load:
    """Ask over several keep-alive connections, from a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_load, (port, token, request_document(), seconds))


def _load(port: int, token: str, document: dict[str, Any], seconds: float) -> Load:
    return asyncio.run(_ask_for(port, token, json.dumps(document).encode(), seconds))


async def _ask_for(port: int, token: str, body: bytes, seconds: float) -> Load:
    head = f"POST /requests HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
    head += f"Authorization: Bearer {token}\r\n" if token else ""
    message = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    times: list[float] = []
    sizes: set[int] = set()
    begin = time.perf_counter()

    async def one() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while not times or time.perf_counter() - begin < seconds:  # once at least, however busy the machine is
            sent = time.perf_counter()
            writer.write(message)
            status, size = await _answer(reader)
            if status not in (200, 303):
                raise RuntimeError(f"answered {status}")
            times.append(time.perf_counter() - sent)
            sizes.add(size)
        writer.close()

    await asyncio.gather(*(one() for _ in range(CONNECTIONS)))
    took = time.perf_counter() - begin
    times.sort()
    return Load(len(times) / took, times[int(len(times) * 0.99)], max(sizes))


async def _answer(reader: asyncio.StreamReader) -> tuple[int, int]:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
    await reader.readexactly(length)
    return int(head.split(None, 2)[1]), length


def run(size: Size = WHOLE) -> list[Row]:
    """Both sides in turns; the goal is a quarter of the bare rate, and a p99 under ten times the bare one."""
    directory = tempfile.mkdtemp(prefix="sublet-p2-")
    seconds, rounds = max(SECONDS * size.share, 0.3), size.of(ROUNDS)
    try:
        with bare_server(directory) as plain, sublet_server(directory) as sublet:
            for side in (plain, sublet):
                load(*side, seconds=seconds / 4)  # warm
            pairs = [(load(*plain, seconds=seconds), load(*sublet, seconds=seconds)) for _ in range(rounds)]
    finally:
        shutil.rmtree(directory)
    pairs.sort(key=lambda pair: pair[1].rate / pair[0].rate)
    anchor, ours = pairs[len(pairs) // 2]  # the middle one
    ratio, late = ours.rate / anchor.rate, ours.p99 / anchor.p99
    return [
        Row("bare POST + commit", f"{anchor.rate:.0f}/s, p99 {anchor.p99 * 1000:.1f} ms"),
        Row("offer sets", f"{ours.rate:.0f}/s, p99 {ours.p99 * 1000:.1f} ms, {ours.size} bytes each"),
        Row("offer sets ÷ bare", f"{ratio:.2f}", "≥ 0.25", ratio >= 0.25),
        Row("p99 ÷ bare p99", f"{late:.1f}", "< 10", late < 10),
    ]
