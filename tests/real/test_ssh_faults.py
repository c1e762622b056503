"""What goes wrong between two machines, on a real sshd."""

import asyncio
import contextlib
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from sublet.kernel.errors import LoginNeeded, PlatformRefused, PlatformUnreachable
from sublet.reach.login import Login
from sublet.reach.port import Command, as_is, read_printed
from sublet.reach.prompts import nobody
from tests.sshd import Sshd, needs_sshd, sshd

pytestmark = [pytest.mark.anyio, needs_sshd]
Start = Callable[..., Sshd]
HELLO = Command(("echo", "hello"), read_printed)


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A short one: a socket's path may have 107 bytes, and pytest's own has the user's and the test's names in it."""
    with tempfile.TemporaryDirectory(prefix="ssh-") as directory:
        yield Path(directory)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Sshd]:
    with sshd(tmp_path / "sshd") as started:
        yield started


@pytest.fixture
async def login(server: Sshd, tmp_path: Path) -> Login:
    return await opened(server, tmp_path)


async def opened(server: Sshd, tmp_path: Path) -> Login:
    login = login_to(server, tmp_path)
    await login.open(nobody)
    return login


def login_to(server: Sshd, tmp_path: Path) -> Login:
    return Login("127.0.0.1", control=tmp_path / "run", platform="far", port=server.port, options=server.options)


@pytest.fixture(autouse=True)
async def closed(request: pytest.FixtureRequest, server: Sshd, tmp_path: Path):  # type: ignore[no-untyped-def]
    yield
    await login_to(server, tmp_path).close()


def children(pid: int) -> list[int]:
    """The processes below one of ours."""
    below = [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return below + [lower for child in below for lower in children(child)]


def kill(pid: int) -> None:
    """End a process of ours without a word, and see it gone."""
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while Path(f"/proc/{pid}/stat").exists() and ") Z " not in Path(f"/proc/{pid}/stat").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.01)


async def test_without_a_login_a_login_is_needed_and_nobody_is_bothered(server: Sshd, tmp_path: Path) -> None:
    with pytest.raises(LoginNeeded):
        await login_to(server, tmp_path).reach.run(HELLO)
    assert f"user {server.user}" not in (server.directory / "sshd.log").read_text()


async def test_when_the_shared_connection_is_killed_a_login_is_needed_and_one_login_mends_it(
    login: Login, server: Sshd, tmp_path: Path
) -> None:
    assert await login.reach.run(HELLO) == "hello\n"
    record = await login.open(nobody)
    kill(record.pid)
    assert login.target.socket.exists()  # it is stale now
    assert not await login.check()
    with pytest.raises(LoginNeeded):
        await login.reach.run(HELLO)
    again = await login.open(nobody)
    assert again.pid != record.pid
    assert await login.reach.run(HELLO) == "hello\n"


async def test_an_open_login_is_not_opened_twice(login: Login) -> None:
    first = await login.open(nobody)
    assert await login.open(nobody) == first


async def test_a_login_belongs_to_no_object_and_outlives_a_restart(login: Login, server: Sshd, tmp_path: Path) -> None:
    assert await login_to(server, tmp_path).reach.run(HELLO) == "hello\n"


async def test_after_logout_a_login_is_needed_and_nothing_is_left(login: Login, tmp_path: Path) -> None:
    await login.close()
    assert list((tmp_path / "run").iterdir()) == []
    with pytest.raises(LoginNeeded):
        await login.reach.run(HELLO)


async def test_a_home_with_a_long_name_has_logins_too_and_they_leave_nothing(server: Sshd, tmp_path: Path) -> None:
    login = login_to(server, tmp_path / ("x" * 120))
    await login.open(nobody)
    place = login.target.socket.parent
    assert place.stat().st_mode & 0o777 == 0o700
    assert await login.reach.run(HELLO) == "hello\n"
    await login.close()
    assert not place.exists()


async def test_a_host_that_has_gone_away_is_unreachable_until_it_is_back_then_a_login_is_needed(
    login: Login, server: Sshd, tmp_path: Path
) -> None:
    record = await login.open(nobody)
    server.stop()
    assert await login.reach.run(HELLO) == "hello\n"  # what is open goes on
    kill(record.pid)
    with pytest.raises(PlatformUnreachable, match="does not answer"):
        await login.reach.run(HELLO)
    server.start()
    with pytest.raises(LoginNeeded):
        await login_to(server, tmp_path).reach.run(HELLO)


async def test_a_login_to_a_host_that_does_not_answer_is_unreachable(server: Sshd, tmp_path: Path) -> None:
    server.stop()
    with pytest.raises(PlatformUnreachable, match="Connection refused"):
        await login_to(server, tmp_path).open(nobody)


async def test_a_connection_cut_under_a_command_is_unreachable_then_a_login_is_needed(
    login: Login, server: Sshd
) -> None:
    assert server.process is not None
    running = asyncio.create_task(login.reach.run(Command(("sh", "-c", "touch began; sleep 60"), as_is)))
    async with asyncio.timeout(10):
        while not (server.home / "began").exists():  # noqa: ASYNC110 - it happens in another process
            await asyncio.sleep(0.02)
    for pid in children(server.process.pid):
        with suppress(ProcessLookupError):  # one ends with another
            os.kill(pid, signal.SIGKILL)
    with pytest.raises(PlatformUnreachable, match="cut"):
        await running
    with pytest.raises(LoginNeeded):
        await login.reach.run(HELLO)


async def test_a_transfer_cut_in_the_middle_goes_on_after_the_next_login(
    login: Login, server: Sshd, tmp_path: Path
) -> None:
    source, begun = tmp_path / "source", []
    source.write_bytes(os.urandom(6_000_000))
    record = await login.open(nobody)

    def cut(done: int, total: int | None) -> None:
        if done > 1_000_000:
            kill(record.pid)

    with pytest.raises((LoginNeeded, PlatformUnreachable)):
        await login.reach.send(source, "there", cut)
    await login.open(nobody)
    await login.reach.send(source, "there", lambda done, total: begun.append(done))
    assert begun[0] > 1_000_000
    assert (server.home / "there").read_bytes() == source.read_bytes()


async def test_a_site_with_few_channels_serves_more_commands_than_it_has(tmp_path: Path) -> None:
    with sshd(tmp_path / "narrow", MaxSessions="2") as server:
        login = await opened(server, tmp_path)
        try:
            commands = [Command(("sh", "-c", f"sleep 0.1; echo {n}"), read_printed) for n in range(8)]
            assert await asyncio.gather(*map(login.reach.run, commands)) == [f"{n}\n" for n in range(8)]
        finally:
            await login.close()


async def test_no_more_than_four_channels_are_used_at_once(login: Login, server: Sshd) -> None:
    count = 'mkdir -p at; touch "at/$$"; ls at | wc -l; sleep 0.1; rm "at/$$"'
    seen = await asyncio.gather(*(login.reach.run(Command(("sh", "-c", count), read_printed)) for _ in range(12)))
    assert max(int(number) for number in seen) <= 4


@pytest.mark.parametrize(
    "unfriendly",
    [
        "echo Welcome; printf 'quota 97%%'; echo trouble >&2",
        "sleep 0.5; echo late",
        "sleep 5 & disown",
        "alias printf=false; cd /tmp; umask 777; set -u; export POSIXLY_CORRECT=1 LC_ALL=de_DE.UTF-8",
        "printf '\\033[2J\\0\\377'",
    ],
    ids=["prints", "slow", "leaves a child", "changes everything", "binary"],
)
async def test_an_unfriendly_bashrc_changes_nobody(login: Login, server: Sshd, unfriendly: str) -> None:
    (server.home / ".bashrc").write_text(unfriendly + "\n")
    answer = await login.reach.run(Command(("sh", "-c", "pwd; cat; echo no >&2; exit 4"), as_is, b"in"))
    assert (answer.code, answer.stdout, answer.stderr) == (4, f"{server.home}\nin".encode(), b"no\n")


async def test_a_shell_that_ends_by_itself_is_refused_in_its_words(login: Login, server: Sshd) -> None:
    (server.home / ".bashrc").write_text("echo 'This account is not available.' >&2; exit 1\n")
    with pytest.raises(PlatformRefused, match="This account is not available"):
        await login.reach.run(HELLO)


async def test_a_command_that_is_given_up_leaves_no_process_here(login: Login) -> None:
    before = set(children(os.getpid()))
    running = asyncio.create_task(login.reach.run(Command(("sleep", "60"), as_is)))
    async with asyncio.timeout(10):
        while not set(children(os.getpid())) - before:  # noqa: ASYNC110 - it happens in another process
            await asyncio.sleep(0.02)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    async with asyncio.timeout(10):
        while set(children(os.getpid())) - before:  # noqa: ASYNC110 - it happens in another process
            await asyncio.sleep(0.02)


async def test_a_visit_that_is_cut_needs_another(server: Sshd, tmp_path: Path) -> None:
    assert server.process is not None
    login = login_to(server, tmp_path)
    async with login.once(nobody) as reach:
        assert await reach.run(HELLO) == "hello\n"
        for pid in children(server.process.pid):
            with contextlib.suppress(ProcessLookupError):  # one may end by itself
                os.kill(pid, signal.SIGKILL)
        with pytest.raises(PlatformUnreachable):
            await reach.run(HELLO)
        with pytest.raises(LoginNeeded):
            await reach.run(HELLO)
    async with login.once(nobody) as reach:
        assert await reach.run(HELLO) == "hello\n"
