"""An account's key lies open in a private agent alone, and there only while a login is being opened."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from sublet.kernel.errors import AccountRefused
from sublet.reach.agent import Agent
from sublet.reach.login import Login
from sublet.reach.port import Command, read_printed
from sublet.reach.unattended import UnattendedReach, by_key
from tests.sshd import Sshd, make_key, needs_sshd, sshd

pytestmark = [pytest.mark.anyio, needs_sshd]
HELLO = Command(("echo", "hello"), read_printed)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Sshd]:
    """A host that knows one key, whose private half is nowhere but in this test."""
    with sshd(tmp_path / "sshd") as started:
        yield started


@pytest.fixture
async def agent(tmp_path: Path) -> AsyncIterator[Agent]:
    """An agent of this test's own."""
    one = Agent(tmp_path)
    yield one
    await one.close()
    assert not one.directory.exists()


def held(agent: Agent) -> str:
    """What the agent holds now."""
    words = ["ssh-add", "-l"]
    return subprocess.run(
        words, env={**os.environ, "SSH_AUTH_SOCK": str(agent.socket)}, capture_output=True, text=True
    ).stdout


def pid_of(agent: Agent) -> int:
    """The ssh-agent itself, which the shell that watches over it has started."""
    assert agent._process is not None
    words = ["pgrep", "-P", str(agent._process.pid), "-x", "ssh-agent"]
    return int(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def way_to(server: Sshd, tmp_path: Path, agent: Agent, key: str) -> UnattendedReach:
    public = server.directory / "public" / "key"
    public.parent.mkdir(exist_ok=True)
    public.with_name("key.pub").write_text((server.directory / "key.pub").read_text())
    options = server.options | by_key(str(public)) | {"IdentityAgent": str(agent.socket)}
    login = Login("127.0.0.1", control=tmp_path / "run", platform="far", port=server.port, options=options)
    return UnattendedReach(login, str(public), lambda: agent.holding("far", key, public.with_name("key.pub")))


async def test_a_key_that_is_no_file_lets_in_and_is_forgotten_as_soon_as_the_login_is_open(
    server: Sshd, tmp_path: Path, agent: Agent
) -> None:
    file = server.directory / "key"
    key = file.read_text()
    file.unlink()
    reach = way_to(server, tmp_path, agent, key)
    assert await reach.run(HELLO) == "hello\n"
    assert "no identities" in held(agent)
    assert agent.directory.stat().st_mode & 0o777 == 0o700
    assert await reach.run(HELLO) == "hello\n"
    await reach.close()

    os.kill(pid_of(agent), signal.SIGKILL)  # it dies: another is started, and the login can be had again
    assert await reach.run(HELLO) == "hello\n"
    await reach.close()


async def test_while_it_is_held_only_that_key_is_there_and_two_may_need_it_at_once(
    server: Sshd, tmp_path: Path, agent: Agent
) -> None:
    key, public = (server.directory / "key").read_text(), server.directory / "key.pub"
    async with agent.holding("far", key, public):
        async with agent.holding("near", key, public):
            assert held(agent).count("ED25519") == 1
        assert "ED25519" in held(agent)
    assert "no identities" in held(agent)


async def test_what_is_no_key_is_refused_without_a_word_of_it(server: Sshd, tmp_path: Path, agent: Agent) -> None:
    with pytest.raises(AccountRefused, match="does not take its key") as refused:
        async with agent.holding("far", "BEGIN not a key, but secret", server.directory / "key.pub"):
            pass
    assert "secret" not in str(refused.value)


def test_the_agent_ends_with_the_process_that_started_it_even_if_that_is_killed(tmp_path: Path) -> None:
    make_key(tmp_path / "key")
    code = (
        "import asyncio, pathlib, sys\n"
        "from sublet.reach.agent import Agent\n"
        "async def main():\n"
        "    place = pathlib.Path(sys.argv[1])\n"
        "    agent = Agent(place)\n"
        "    async with agent.holding('x', (place / 'key').read_text(), place / 'key.pub'):\n"
        "        print(agent.socket, flush=True)\n"
        "        await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    socket = process.stdout.readline().strip()
    assert Path(socket).exists()
    process.kill()
    process.wait()
    deadline = time.monotonic() + 30
    while Path(socket).exists():
        assert time.monotonic() < deadline, "the agent lives on"
        time.sleep(0.05)  # between two looks, until the deadline
