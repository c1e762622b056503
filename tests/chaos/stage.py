"""Sets the stage of a part, and clears it whatever happens: homes, disks, databases, services."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from testbed.plan import started

from sublet.platforms.local.shim.clocks import VARIABLE
from tests.chaos.gathering import find_directories, find_groups, find_links, find_processes
from tests.chaos.plan import Part
from tests.chaos.services import BrokenService
from tests.chaos.slurm_site import SlurmSite
from tests.chaos.world import World, clock_of, wait_for
from tests.databases import put_database
from tests.postgres import running_postgres
from tests.sites import control, mounted, succeed, sweep_mounts

PREFIX = "sublet-chaos-"
DISK = "48m"
SETTINGS = """claim = "3s"
hold = "30s"
poll = "2s"
answer_within = "5s"
lost_after = "40s"
[platforms.here]
kind = "local"
cores = 64
memory = "64GiB"
grace = "2s"
"""


@contextmanager
def set_stage(part: Part, cluster: SlurmSite | None) -> Iterator[World]:
    """All that a part needs, for as long as the block runs."""
    with ExitStack() as stack:
        base = stack.enter_context(_base())
        home = base / "home"
        home.mkdir(mode=0o700)
        if "small-disk" in part.has:
            stack.enter_context(mounted(home, DISK))
            home.chmod(0o700)
        postgres = stack.enter_context(running_postgres()) if "postgres" in part.has else None
        database = postgres.create() if postgres else f"sqlite:///{home / 'sublet.db'}"
        if not postgres:
            put_database(home / "sublet.db")
        (base / "sublet.toml").write_text(SETTINGS + (cluster.settings if cluster else ""))
        services = [_make_service(base, number, database) for number in range(part.services)]
        stack.callback(_stop, services)
        yield World(part, base, home, database, services, postgres, cluster)


def _make_service(base: Path, number: int, database: str) -> BrokenService:
    socket = base / f"{number}.sock"
    options = ["--database", database, "--socket", str(socket), "--config", str(base / "sublet.toml")]
    environment = {**os.environ, "SUBLET_HOME": str(base / "home"), VARIABLE: str(clock_of(base))}
    return BrokenService(number, socket, base / f"service-{number}.log", options, environment)


def _stop(services: list[BrokenService]) -> None:
    for service in services:
        if service.is_alive:
            service.thaw()
            service.kill()


@contextmanager
def _base() -> Iterator[Path]:
    """A directory that a later run sweeps, should this one be killed."""
    pid = os.getpid()
    base = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{pid}.{started(pid)}-"))
    try:
        yield base
    finally:
        clear(base)


def clear(base: Path) -> None:
    """End what still runs of a run, and remove its files."""
    for pid in find_processes(base):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    wait_for(lambda: not find_processes(base), 10)
    ids = frozenset(directory.name for directory in find_directories(base / "home"))
    for link in find_links(base):
        link.unlink(missing_ok=True)
    for folder in find_groups(ids):
        with suppress(OSError):
            folder.rmdir()
    shutil.rmtree(base, ignore_errors=True)


def sweep() -> None:
    """Clear what runs that were killed left behind."""
    if os.geteuid() == 0:
        succeed(control("sweep"))
        sweep_mounts()
    for base in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        pid, _, rest = base.name.removeprefix(PREFIX).partition(".")
        began = rest.partition("-")[0]
        if pid.isdigit() and started(int(pid)) != began:
            clear(base)
