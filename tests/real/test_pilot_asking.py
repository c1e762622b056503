"""How a node asks the service: by curl, wget or openssl, whichever it has, and only a service with the right key."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sublet.annexes.pilots.certificate import certificate
from sublet.kernel.errors import PilotRefused
from sublet.kinds.pilot import assign_variables, script
from sublet.server.connections import Connections
from sublet.server.listening import PilotListener, Reception
from sublet.service import Service

pytestmark = pytest.mark.anyio
COREUTILS = ("cat", "cut", "head", "printf", "rm", "sed", "tail", "timeout", "tr", "wc", "sh")
ASK = '. ./values; . ./ask.sh; ask "$1" said answer; code=$?; printf "%s\\n" "$words"; exit "$code"'
ANSWER = bytes(range(256)) * 1000  # not text: as a tar
RECEPTION = Reception(Connections(50, 50))


class Answering:
    """Stands for the service: gives everything to who says the word."""

    def __init__(self) -> None:
        self.told: list[Mapping[str, str]] = []

    async def claim_pilot(self, lease: str, number: int, told: Mapping[str, str]) -> bytes:
        self.told.append(told)
        if told.get("token") != "right":
            raise PilotRefused(why="This is not the word.")
        return ANSWER

    async def renew_pilot(self, lease: str, number: int, told: Mapping[str, str]) -> bytes:
        return b""


class Node:
    """A node with one client only."""

    def __init__(self, place: Path, client: str, values: Mapping[str, object]) -> None:
        self.place = place
        self.bin = place / "bin"
        self.bin.mkdir(parents=True)
        for tool in (*COREUTILS, client):
            (self.bin / tool).symlink_to(shutil.which(tool) or f"/nonexistent/{tool}")
        (place / "values").write_bytes(assign_variables(values))
        (place / "ask.sh").write_bytes(script("ask"))

    async def asks(self, path: str, **said: str) -> tuple[int, str, bytes]:
        """The exit code, the words and the answer."""
        (self.place / "said").write_bytes("".join(f"{name}={value}\n" for name, value in said.items()).encode())
        words = [shutil.which("dash") or "sh", "-c", ASK, "sh", path]
        done = await asyncio.to_thread(
            subprocess.run, words, cwd=self.place, env={"PATH": str(self.bin)}, capture_output=True, text=True
        )
        answer = self.place / "answer"
        return done.returncode, done.stdout.strip(), answer.read_bytes() if answer.exists() else b""


@asynccontextmanager
async def listening(home: Path) -> AsyncIterator[tuple[Answering, dict[str, Any]]]:
    service, made = Answering(), certificate(home)
    listener = PilotListener(cast(Service, SimpleNamespace(annexes=SimpleNamespace(pilots=service))), RECEPTION)
    port = await listener.open("127.0.0.1", 0, made.key, made.file)
    try:
        yield service, {"urls": f"https://127.0.0.1:{port}", "pin": made.pin}
    finally:
        await listener.close()


@pytest.mark.parametrize("client", ["curl", "wget", "openssl"])
async def test_a_node_asks_with_whatever_it_has(client: str, tmp_path: Path) -> None:
    if not shutil.which(client):
        pytest.skip(f"not on this machine: {client}")
    async with listening(tmp_path / "home") as (service, values):
        node = Node(tmp_path / "node", client, values)
        code, _, answer = await node.asks("/pilots/l/0/claim", token="right", node="c1")
        assert (code, answer) == (0, ANSWER)
        assert service.told[-1] == {"token": "right", "node": "c1"}
        code, _, answer = await node.asks("/pilots/l/0/renew", secret="x")
        assert (code, answer) == (0, b"")
        code, words, _ = await node.asks("/pilots/l/0/claim", token="wrong")
        assert (code, words) == (2, "This is not the word.")
        code, _, _ = await node.asks("/elsewhere")
        assert code == 2
        other = Node(tmp_path / "other", client, values | {"pin": "A" * 43 + "="})
        heard = len(service.told)
        code, words, _ = await other.asks("/pilots/l/0/claim", token="right")
        assert code == 1
        assert words
        assert len(service.told) == heard  # who has another key is told nothing
    code, words, _ = await node.asks("/pilots/l/0/claim", token="right")
    assert code == 1
    assert values["urls"] in words


async def test_a_renewed_certificate_has_the_same_key_and_is_used_at_once(tmp_path: Path) -> None:
    first = certificate(tmp_path)
    listener = PilotListener(cast(Service, Answering()), RECEPTION)
    port = await listener.open("127.0.0.1", 0, first.key, first.file)
    try:
        old = first.file.read_bytes()
        first.file.unlink()
        second = certificate(tmp_path)
        assert second.pin == first.pin
        assert second.file.read_bytes() != old
        assert await listener.open("127.0.0.1", 0, second.key, second.file) == port
        shown = await asyncio.to_thread(
            subprocess.run,
            ["openssl", "s_client", "-connect", f"127.0.0.1:{port}"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
        )
        assert second.file.read_bytes().strip() in shown.stdout
    finally:
        await listener.close()
    assert (tmp_path / "key.pem").stat().st_mode & 0o777 == 0o600
