"""Many clients at once, each on a connection of its own: what one does, round after round, and how long it waited."""

from __future__ import annotations

import asyncio
import itertools
import json
import multiprocessing
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

LOOKS = 6  # at its session, in each round


@dataclass(frozen=True)
class Served:
    """What clients saw."""

    rate: float  # answers a second
    middle: float  # seconds that half of them waited at most
    p99: float
    failures: int
    rounds: int  # in which a session was accepted
    refusal: str  # the first answer that was neither 200 nor 201, or nothing


@dataclass
class _Clients:
    """What they all know, and what they saw."""

    ports: Sequence[int]
    document: bytes
    until: float
    looks: int
    waits: list[float] = field(default_factory=list)
    failures: int = 0
    rounds: int = 0
    refusal: str = ""


def serve_clients(
    ports: Sequence[int], tokens: Sequence[str], document: Any, count: int, seconds: float, looks: int = LOOKS
) -> Served:
    """So many clients for so long, from a process of its own; they share the ports and the tokens among them.

    Without `looks` they ask and accept, and look at nothing. Each takes the next token in each round, so that few fast
    clients don't ask more often than one person may.
    """
    said = tuple(ports), json.dumps(document).encode(), seconds, looks
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_run, (said, tuple(tokens), count))


def _run(said: tuple[Sequence[int], bytes, float, int], tokens: Sequence[str], count: int) -> Served:
    return asyncio.run(_serve(said, tokens, count))


async def _serve(said: tuple[Sequence[int], bytes, float, int], tokens: Sequence[str], count: int) -> Served:
    began = time.perf_counter()
    ports, document, seconds, looks = said
    clients = _Clients(ports, document, began + seconds, looks)
    await asyncio.gather(*(_live(clients, number, _rotate(tokens, number)) for number in range(count)))
    took = time.perf_counter() - began
    waits = sorted(clients.waits)
    middle, p99 = waits[len(waits) // 2], waits[int(len(waits) * 0.99)]
    return Served(len(waits) / took, middle, p99, clients.failures, clients.rounds, clients.refusal)


def _rotate(tokens: Sequence[str], number: int) -> Iterator[str]:
    """The tokens in turn, for ever, beginning with that of the client's number."""
    return itertools.islice(itertools.cycle(tokens), number % len(tokens), None)


async def _live(clients: _Clients, number: int, tokens: Iterator[str]) -> None:
    """One client: it asks, accepts, looks at its session again and again, and at its lists."""
    port = clients.ports[number % len(clients.ports)]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    token = next(tokens)

    async def do(method: str, path: str, body: bytes = b"") -> Any:
        who = f"Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
        head = f"{method} {path} HTTP/1.1\r\n{who}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        sent = time.perf_counter()
        writer.write(head.encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = int(answer.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        content = await reader.readexactly(length)
        clients.waits.append(time.perf_counter() - sent)
        if answer.split(None, 2)[1] not in (b"200", b"201"):
            clients.failures += 1
            clients.refusal = clients.refusal or content.decode()
            return None
        return json.loads(content)

    first = True
    while first or time.perf_counter() < clients.until:  # once at least, however busy the machine is
        first = False
        offers = await do("POST", "/v1/offersets", clients.document)
        if offers:
            path = f"/v1/sessions/{offers['offers'][0]['id']}"
            accepted = await do("POST", f"{path}/accept")
            clients.rounds += accepted is not None
            for _ in range(clients.looks):
                await do("GET", path)
        if clients.looks:
            await do("GET", "/v1/sessions?limit=20")
            await do("GET", "/v1/events?limit=20")
        token = next(tokens)
    writer.close()
