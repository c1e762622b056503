"""How a person gets in, on a real sshd: host keys, passphrases, certificates, a terminal, their own configuration."""

import asyncio
import os
import pty
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sublet.kernel.errors import LoginNeeded, PlatformRefused, PlatformUnreachable
from sublet.reach.login import Login
from sublet.reach.port import Command, as_is, read_printed
from sublet.reach.prompts import Prompt, nobody
from tests.sshd import Sshd, make_key, needs_sshd, sshd

pytestmark = [pytest.mark.anyio, needs_sshd]
HELLO = Command(("echo", "hello"), read_printed)


class Person:
    """Somebody who answers ssh's questions, and remembers them."""

    def __init__(self, **answers: str | None) -> None:
        self.answers, self.asked = answers, list[Prompt]()

    async def __call__(self, prompt: Prompt) -> str | None:
        self.asked.append(prompt)
        return next((answer for word, answer in self.answers.items() if word in prompt.text), None)


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
async def login(server: Sshd, tmp_path: Path) -> AsyncIterator[Login]:
    made = Login("127.0.0.1", control=tmp_path / "run", platform="far", port=server.port, options=server.options)
    yield made
    await made.close()


def fingerprint(server: Sshd) -> str:
    shown = subprocess.run(["ssh-keygen", "-lf", server.directory / "host_key.pub"], capture_output=True, text=True)
    return shown.stdout.split()[1]


async def test_a_host_that_was_never_met_is_shown_and_kept_once_it_is_confirmed(server: Sshd, login: Login) -> None:
    known = server.directory / "known_hosts"
    known.unlink()
    person = Person(authenticity="yes")
    await login.open(person)
    (prompt,) = person.asked
    assert prompt.host_key
    assert fingerprint(server) in prompt.text
    assert (server.directory / "host_key.pub").read_text().split()[1] in known.read_text()
    assert await login.reach.run(HELLO) == "hello\n"


@pytest.mark.parametrize("answer", ["no", None])
async def test_a_host_that_is_not_confirmed_gets_nothing(server: Sshd, login: Login, answer: str | None) -> None:
    known = server.directory / "known_hosts"
    known.unlink()
    with pytest.raises(PlatformRefused, match="not confirmed") as refused:
        await login.open(Person(authenticity=answer))
    assert "Compare the fingerprint" in refused.value.advice
    assert not known.exists()
    assert not await login.check()


async def test_a_host_key_that_has_changed_is_refused_and_nobody_is_asked(server: Sshd, login: Login) -> None:
    server.stop()
    server.new_host_key()
    server.start()
    person = Person(authenticity="yes", yes="yes")
    with pytest.raises(PlatformRefused, match="has changed") as refused:
        await login.open(person)
    assert person.asked == []
    assert fingerprint(server) in refused.value.message
    assert "ssh-keygen" in refused.value.advice
    with pytest.raises(PlatformRefused, match="has changed"):
        async with login.once(person):
            pass


async def test_a_passphrase_is_asked_for_and_is_nowhere_to_be_seen(server: Sshd, login: Login, tmp_path: Path) -> None:
    secret = "a phrase 'with\" $(odd) things é"
    for name in ("key", "key.pub"):
        (server.directory / name).unlink()
    make_key(server.directory / "key", secret)
    seen: list[str] = []

    async def answer(prompt: Prompt) -> str | None:
        assert prompt.secret
        (asking,) = (tmp_path / "run").glob("ask-*")
        seen.append(f"{asking.stat().st_mode & 0o777:o} {(asking / 's').stat().st_mode & 0o777:o}")
        seen.append(str(secret.encode() in b"".join(path.read_bytes() for path in asking.iterdir() if path.is_file())))
        return secret

    await login.open(answer)
    assert seen == ["700 600", "False"]
    assert await login.reach.run(HELLO) == "hello\n"
    assert not list((tmp_path / "run").glob("ask-*"))
    kept = [path.read_text() for path in (tmp_path / "run").iterdir() if path.is_file()]
    assert not any(secret in text for text in kept)


async def test_a_key_that_is_not_accepted_is_refused_in_sshs_words(server: Sshd, login: Login) -> None:
    (server.directory / "key.pub").write_text("")
    with pytest.raises(PlatformRefused, match="Permission denied"):
        await login.open(Person())


async def test_a_person_who_never_answers_is_not_waited_for_and_leaves_nothing(
    server: Sshd, login: Login, tmp_path: Path
) -> None:
    (server.directory / "known_hosts").unlink()

    async def think(prompt: Prompt) -> str | None:
        await asyncio.Event().wait()
        return None

    with pytest.raises(PlatformUnreachable, match="no login within 1 s"):
        await login.open(think, seconds=1)
    assert list((tmp_path / "run").iterdir()) == []


async def test_a_deliberate_login_carries_all_that_waits_and_then_ends(server: Sshd, tmp_path: Path) -> None:
    login = Login(
        "127.0.0.1", control=tmp_path / "run", platform="far", port=server.port, options=server.options, shared=False
    )
    with pytest.raises(PlatformRefused, match="no connection that is shared"):
        await login.open(Person())
    with pytest.raises(LoginNeeded):
        await login.reach.run(HELLO)
    async with login.once(Person()) as reach:
        assert await login.check()
        assert await asyncio.gather(*(login.reach.run(HELLO) for _ in range(8))) == ["hello\n"] * 8
        assert await reach.run_all([HELLO, HELLO]) == ["hello\n"] * 2
    with pytest.raises(LoginNeeded):
        await login.reach.run(HELLO)
    assert (server.directory / "sshd.log").read_text().count("Accepted publickey") == 1
    assert list((tmp_path / "run").iterdir()) == []


async def test_a_deliberate_login_in_one_process_serves_another_until_nothing_is_left(
    server: Sshd, tmp_path: Path
) -> None:
    def make() -> Login:
        options = server.options
        return Login("127.0.0.1", control=tmp_path / "run", port=server.port, options=options, shared=False)

    terminal, service = make(), make()
    staying = asyncio.create_task(terminal.stay(nobody, quiet=0.5))
    async with asyncio.timeout(20):
        while not await service.check():  # noqa: ASYNC110 - another process would open it
            await asyncio.sleep(0.02)
    assert await asyncio.gather(*(service.reach.run(HELLO) for _ in range(5))) == ["hello\n"] * 5
    content = os.urandom(1_500_000)
    assert (await service.reach.run(Command(("sh", "-c", "cat; exit 3"), as_is, content))).stdout == content
    with pytest.raises(PlatformUnreachable, match="no answer within 1 s"):
        await service.reach.run(Command(("sleep", "9"), as_is, seconds=1))
    await staying
    with pytest.raises(LoginNeeded):
        await service.reach.run(HELLO)
    assert (server.directory / "sshd.log").read_text().count("Accepted publickey") == 1
    assert list((tmp_path / "run").iterdir()) == []


async def test_a_deliberate_login_whose_process_was_killed_is_needed_again(login: Login, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(login.target.door))
    with pytest.raises(LoginNeeded):
        await login.reach.run(HELLO)
    assert not await login.check()


def certify(server: Sshd, validity: str) -> None:
    """Let the server trust certificates instead of keys, and give the user's key one."""
    make_key(server.directory / "ca")
    words = ["ssh-keygen", "-q", "-s", server.directory / "ca", "-I", "me", "-n", server.user, "-V", validity]
    subprocess.run([*words, server.directory / "key.pub"], check=True, env={**os.environ, "TZ": "UTC"})
    server.settings |= {"AuthorizedKeysFile": "none", "TrustedUserCAKeys": f"{server.directory}/ca.pub"}
    server.stop()
    server.start()


async def test_a_certificate_opens_a_login_and_its_end_is_known(server: Sshd, login: Login) -> None:
    assert await login.expires() is None
    end = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=12)
    certify(server, f"20200101000000:{end:%Y%m%d%H%M%S}")
    assert await login.expires() == end
    await login.open(Person())
    assert await login.reach.run(HELLO) == "hello\n"


async def test_a_certificate_that_has_expired_opens_nothing_and_says_so(server: Sshd, login: Login) -> None:
    certify(server, "20200101000000:20200102000000")
    with pytest.raises(PlatformRefused, match=r"expired on 2020-01-02") as refused:
        await login.open(Person())
    assert "certificate" in refused.value.advice


OPEN = """
import asyncio, sys
from pathlib import Path
from sublet.reach.login import Login
from sublet.reach.port import Command, read_printed

way, host, control, port, *options = sys.argv[1:]
told = dict(option.split("=", 1) for option in options)
login = Login(host, control=Path(control), platform="far", port=int(port), options=told)

async def main():
    if way == "once":
        async with login.once() as reach:
            print("there:", await reach.run(Command(("pwd",), read_printed)))
        return
    await login.open()
    print("there:", await login.reach.run(Command(("pwd",), read_printed)))
    await login.close()

asyncio.run(main())
"""


@pytest.mark.parametrize("way", ["shared", "once"])
def test_in_a_terminal_ssh_asks_the_person_itself(server: Sshd, tmp_path: Path, way: str) -> None:
    (server.directory / "known_hosts").unlink()
    options = [f"{key}={value}" for key, value in server.options.items()]
    words = [sys.executable, "-c", OPEN, way, "127.0.0.1", str(tmp_path / "run"), str(server.port), *options]
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, words)
    shown, answered = b"", False
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            shown += os.read(terminal, 4096)
        except OSError:  # the terminal's last process has ended
            break
        if b"(yes/no" in shown and not answered:
            os.write(terminal, b"yes\n")
            answered = True
    os.close(terminal)
    assert os.waitpid(pid, 0)[1] == 0, shown.decode()
    assert fingerprint(server).encode() in shown
    assert f"there: {server.home}" in shown.decode()


CONFIGURATION = """
Host centre
  HostName 127.0.0.1
  ProxyJump door
  LogLevel QUIET
  RemoteCommand echo never
  RequestTTY force
  StrictHostKeyChecking no
  ControlMaster auto
  ControlPath ~/.ssh/own-%C
Host centre door
  Port {port}
  UserKnownHostsFile {directory}/known_hosts
  IdentityFile {directory}/key
  IdentitiesOnly yes
Host door
  HostName localhost
  HostKeyAlias [127.0.0.1]:{port}
"""


@pytest.mark.skipif(os.getuid() != 0, reason="an ssh configuration of its own for one process needs root")
def test_the_persons_own_configuration_is_used_with_its_jump_host_and_its_traps_do_no_harm(
    server: Sshd, tmp_path: Path
) -> None:
    own = tmp_path / "own"
    own.mkdir(mode=0o700)
    (own / "config").write_text(CONFIGURATION.format(port=server.port, directory=server.directory))
    # ssh finds a person's files by the table of users, so for this one process the directory there is another.
    home = Path("~").expanduser()
    made = not (home / ".ssh").exists()
    (home / ".ssh").mkdir(mode=0o700, exist_ok=True)
    words = [sys.executable, "-c", OPEN, "shared", "centre", str(tmp_path / "run"), "0"]
    try:
        done = subprocess.run(
            [
                "unshare",
                "-m",
                "sh",
                "-c",
                'mount --bind "$1" "$2" && shift 2 && exec "$@"',
                "sh",
                own,
                home / ".ssh",
                *words,
            ],
            capture_output=True,
            text=True,
            timeout=60,
            stdin=subprocess.DEVNULL,
        )
    finally:
        if made:
            (home / ".ssh").rmdir()
    assert f"there: {server.home}" in done.stdout, done.stderr
    assert (server.directory / "sshd.log").read_text().count("Accepted publickey") == 2  # at the door, and beyond it
    assert [path.name for path in own.iterdir()] == ["config"]
