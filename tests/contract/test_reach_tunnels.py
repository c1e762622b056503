"""A tunnel leads through a shared login to a server behind it, and is made anew after the next login."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sublet.kernel.errors import LoginNeeded, PlatformRefused
from sublet.reach.local import LocalReach
from sublet.reach.login import Login
from sublet.reach.prompts import nobody
from sublet.reach.ssh import SshReach
from tests.ports import free_port
from tests.sshd import SSHD, Sshd, sshd

pytestmark = pytest.mark.anyio


@pytest.fixture
async def login(far_server: Sshd, tmp_path: Path) -> AsyncIterator[Login]:
    made = Login("127.0.0.1", control=tmp_path, platform="far", port=far_server.port, options=far_server.options)
    await made.open(nobody)
    yield made
    await made.close()


@pytest.fixture
async def port() -> AsyncIterator[int]:
    """A server that answers whatever is said with what it heard."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"heard " + await reader.read(1000))
        await writer.drain()
        writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield listener.sockets[0].getsockname()[1]
    listener.close()


async def answer(location: str) -> bytes:
    reader, writer = await asyncio.open_unix_connection(location.removeprefix("unix:"))
    writer.write(b"hello")
    said = await reader.read()
    writer.close()
    return said


async def test_a_tunnel_is_made_once_for_its_owner_alone_and_taken_away(login: Login, port: int) -> None:
    location = await login.reach.tunnel("session", "127.0.0.1", port)
    assert await answer(location) == b"heard hello"
    path = location.removeprefix("unix:")
    made = os.stat(path)
    assert made.st_mode & 0o777 == 0o600
    assert await login.reach.tunnel("session", "127.0.0.1", port) == location
    later = SshReach(login.target)
    assert await later.tunnel("session", "127.0.0.1", port) == location, "a later service uses it too"
    assert os.stat(path).st_ino == made.st_ino
    await later.untunnel("session")
    assert not [name for name in os.listdir(os.path.dirname(path)) if name.endswith((".way", ".end"))]
    assert await login.reach.tunnel("session", "127.0.0.1", port) == location
    assert await answer(location) == b"heard hello"


async def test_without_a_login_there_is_none_and_after_the_next_one_it_is_made_anew(login: Login, port: int) -> None:
    location = await login.reach.tunnel("session", "127.0.0.1", port)
    await login.close()
    with pytest.raises(LoginNeeded):
        await login.reach.tunnel("session", "127.0.0.1", port)
    await login.open(nobody)
    assert await login.reach.tunnel("session", "127.0.0.1", port) == location
    assert await answer(location) == b"heard hello"


async def test_a_way_that_leads_nowhere_is_told_and_leaves_nothing(login: Login) -> None:
    with pytest.raises(PlatformRefused, match="lets nothing through to"):
        await login.reach.tunnel("session", "127.0.0.1", free_port())
    assert not list(login.target.socket.parent.glob("*.way")) + list(login.target.socket.parent.glob("*.end"))


async def test_a_centre_that_forbids_tunnels_is_told(tmp_path: Path, port: int) -> None:
    if SSHD is None:
        pytest.skip("sshd is not on this machine")
    with sshd(tmp_path / "sshd", AllowTcpForwarding="no") as strict:
        login = Login("127.0.0.1", control=tmp_path / "c", platform="far", port=strict.port, options=strict.options)
        await login.open(nobody)
        with pytest.raises(PlatformRefused, match="lets nothing through"):
            await login.reach.tunnel("session", "127.0.0.1", port)
        await login.close()


@pytest.mark.parametrize(("host", "port"), [("-oProxyCommand=x", 1), ("a:b", 1), ("a b", 1), ("", 1), ("c1", 0)])
async def test_what_is_no_address_is_refused(login: Login, host: str, port: int) -> None:
    with pytest.raises(PlatformRefused, match="no address"):
        await login.reach.tunnel("session", host, port)


async def test_from_this_machine_no_tunnel_is_needed() -> None:
    assert await LocalReach("here").tunnel("session", "c1", 20000) == "http://c1:20000"
