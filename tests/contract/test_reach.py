"""Every reach keeps the same promises: here, over a shared login, and in one deliberate login."""

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sublet.kernel.errors import PlatformRefused, PlatformUnreachable
from sublet.reach.local import LocalReach
from sublet.reach.login import Login
from sublet.reach.port import Command, Outcome, Reach, as_is, read_printed
from tests.contract.reaching import Far, Steps, tree
from tests.sshd import Sshd

pytestmark = pytest.mark.anyio


def outcome(*argv: str, stdin: bytes = b"", seconds: int = 60) -> Command[Outcome]:
    return Command(argv, as_is, stdin, seconds)


async def test_a_command_answers_with_its_code_and_both_streams_and_nothing_else(reach: Reach) -> None:
    script = "printf out; printf err >&2; exit 3"
    assert await reach.run(outcome("sh", "-c", script)) == Outcome(3, b"out", b"err")


async def test_a_command_starts_at_home_in_utc_and_without_a_locale(reach: Reach, far: Far) -> None:
    answer = await reach.run(Command(("sh", "-c", 'pwd -P; echo "$TZ $LC_ALL"'), read_printed))
    assert answer.splitlines() == [str(far.home), "UTC C"]


async def test_a_missing_command_is_code_127_and_said(reach: Reach) -> None:
    answer = await reach.run(outcome("no-such-command"))
    assert answer.code == 127
    assert b"no-such-command" in answer.stderr


async def test_a_signal_is_told_as_the_shell_tells_it(reach: Reach) -> None:
    assert (await reach.run(outcome("sh", "-c", "kill -9 $$"))).code == 137


@pytest.mark.parametrize("size", [1, 70_000, 300_000, 3_000_000])
async def test_what_a_command_reads_arrives_byte_for_byte(reach: Reach, size: int) -> None:
    content = os.urandom(size)
    assert (await reach.run(outcome("cat", stdin=content))).stdout == content


async def test_a_command_that_reads_nothing_of_it_leaves_the_next_ones_theirs(reach: Reach) -> None:
    large = b"x" * 300_000
    commands = [outcome("true", stdin=large), outcome("cat", stdin=b"mine"), outcome("head", "-c", "2", stdin=large)]
    answers = await reach.run_all([*commands, outcome("cat")])
    assert [answer.stdout for answer in answers] == [b"", b"mine", b"xx", b""]


async def test_five_megabytes_come_back_byte_for_byte(reach: Reach, far: Far) -> None:
    content = os.urandom(5_000_000)
    (far.home / "large").write_bytes(content)
    assert (await reach.run(outcome("cat", "large"))).stdout == content


async def test_many_commands_run_in_order_each_with_its_own_outcome(reach: Reach) -> None:
    commands = [outcome("sh", "-c", f"echo {n}; echo e{n} >&2; exit {n}") for n in range(30)]
    answers = await reach.run_all(commands)
    assert answers == [Outcome(n, b"%d\n" % n, b"e%d\n" % n) for n in range(30)]


async def test_no_commands_are_nobodys(reach: Reach) -> None:
    assert await reach.run_all([]) == []


async def test_a_readers_error_comes_after_all_have_run(reach: Reach, far: Far) -> None:
    with pytest.raises(PlatformRefused, match="No such file"):
        await reach.run_all([Command(("cat", "missing"), read_printed), outcome("touch", "done")])
    (far.home / "done").unlink()


async def test_twenty_at_once_all_get_their_own_answer(reach: Reach) -> None:
    answers = await asyncio.gather(*(reach.run(Command(("echo", str(n)), read_printed)) for n in range(20)))
    assert answers == [f"{n}\n" for n in range(20)]


async def test_a_command_over_its_time_is_stopped_and_the_next_one_runs(reach: Reach, far: Far) -> None:
    with pytest.raises(PlatformUnreachable, match="no answer within 1 s"):
        await reach.run(outcome("sh", "-c", "echo $$ >running; exec sleep 60", seconds=1))
    pid = int((far.home / "running").read_text())
    assert await reach.run(outcome("kill", "-0", str(pid))) != Outcome(0, b"", b"")
    assert await reach.run(Command(("echo", "on"), read_printed)) == "on\n"


async def test_a_child_left_in_the_background_does_not_hold_the_answer(reach: Reach) -> None:
    assert await reach.run(Command(("sh", "-c", "sleep 30 & echo $!"), read_printed, seconds=10))


@pytest.mark.parametrize("words", [("-x",), ("A=b", "true"), (), ("",), ("echo", "a\0b")])
async def test_what_no_system_could_run_is_refused(words: tuple[str, ...]) -> None:
    with pytest.raises(PlatformRefused):
        Command(words, as_is)


async def test_a_word_that_is_no_text_is_refused(reach: Reach) -> None:
    with pytest.raises(PlatformRefused, match="can't be written"):
        await reach.run(outcome("echo", "\ud800"))


WORDS = st.lists(
    st.one_of(
        st.sampled_from(
            ["", " ", "-n", "--", "*", "~", "$HOME", ";$(touch hurt)", "`touch hurt`", "'", '"', "\\", "\n", "!"]
        ),
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20),
    ),
    min_size=1,
    max_size=6,
)
ECHO = 'for w do printf "%s\\0" "$w"; done'


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batch=st.lists(WORDS, min_size=1, max_size=20))
async def test_every_word_arrives_unchanged(reach: Reach, far: Far, batch: list[list[str]]) -> None:
    commands = [outcome("sh", "-c", ECHO, "sh", *words) for words in batch]
    answers = await reach.run_all(commands)
    assert [answer.stdout.decode().split("\0")[:-1] for answer in answers] == batch
    assert not (far.home / "hurt").exists()


async def test_bytes_that_are_no_utf_8_go_there_and_back(reach: Reach) -> None:
    word = os.fsdecode(b"caf\xe9")
    assert await reach.run(Command(("printf", "%s", word), read_printed)) == word


async def test_a_part_of_a_file_is_read_by_offset(reach: Reach, far: Far) -> None:
    (far.home / "-log").write_bytes(b"0123456789")
    assert await reach.read("-log", 0, 3) == b"012"
    assert await reach.read("-log", 8, 100) == b"89"
    assert await reach.read("-log", 10, 100) == b""
    assert await reach.read("-log", 99, 100) == b""


async def test_a_file_that_cannot_be_read_is_refused_in_the_systems_words(reach: Reach) -> None:
    with pytest.raises(PlatformRefused, match=r"cannot open no-such-file|no-such-file: No such file"):
        await reach.read("no-such-file", 0, 10)


TOOLS = ["sh", "cat", "head", "tail", "wc", "base64", "stat", "chmod", "mv", "rm", "mkdir", "find", "test"]


@pytest.mark.parametrize("shell", ["dash", "bash"])
@pytest.mark.parametrize("more", [("timeout", "sha256sum"), ()], ids=["usual", "bare"])
async def test_a_far_side_needs_no_more_than_sh_coreutils_and_find(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: str, more: tuple[str, ...]
) -> None:
    tools, home, source = tmp_path / "tools", tmp_path / "home", tmp_path / "source"
    for directory in (tools, home, source / "below"):
        directory.mkdir(parents=True)
    found = {name: shutil.which(shell if name == "sh" else name) for name in (*TOOLS, *more)}
    for name, path in found.items():
        if path is None:
            pytest.skip(f"{name} is not on this machine")
        (tools / name).symlink_to(path)
    (source / "below" / "small").write_text("small")
    (source / "large").write_bytes(os.urandom(900_000))
    monkeypatch.setenv("PATH", str(tools))
    reach = LocalReach(home=home)
    large = os.urandom(400_000)
    answers = await reach.run_all([outcome("cat", stdin=large), outcome("cat", stdin=b"small"), outcome("missing")])
    assert [answer.stdout for answer in answers] == [large, b"small", b""]
    assert answers[2].code == 127
    await reach.send(source, "there", Steps())
    await reach.fetch("there", tmp_path / "back", Steps())
    assert tree(tmp_path / "back") == tree(source)
    assert await reach.read("there/below/small", 1, 3) == b"mal"


async def test_a_word_that_is_too_long_for_the_system_is_refused_in_its_words(reach: Reach) -> None:
    with pytest.raises(PlatformRefused, match="Argument list too long"):
        await reach.run(Command(("true", "x" * 3_000_000), read_printed))


async def test_what_ran_before_its_connection_was_killed_is_not_called_refused(
    far_login: Callable[[], Login], far_server: Sshd
) -> None:
    reach, ran = far_login().reach, far_server.home / "it-ran"
    asked = asyncio.create_task(reach.run(outcome("sh", "-c", f"touch {ran}; sleep 60")))
    async with asyncio.timeout(30):
        while not ran.exists():  # noqa: ASYNC110 - another machine makes it
            await asyncio.sleep(0.05)
    clients = list(find_clients(str(reach.target.socket)))
    assert clients
    for pid in clients:
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(PlatformUnreachable, match="the connection was cut: quota\n"):
        await asked


def find_clients(socket: str) -> Iterator[int]:
    """The processes of ours that run commands over a shared connection; the connection itself is not among them."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().decode(errors="replace").split("\0")
            if socket in words and "ProxyCommand=false" in words:
                yield int(path.parent.name)
