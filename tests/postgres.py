"""A real PostgreSQL server of the tests' own: in a temporary directory, on a Unix socket only, gone afterwards."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

PDEATHSIG = 1  # prctl's word for "tell me when my parent dies"
QUICK = ("fsync=off", "full_page_writes=off", "max_connections=60", "listen_addresses=", "shared_buffers=32MB")


def programs() -> Path | None:
    """Where the newest PostgreSQL's programs are, if it is installed."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    places = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    return max((place.parent for place in places), key=lambda place: int(place.parent.name), default=None)


class Postgres:
    """One server with any number of databases."""

    def __init__(self, bin: Path, directory: Path) -> None:
        """Made by `running_postgres`."""
        self._bin = bin
        self._directory = directory
        self._server: subprocess.Popen[bytes] | None = None
        self._made = 0

    def url(self, database: str = "postgres", without_host: bool = False) -> str:
        """A database's address; one `without_host` has everything behind the question mark, as on Debian."""
        if without_host:
            return f"postgresql:///{database}?host={self._directory}&user={self._user()}&password=it%27s%20not%20asked"
        return f"postgresql://{self._user()}@/{database}?host={self._directory}"

    def create(self, without_host: bool = False) -> str:
        """A new, empty database, and its address."""
        self._made += 1
        name = f"sublet_{self._made}"
        self.sql(f'CREATE DATABASE "{name}" TEMPLATE template0')
        return self.url(name, without_host)

    def sql(self, statement: str, database: str = "postgres") -> str:
        """Run a statement as the server's owner and return what it says."""
        quietly = ["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"]
        words = [self._bin / "psql", *quietly, "-d", self.url(database), "-c", statement]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return done.stdout.strip()

    def initialise(self) -> None:
        """Make the server's files."""
        words = [self._bin / "initdb", "-D", self._data, "-A", "trust", "-U", self._user(), "-E", "UTF8", "--no-sync"]
        done = subprocess.run(words, capture_output=True, text=True, preexec_fn=_not_as_root(), cwd=self._directory)
        if done.returncode:
            raise RuntimeError(done.stderr)

    def start(self) -> None:
        """Start it and wait until it answers."""
        options = [word for setting in QUICK for word in ("-c", setting)]
        with (self._directory / "log").open("ab") as log:
            self._server = subprocess.Popen(
                [self._bin / "postgres", "-D", self._data, "-k", self._directory, *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=_not_as_root(),
                cwd=self._directory,
            )
        deadline = time.monotonic() + 30
        ready = [self._bin / "pg_isready", "-q", "-h", self._directory]
        while subprocess.run(ready).returncode:
            if self._server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((self._directory / "log").read_text())
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop it at once, as a crash would."""
        if self._server is not None:
            self._server.send_signal(signal.SIGQUIT)
            self._server.wait(30)
            self._server = None

    @property
    def _data(self) -> Path:
        return self._directory / "data"

    def _user(self) -> str:
        return _server_user().pw_name


@contextlib.contextmanager
def running_postgres() -> Iterator[Postgres | None]:
    """A server for as long as the block runs; None where PostgreSQL isn't installed."""
    bin = programs()
    if bin is None:
        yield None
        return
    directory = Path(tempfile.mkdtemp(prefix="sublet-pg-"))
    server = Postgres(bin, directory)
    try:
        if os.getuid() == 0:
            os.chown(directory, _server_user().pw_uid, _server_user().pw_gid)
        server.initialise()
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(directory)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A real PostgreSQL, with a database `migrated` that is up to date."""
    from sublet.store import Store  # slow to load, and only needed here

    with running_postgres() as server:
        if server is None:
            pytest.skip("PostgreSQL is not installed: the store is tested on SQLite alone")
        server.sql("CREATE DATABASE migrated TEMPLATE template0")
        Store.open(server.url("migrated")).close()
        yield server


def _server_user() -> pwd.struct_passwd:
    """PostgreSQL refuses to run as root, so root lends it another user."""
    if os.getuid() != 0:
        return pwd.getpwuid(os.getuid())
    with contextlib.suppress(KeyError):
        return pwd.getpwnam("postgres")
    return pwd.getpwnam("nobody")


def _not_as_root() -> Callable[[], None]:
    user, libc = _server_user(), ctypes.CDLL(None)

    def become() -> None:
        if os.getuid() == 0:
            os.setgroups([])
            os.setgid(user.pw_gid)
            os.setuid(user.pw_uid)
        libc.prctl(PDEATHSIG, signal.SIGQUIT)  # also when the tests are killed

    return become
