"""A plain OpenSSH server on a loopback port, with a home directory of its own for who logs in."""

import getpass
import os
import pwd
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.ports import free_port

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
needs_sshd = pytest.mark.skipif(SSHD is None, reason="sshd is not on this machine")


def make_key(path: Path, passphrase: str = "") -> Path:
    """A new key pair."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-f", path], check=True)
    return path


@dataclass
class Sshd:
    """One server: where it is, and how its user gets in."""

    directory: Path
    port: int
    settings: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    @property
    def home(self) -> Path:
        """The home directory of who logs in."""
        return self.directory / "home"

    @property
    def user(self) -> str:
        """Who logs in."""
        return getpass.getuser()

    @property
    def options(self) -> dict[str, str]:
        """What a client is told beside host and port: nothing of the tester's own ssh files is used."""
        return {
            "UserKnownHostsFile": str(self.directory / "known_hosts"),
            "GlobalKnownHostsFile": "/dev/null",
            "IdentityFile": str(self.directory / "key"),
            "IdentitiesOnly": "yes",
            "IdentityAgent": "none",
        }

    def trust(self) -> None:
        """Put its host key among those that the client knows."""
        kind, key = (self.directory / "host_key.pub").read_text().split()[:2]
        (self.directory / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {kind} {key}\n")

    def new_host_key(self) -> None:
        """Give it another host key, as an impostor would have."""
        for name in ("host_key", "host_key.pub"):
            (self.directory / name).unlink(missing_ok=True)
        make_key(self.directory / "host_key")

    def start(self) -> None:
        """Listen."""
        assert SSHD is not None
        if os.getuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd insists on it
        configuration = {
            "Port": str(self.port),
            "ListenAddress": "127.0.0.1",
            "HostKey": str(self.directory / "host_key"),
            "AuthorizedKeysFile": str(self.directory / "key.pub"),
            "PidFile": "none",
            "StrictModes": "no",
            "UsePAM": "no",
            "PermitRootLogin": "yes",
            "PasswordAuthentication": "no",
            "PrintMotd": "no",
            "SetEnv": f'"HOME={self.home}"',
            "Subsystem": "sftp internal-sftp",
        } | self.settings
        file = self.directory / "sshd_config"
        file.write_text("".join(f"{key} {value}\n" for key, value in configuration.items()))
        log = self.directory / "sshd.log"
        self.process = subprocess.Popen([SSHD, "-D", "-f", file, "-E", log], start_new_session=True)
        deadline = time.monotonic() + 10
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                assert time.monotonic() < deadline, f"sshd did not start: {log.read_text()}"
                assert self.process.poll() is None, f"sshd ended: {log.read_text()}"
                time.sleep(0.02)  # between two looks, until the deadline

    def stop(self) -> None:
        """Take no new connection; those that are open go on."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait()
            self.process = None


def find_why_no_login() -> str:
    """Why sshd can't let in the user who runs the tests; empty if it can."""
    try:
        shell = pwd.getpwuid(os.getuid()).pw_shell
    except KeyError:
        return "the user who runs the tests has no name to log in with"
    return "the user who runs the tests has no shell to log in to" if shell.endswith(("/nologin", "/false")) else ""


@contextmanager
def sshd(directory: Path, **settings: str) -> Iterator[Sshd]:
    """A server that listens until the block ends; `settings` are lines of sshd_config."""
    if why := find_why_no_login():
        pytest.skip(why)
    directory.mkdir(parents=True, exist_ok=True)
    server = Sshd(directory, free_port(), settings)
    server.home.mkdir()
    make_key(directory / "key")
    make_key(directory / "host_key")
    server.trust()
    server.start()
    try:
        yield server
    finally:
        server.stop()
