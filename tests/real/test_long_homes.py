"""All that makes a Unix socket below a home does so also where the home's path is longer than a socket's may be."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx2
import pytest

from sublet.client import AsyncClient
from sublet.kernel.short_paths import LONGEST_SOCKET, PLACES, PREFIX, fits
from sublet.platforms.local.platform import Local
from sublet.reach.agent import Agent
from sublet.reach.login import Login
from sublet.reach.port import Command, read_printed
from sublet.reach.prompts import Prompt, nobody
from sublet.reach.record import logins
from sublet.reach.ssh import SshReach
from tests.real.test_local_limits import LISTENS, Here, connected
from tests.serving import Serving, eventually
from tests.sshd import Sshd, make_key, needs_sshd, sshd

pytestmark = pytest.mark.anyio
LARGE = pytest.mark.engines
HELLO = Command(("echo", "hello"), read_printed)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A long one; no link to it is left."""
    place = tmp_path / ("which-nobody-would-type-by-hand-" * 4)
    place.mkdir(mode=0o700, parents=True)
    assert len(str(place)) >= 150 > LONGEST_SOCKET
    yield place
    for link in list_links(place):
        os.unlink(link)


def list_links(home: Path) -> list[str]:
    """The short paths that lead below it."""
    links = [str(link) for place in PLACES for link in Path(place).glob(f"{PREFIX}*")]
    return [link for link in links if os.path.islink(link) and os.readlink(link).startswith(f"{home}/")]


async def test_a_job_listens_on_its_socket_which_is_removed_with_it(home: Path) -> None:
    local = Local(name="here")
    await local.open(home)
    here = Here(local)
    state = await connected(here, await here.run("python3", "-c", LISTENS, connects="uri:shell"))
    assert state.connector
    path = state.connector.location.removeprefix("unix:")
    assert fits(path)
    assert list((home / "s").iterdir()) == [home / "s" / os.path.basename(path)]
    assert (home / "s").stat().st_mode & 0o077 == 0
    again = Local(name="here")
    await again.open(home)
    assert (await Here(again).state(here.keys[-1])).connector == state.connector
    await here.clean()
    assert list((home / "s").iterdir()) == []


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Sshd]:
    with sshd(tmp_path / "sshd") as started:
        yield started


@pytest.fixture
async def port() -> AsyncIterator[int]:
    """A server that answers."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"heard " + await reader.read(1000))
        await writer.drain()
        writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield listener.sockets[0].getsockname()[1]
    listener.close()


@needs_sshd
async def test_a_login_is_shared_asks_and_carries_tunnels_and_a_later_service_finds_it(
    home: Path, server: Sshd, port: int
) -> None:
    control, asked = home / "run" / "ssh", list[str]()
    (server.directory / "known_hosts").unlink()

    async def answer(prompt: Prompt) -> str:
        asked.append(prompt.text)
        return "yes"

    login = Login("127.0.0.1", control=control, platform="far", port=server.port, options=server.options)
    try:
        record = await login.open(answer)
        assert len(asked) == 1
        assert logins(control) == [record]
        later = SshReach(login.target)
        assert await later.run(HELLO) == "hello\n"
        location = await later.tunnel("session", "127.0.0.1", port)
        reader, writer = await asyncio.open_unix_connection(location.removeprefix("unix:"))
        writer.write(b"hello")
        assert await reader.read() == b"heard hello"
        writer.close()
        await later.untunnel("session")
    finally:
        await login.close()
    assert list(control.iterdir()) == []
    assert list_links(home) == []


@needs_sshd
async def test_a_login_that_is_not_shared_has_a_door_for_other_processes(home: Path, server: Sshd) -> None:
    control = home / "run" / "ssh"
    login = Login("127.0.0.1", control=control, platform="far", port=server.port, options=server.options, shared=False)
    async with login.once(nobody):
        assert await SshReach(login.target).run(HELLO) == "hello\n"


@needs_sshd
async def test_the_agent_of_an_account_listens(home: Path, tmp_path: Path) -> None:
    key = make_key(tmp_path / "key")
    agent = Agent(home / "run")
    try:
        async with agent.holding("far", key.read_text(), key.with_suffix(".pub")):
            seen = {**os.environ, "SSH_AUTH_SOCK": str(agent.socket)}
            held = await asyncio.to_thread(subprocess.run, ["ssh-add", "-L"], env=seen, capture_output=True, text=True)
            assert held.stdout.split()[1] in key.with_suffix(".pub").read_text()
    finally:
        await agent.close()
    assert not agent.directory.exists()


@pytest.fixture
def serving(home: Path) -> Iterator[Serving]:
    place = home / "sublet"
    place.mkdir(mode=0o700)
    (place / "sublet.toml").write_text('[platforms.here]\nkind = "local"\n')
    one = Serving(place)
    yield one
    one.stop()


async def test_a_service_is_reached_again_after_it_was_killed(serving: Serving) -> None:
    assert not fits(serving.socket)
    serving.start()
    async with AsyncClient(socket=serving.socket) as client:
        before = await client.health()
        serving.kill()
        serving.start()
        assert (await client.health()).version == before.version


@pytest.mark.parametrize("interface", ["shell", pytest.param("lab", marks=LARGE), pytest.param("desktop", marks=LARGE)])
def test_an_interactive_session_becomes_available_and_is_found_again(serving: Serving, interface: str) -> None:
    if interface == "desktop" and not (shutil.which("Xvnc") and Path("/usr/share/novnc/vnc.html").exists()):
        pytest.skip("TigerVNC or noVNC is not installed: no desktop was started")
    client = serving.start()
    session = client.ask(interactive=interface, time="10m", memory="1GiB")[0].accept()
    eventually(lambda: session.refresh().phase == "AVAILABLE", interface, 120)
    serving.kill()
    session = serving.start().session(session.id)
    [connector] = session.view.connectors
    with httpx2.Client(follow_redirects=True, timeout=30) as visitor:
        eventually(lambda: visitor.get(connector.location).status_code == 200, "its page")
    assert session.cancel().phase == "CANCELLED"
