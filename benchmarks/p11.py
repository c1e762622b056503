"""P11: five hundred clients on one gateway, beside a bare FastAPI service of the same mix; what idle streams cost."""

from __future__ import annotations

import contextlib
import http.client
import json
import multiprocessing
import os
import selectors
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.clients import Served, serve_clients
from benchmarks.p2 import request_document
from benchmarks.row import Row
from benchmarks.size import WHOLE, Size

NAME = "many clients at once: each asks, accepts, looks at its session six times, at its list and at its events"

CLIENTS, PEOPLE = 500, 50
LOAD = 40.0  # seconds of each turn: in a short one, the first asks of all clients at once are much of what is measured
SECONDS = 8.0  # of the other runs
ROUNDS = 3  # bare and Sublet take turns, so that a slow moment of the machine hits both
STREAMS, STREAM_SECONDS = 2000, 20.0
SETTLING = 12.0  # seconds in which the service returns what it freed, twice
WARM, SESSIONS = 4000, 6000  # run to their end, to see whether memory grows: 10,000 in all
SLOWEST = 200  # sessions a second, guessed until it was measured
PATIENCE = 60.0
CORES_FOR_TWO = 4  # two services, their database and the clients need as many
START = "from sublet.server.server import run; from sublet.kernel.serving import *; run(ServeOptions())"
PLATFORM = '[platforms.memory]\nkind = "memory"\nnodes = 1024\ncores = 64\nmemory = "256GiB"\ntakes = "0s"\n'


def bare(directory: str, listener: socket.socket) -> None:
    """A FastAPI service with the same addresses, which stores and shows documents, and nothing else."""
    import uvicorn
    from fastapi import FastAPI

    database = sqlite3.connect(f"{directory}/bare.db", isolation_level=None)
    for words in ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL"):
        database.execute(words)
    database.execute("CREATE TABLE sessions (number INTEGER PRIMARY KEY, id TEXT UNIQUE, phase TEXT, document TEXT)")
    app = FastAPI()

    @app.post("/v1/offersets", status_code=201)
    async def ask(document: dict[str, Any]) -> dict[str, Any]:
        id = str(uuid.uuid4())
        database.execute(
            "INSERT INTO sessions (id, phase, document) VALUES (?, 'OFFERED', ?)", (id, json.dumps(document))
        )
        return {"offers": [{"id": id, "document": document}]}

    @app.post("/v1/sessions/{id}/accept")
    async def accept(id: str) -> dict[str, Any]:
        database.execute("UPDATE sessions SET phase = 'ACCEPTED' WHERE id = ?", (id,))
        return await session(id)

    @app.get("/v1/sessions/{id}")
    async def session(id: str) -> dict[str, Any]:
        found = database.execute("SELECT id, phase, document FROM sessions WHERE id = ?", (id,)).fetchone()
        return {"id": found[0], "phase": found[1], "document": json.loads(found[2])}

    @app.get("/v1/sessions")
    async def sessions(limit: int) -> list[dict[str, Any]]:
        rows = database.execute("SELECT id, phase, document FROM sessions ORDER BY number DESC LIMIT ?", (limit,))
        return [{"id": row[0], "phase": row[1], "document": json.loads(row[2])} for row in rows]

    @app.get("/v1/events")
    async def events(limit: int) -> list[dict[str, Any]]:
        rows = database.execute("SELECT number, id, phase FROM sessions ORDER BY number LIMIT ?", (limit,))
        return [{"number": row[0], "session": row[1], "phase": row[2]} for row in rows]

    @app.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="off")).run([listener])


@contextlib.contextmanager
def bare_server(directory: str) -> Iterator[int]:
    """The bare thing, in a process of its own."""
    with socket.socket(proto=socket.IPPROTO_TCP) as listener:  # so that asyncio sets TCP_NODELAY
        listener.bind(("127.0.0.1", 0))
        listener.listen(2048)
        process = multiprocessing.get_context("spawn").Process(target=bare, args=(directory, listener), daemon=True)
        process.start()
        try:
            yield listener.getsockname()[1]
        finally:
            process.terminate()
            process.join(10)


@dataclass
class Gateway:
    """A gateway in a process of its own, as it is shipped."""

    home: Path
    database: str = ""
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def __enter__(self) -> Gateway:
        """Start it and wait until it listens."""
        self.home.mkdir(mode=0o700)
        where = f'database = "{self.database}"\n' if self.database else ""
        (self.home / "sublet.toml").write_text(f'mode = "gateway"\nmost_held = 100000\nkeep = "1s"\n{where}{PLATFORM}')
        environment = {**os.environ, "SUBLET_HOME": str(self.home)}
        with (self.home / "log").open("wb") as log:
            self.process = subprocess.Popen([sys.executable, "-c", START], env=environment, stderr=log)
        deadline = time.monotonic() + PATIENCE
        while not (self.home / "run" / "service.json").exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the service did not start: {(self.home / 'log').read_text()}")
            time.sleep(0.05)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it."""
        if self.process:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(PATIENCE)

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(json.loads((self.home / "run" / "service.json").read_text())["url"].rpartition(":")[2])

    def post(self, path: str, **said: Any) -> Any:
        """Ask as its owner."""
        body = json.dumps(said).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n"
        with socket.socket(socket.AF_UNIX) as caller:
            caller.connect(str(self.home / "run" / "sublet.sock"))
            caller.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            answer = b"".join(iter(lambda: caller.recv(65536), b""))
        return json.loads(answer.partition(b"\r\n\r\n")[2])

    def let_in(self, people: int) -> list[str]:
        """Allow everyone the platform, and make a token for each of so many people."""
        self.post("/v1/rules", effect="allow", who="*", noun="system", name="*")
        return [self.post("/v1/tokens", person=f"p{number}@example.org")["token"] for number in range(people)]

    def count_cpu(self) -> float:
        """The seconds of processor that it has used."""
        assert self.process
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def count_memory(self) -> float:
        """The megabytes of memory that it has."""
        assert self.process
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


class Prober:
    """Asks for /health, as a monitor does, while others work."""

    def __init__(self, port: int) -> None:
        """Begin to ask."""
        self.waits: list[float] = []
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(port,), daemon=True)

    def _run(self, port: int) -> None:
        while not self._end.is_set():
            began = time.perf_counter()
            asked = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
            asked.request("GET", "/health")
            assert asked.getresponse().read()
            asked.close()
            self.waits.append(time.perf_counter() - began)
            self._end.wait(0.05)

    def __enter__(self) -> Prober:
        """While this lasts."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Ask no more."""
        self._end.set()
        self._thread.join(PATIENCE)

    @property
    def p99(self) -> float:
        """How long the slowest of a hundred took."""
        return sorted(self.waits)[int(len(self.waits) * 0.99)]


def load_rows(directory: Path, size: Size) -> list[Row]:
    """Both sides in turns; the goals are a part of the bare rate and a multiple of its slowest answers."""
    clients, seconds = size.of(CLIENTS, 8), max(LOAD * size.share, 0.3)
    document = request_document()
    pairs: list[tuple[Served, Served, float]] = []
    with bare_server(str(directory)) as port, Gateway(directory / "load") as gateway:
        tokens = gateway.let_in(size.of(PEOPLE, 2))
        for one in (port, gateway.port):
            serve_clients([one], tokens, document, max(1, clients // 10), seconds / 30)  # warm
        for _ in range(size.of(ROUNDS)):
            plain = serve_clients([port], tokens, document, clients, seconds)
            with Prober(gateway.port) as prober:
                ours = serve_clients([gateway.port], tokens, document, clients, seconds)
            pairs.append((plain, ours, prober.p99))
    pairs.sort(key=lambda pair: pair[1].rate / pair[0].rate)
    plain, ours, health = pairs[len(pairs) // 2]  # the middle one
    ratio, late = ours.rate / plain.rate, ours.p99 / plain.p99
    return [
        Row("clients", str(clients)),
        Row("bare service", _words(plain)),
        Row("gateway", _words(ours)),
        Row("requests that failed", str(ours.failures), "0", ours.failures == 0),
        Row("gateway ÷ bare", f"{ratio:.2f}", "≥ 0.4", ratio >= 0.4),
        Row("p99 ÷ bare p99", f"{late:.1f}", "≤ 5", late <= 5),
        Row(
            "/health meanwhile: p99 ÷ the middle wait of work",
            f"{health * 1000:.0f} ms, {health / ours.middle:.2f}",
            "≤ 1",
            health <= ours.middle,
        ),
    ]


def _words(served: Served) -> str:
    return f"{served.rate:.0f}/s, middle {served.middle * 1000:.0f} ms, p99 {served.p99 * 1000:.0f} ms"


def stream_rows(directory: Path, size: Size) -> list[Row]:
    """What event streams cost on which nothing happens."""
    count, seconds = size.of(STREAMS), max(STREAM_SECONDS * size.share, 0.5)
    with Gateway(directory / "streams") as gateway, contextlib.ExitStack() as stack:
        tokens = gateway.let_in(size.of(PEOPLE, 2))
        time.sleep(seconds / 10)
        alone = _cpu_share(gateway, seconds)
        before = gateway.count_memory()
        with selectors.DefaultSelector() as waiting:
            for number in range(count):
                waiting.register(stack.enter_context(_open_stream(gateway, tokens[number % len(tokens)])), 1)
            deadline = time.monotonic() + PATIENCE
            while waiting.get_map() and time.monotonic() < deadline:
                for key, _ in waiting.select(1):
                    waiting.unregister(key.fileobj)
        memory = (gateway.count_memory() - before) * 1000 / count
        share = max(0.0, _cpu_share(gateway, seconds) - alone)
    return [
        Row(f"{count:,} idle event streams: memory of each", f"{memory:.0f} kB"),
        Row(f"{count:,} idle event streams: of a core", f"{share:.1%}", "< 2%", share < 0.02),
    ]


def _open_stream(gateway: Gateway, token: str) -> socket.socket:
    stream = socket.create_connection(("127.0.0.1", gateway.port), timeout=PATIENCE)
    head = f"GET /v1/events HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nAuthorization: Bearer {token}\r\n\r\n"
    stream.sendall(head.encode())
    return stream


def _cpu_share(gateway: Gateway, seconds: float) -> float:
    before, began = gateway.count_cpu(), time.monotonic()
    time.sleep(seconds)
    return (gateway.count_cpu() - before) / (time.monotonic() - began)


def memory_rows(directory: Path, size: Size) -> list[Row]:
    """Whether memory grows with the sessions that were run."""
    with Gateway(directory / "memory") as gateway:
        tokens = gateway.let_in(size.of(PEOPLE, 2))  # one alone may not ask as often
        warm = _run_sessions(gateway, tokens, size.of(WARM, 20))
        before = _settle_memory(gateway, size)
        count = _run_sessions(gateway, tokens, size.of(SESSIONS, 20))
        after = _settle_memory(gateway, size)
    grown = (after - before) * 1000 / count
    return [
        Row(f"memory after {warm:,} sessions", f"{before:.0f} MB"),
        Row(f"after {count:,} more", f"{after:.0f} MB"),
        Row("growth per 1,000 sessions that ran", f"{grown:.2f} MB", "≤ 0.5 MB", grown <= 0.5),
    ]


def _settle_memory(gateway: Gateway, size: Size) -> float:
    """Return the least memory it has when all sessions are over: what is freed between two trims isn't growth."""
    _wait_until_over(gateway)
    deadline, readings = time.monotonic() + max(SETTLING * size.share, 0.2), [gateway.count_memory()]
    while time.monotonic() < deadline:
        time.sleep(0.1)
        readings.append(gateway.count_memory())
    return min(readings)


def _wait_until_over(gateway: Gateway) -> None:
    """Wait until all sessions have ended, and what they used was returned and removed."""
    deadline = time.monotonic() + PATIENCE * 2
    with contextlib.closing(sqlite3.connect(f"file:{gateway.home / 'sublet.db'}?mode=ro", uri=True)) as database:
        while left := database.execute("SELECT count(*) FROM sessions WHERE due IS NOT NULL").fetchone()[0]:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{left} sessions aren't over, so memory can't be judged")
            time.sleep(0.2)


def _run_sessions(gateway: Gateway, tokens: Sequence[str], count: int) -> int:
    """Have so many sessions or a few more run to their end, sixteen clients at a time; return how many ran."""
    document = request_document()
    del document["schedule"]["requested"]["start"]
    done, rate = 0, float(SLOWEST)
    while done < count:
        clients, seconds = min(16, count - done), min(count - done, count / 10) / rate
        served = serve_clients([gateway.port], tokens, document, clients, seconds, looks=0)
        if served.failures:
            raise RuntimeError(f"{served.failures} requests failed, so memory can't be judged: {served.refusal}")
        done, rate = done + served.rounds, max(rate, served.rounds / seconds)
    return done


def process_rows(directory: Path, size: Size) -> list[Row]:
    """One process and two of them, on one PostgreSQL."""
    from tests.postgres import running_postgres

    clients, seconds = size.of(CLIENTS // 5, 8), max(SECONDS * size.share, 0.3)
    cores = len(os.sched_getaffinity(0))
    rates = []
    with running_postgres() as server:
        if server is None:
            return [Row("two processes on PostgreSQL", "not measured: PostgreSQL isn't installed here")]
        for count in (1, 2):
            url = server.create()
            with contextlib.ExitStack() as stack:
                gateways = [stack.enter_context(Gateway(directory / f"of-{count}-{n}", url)) for n in range(count)]
                tokens = gateways[0].let_in(size.of(PEOPLE, 2))
                ports = [gateway.port for gateway in gateways]
                serve_clients(ports, tokens, request_document(), clients, seconds / 5)  # warm
                rates.append(serve_clients(ports, tokens, request_document(), clients, seconds).rate)
    ratio = rates[1] / rates[0]
    is_met = ratio >= 1.6 if cores >= CORES_FOR_TWO and size.is_whole else None
    return [
        Row("one process on PostgreSQL", f"{rates[0]:.0f}/s"),
        Row(f"two processes ÷ one, on {cores} cores", f"{ratio:.2f}", f"≥ 1.6 from {CORES_FOR_TWO} cores on", is_met),
    ]


def run(size: Size = WHOLE) -> list[Row]:
    """The load, the streams, the memory, and two processes; a small run leaves these out, which take long to start."""
    rows: list[Row] = []
    for part in (load_rows, stream_rows, memory_rows, *((process_rows,) if size.is_whole else ())):
        directory = Path(tempfile.mkdtemp(prefix="sublet-p11-"))
        try:
            rows += part(directory, size)
        finally:
            shutil.rmtree(directory, ignore_errors=True)
    return rows
