"""A hundred brokers in one process, each on a port of its own: they answer after a while, never, or not at all.

`python -m benchmarks.brokers COUNT SLOWEST SILENT OFFERS [CLOCK]` prints their ports and serves until its input ends.
They are written on sockets alone, so that what is measured beside them has the processor.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import formatdate
from pathlib import Path
from uuid import uuid4

from benchmarks.moved_clock import read_clock

KINDS = "https://www.purl.org/ivoa.net/Calycopis-openapi/schema/v1.0/kinds"
KIND = f"{KINDS}/session/scheduled-execution-session.yaml"
SILENT = 1_000_000.0  # seconds
HELD, HOUR = 300, 3600  # seconds
OFFER = (
    '{"kind":"%s","meta":{"uuid":"%s","modified":"%s"},"phase":"%s","expires":"%s","schedule":{"available":'
    '{"start":"%s/PT10M","duration":"PT2H"}},"compute":{"cores":{"min":1},"memory":{"min":1}}}'
)
WORDS = {200: b"OK", 204: b"No Content", 404: b"Not Found"}


@contextmanager
def start_brokers(
    count: int, slowest: float, silent: int = 0, offers: int = 2, clock: Path | None = None
) -> Iterator[list[str]]:
    """The addresses of brokers of which the last answers after `slowest` seconds; some never do."""
    words = [sys.executable, "-m", "benchmarks.brokers", str(count), str(slowest), str(silent), str(offers)]
    words += [str(clock)] if clock else []
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("the brokers have no input and output")
        try:
            yield [f"http://127.0.0.1:{port}" for port in json.loads(process.stdout.readline())]
        finally:
            process.stdin.close()
            process.wait(20)


class PlayedSessions:
    """What all of these brokers have offered and what was accepted: a session runs for its time, and is completed."""

    def __init__(self, offers: int, now: Callable[[], float]) -> None:
        """Nothing was asked yet; each answer has so many offers."""
        self._offers, self._now = offers, now
        self._offered: dict[str, float] = {}  # session → when it expires; the oldest first
        self._accepted: dict[str, tuple[float, float]] = {}  # session → when, and when it ends
        self._count = 0

    def offer(self) -> str:
        """An offer set."""
        now = self._now()
        while self._offered and (first := next(iter(self._offered))) and self._offered[first] <= now:
            del self._offered[first]
        ids = [str(uuid4()) for _ in range(self._offers)]
        self._offered |= dict.fromkeys(ids, now + HELD)
        offers = [self._write(id, "OFFERED", now, now + hours * HOUR) for hours, id in enumerate(ids)]
        return f'{{"meta":{{"uuid":"{uuid4()}"}},"result":"YES","offers":[{",".join(offers)}]}}'

    def look(self, id: str) -> str | None:
        """One session; None if there is none."""
        now = self._now()
        if id in self._accepted:
            began, ends = self._accepted[id]
            return self._write(id, "RUNNING" if now < ends else "COMPLETED", min(now, ends), began)
        return self._write(id, "OFFERED", now, now) if self._offered.get(id, 0) > now else None

    def move(self, id: str, phase: str) -> str | None:
        """Accept an offer, or reject or cancel it."""
        offered = self._offered.pop(id, None)
        if offered and phase == "ACCEPTED":
            self._count += 1
            now = self._now()
            self._accepted[id] = now, now + (0.5, 1, 2, 1.5)[self._count % 4] * HOUR
        elif phase != "ACCEPTED":
            self._accepted.pop(id, None)
        return self.look(id)

    def remove(self, id: str) -> None:
        """Forget one."""
        self._accepted.pop(id, None)

    def _write(self, id: str, phase: str, modified: float, start: float) -> str:
        expires = self._now() + HELD
        return OFFER % (KIND, id, write_time(modified), phase, write_time(expires), write_time(start))


def write_time(seconds: float) -> str:
    """As 2026-11-18T04:00:00Z."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class PlayedBroker(asyncio.Protocol):
    """One connection to one of these brokers; each request is answered before the next is read."""

    def __init__(self, delay: float, sessions: PlayedSessions, now: Callable[[], float]) -> None:
        """It answers requests after this delay, and everything else at once."""
        self._delay, self._sessions, self._now = delay, sessions, now
        self._data = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Someone has come."""
        self._transport = transport if isinstance(transport, asyncio.Transport) else None

    def data_received(self, data: bytes) -> None:
        """Answer if a request is there as a whole."""
        self._data += data
        head, end, body = self._data.partition(b"\r\n\r\n")
        if not end:
            return
        length = head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0].strip()
        if len(body) < int(length or 0):
            return
        self._data = b""
        method, path, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
        if path == "/requests":
            asyncio.get_running_loop().call_later(self._delay, lambda: self._send(200, self._sessions.offer()))
        else:
            self._send(*self._answer(method, path, body))

    def _answer(self, method: str, path: str, body: bytes) -> tuple[int, str]:
        folder, _, id = path.rpartition("/")
        if method == "DELETE":
            self._sessions.remove(id)
            return 204, ""
        if folder != "/sessions":
            return 404, "{}"
        known = self._sessions.move(id, json.loads(body)["value"]) if method == "POST" else self._sessions.look(id)
        return (200, known) if known else (404, "{}")

    def _send(self, status: int, document: str) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        date = formatdate(self._now(), usegmt=True)
        head = "content-type: application/json\r\nsublet-version: 0.1.0"
        lines = f"HTTP/1.1 {status} {WORDS[status].decode()}\r\ndate: {date}\r\n{head}\r\n"
        length = "" if status == 204 else f"content-length: {len(document)}\r\n"
        self._transport.write(f"{lines}{length}\r\n{document}".encode())


async def serve(count: int, slowest: float, silent: int, offers: int, clock: Path | None) -> None:
    """Serve until the input ends."""
    now = read_clock(clock) if clock else time.time
    sessions, loop = PlayedSessions(offers, now), asyncio.get_running_loop()
    delays = [SILENT if number < silent else slowest * (number + 1) / count for number in range(count)]

    async def listen(delay: float) -> asyncio.Server:
        return await loop.create_server(lambda: PlayedBroker(delay, sessions, now), "127.0.0.1", 0)

    servers = [await listen(delay) for delay in delays]
    print(json.dumps([server.sockets[0].getsockname()[1] for server in servers]), flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    given = Path(sys.argv[5]) if len(sys.argv) > 5 else None
    asyncio.run(serve(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), given))
