"""A hundred brokers in one process, each on a port of its own: they answer after a while, never, or not at all.

`python -m benchmarks.brokers COUNT SLOWEST` prints their ports and serves until its input ends.
"""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

KINDS = "https://www.purl.org/ivoa.net/Calycopis-openapi/schema/v1.0/kinds"
SILENT = 1_000_000.0  # seconds


@contextmanager
def start_brokers(count: int, slowest: float, silent: int = 0) -> Iterator[list[str]]:
    """The addresses of brokers of which the last answers after `slowest` seconds; some never do."""
    words = [sys.executable, "-m", "benchmarks.brokers", str(count), str(slowest), str(silent)]
    quiet = subprocess.DEVNULL  # that one never answers is told when it ends
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=quiet, text=True) as process:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("the brokers have no input and output")
        try:
            yield [f"http://127.0.0.1:{port}" for port in json.loads(process.stdout.readline())]
        finally:
            process.stdin.close()
            process.wait(20)


class PlainBrokers:
    """All of them, as one application: the port says which is asked."""

    def __init__(self, delays: dict[int, float]) -> None:
        """Each answers after its own delay."""
        self.delays = delays
        self.sessions: dict[str, dict[str, Any]] = {}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """A request, a look, or a move."""
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        status, document = await self._answer(scope, body)
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(document).encode()})

    async def _answer(self, scope: Any, body: bytes) -> tuple[int, dict[str, Any]]:
        path, port = scope["path"], scope["server"][1]
        if path == "/requests":
            await asyncio.sleep(self.delays[port])
            return 200, self._offer()
        session = self.sessions.get(path.rpartition("/")[2])
        if session is None:
            return 404, {}
        if scope["method"] == "POST":
            session["phase"] = json.loads(body)["value"]
        return 200, session

    def _offer(self) -> dict[str, Any]:
        now = datetime.now(UTC)
        offers = []
        for hours in (1, 2):
            start = (now + timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")
            id = str(uuid4())
            self.sessions[id] = {
                "kind": f"{KINDS}/session/scheduled-execution-session.yaml",
                "meta": {"uuid": id},
                "phase": "OFFERED",
                "expires": (now + timedelta(minutes=5)).strftime("%Y-%m-%dT%H:%M:%SZ"),
                "schedule": {"available": {"start": f"{start}/PT10M", "duration": "PT2H"}},
                "compute": {"cores": {"min": 1}, "memory": {"min": 1}},
            }
            offers.append(self.sessions[id])
        return {"meta": {"uuid": str(uuid4())}, "result": "YES", "offers": offers}


async def serve(count: int, slowest: float, silent: int) -> None:
    """Serve until the input ends."""
    import uvicorn

    sockets = []
    for _ in range(count):
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        listener.listen(128)
        sockets.append(listener)
    ports = [listener.getsockname()[1] for listener in sockets]
    delays = {port: slowest * (number + 1) / count for number, port in enumerate(ports)}
    delays |= dict.fromkeys(ports[:silent], SILENT)
    config = uvicorn.Config(PlainBrokers(delays), lifespan="off", log_config=None, timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve(sockets))
    print(json.dumps(ports), flush=True)
    await asyncio.to_thread(sys.stdin.read)
    server.should_exit = True
    await task


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])))
