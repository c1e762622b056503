"""Real batch systems, each a site with one person; what tests of any of them ask, and a platform on one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol, TypeVar

from sublet.platforms.batch.reserving_platform import ReservingPlatform
from tests.engines.gridengine_server import serve_gridengine
from tests.engines.oar_server import serve_oar
from tests.engines.slurm_server import serve_slurm

ACTIVE = "'Waiting','Hold','toLaunch','Launching','Running','toAckReservation','Finishing'"
FILES = "ls -A .sublet/sessions .sublet/incoming .sublet/reservations 2>/dev/null | grep -v ':$' | grep . ; :"
AT_ONCE = timedelta(seconds=0.2)
P = TypeVar("P", bound=ReservingPlatform)


class BatchSite(Protocol):
    """A site that is up."""

    @property
    def address(self) -> str:
        """As this machine reaches it."""

    @property
    def key(self) -> Path:
        """Lets the person in over SSH."""

    @property
    def person(self) -> str:
        """Who uses it."""

    @property
    def ssh(self) -> dict[str, str]:
        """Options of ssh for it."""

    def run_as_person(self, line: str, *, check: bool = True) -> str:
        """Run a line in the person's shell."""


@dataclass(frozen=True)
class Engine:
    """A batch system, and what it is asked by its own commands."""

    start: Callable[[Path], AbstractContextManager[BatchSite]]
    jobs: str  # how many a session ever had
    left: str  # how many jobs and reservations there are
    settings: dict[str, object] = field(default_factory=dict)


ENGINES = {
    "oar": Engine(
        serve_oar,
        "oarstat -f -J --sql \"job_name = '{key}'\" 2>/dev/null | grep -c '\"startTime\"'; :",
        f'oarstat -J --sql "state IN ({ACTIVE})" 2>/dev/null | grep -c \'"owner"\'; :',
    ),
    "gridengine": Engine(
        serve_gridengine,
        "qacct -j s-{key} 2>/dev/null | grep -c '^jobnumber '; :",
        "{ qstat -u '*'; qrstat -u '*'; } | grep -c '^ *[0-9]'; :",
    ),
    "slurm": Engine(
        serve_slurm,
        "sacct -X -n -P -S now-1days -o jobid --name={key} | grep -c .; :",
        "{ squeue -h -o %A; scontrol -o show reservation; } | grep -c '^[0-9]\\|^ReservationName='; :",
        {"reservations": "yes"},
    ),
}


def settings_of(site: BatchSite) -> dict[str, Any]:
    """How a platform gets to a site, and that it may ask it as often as it likes."""
    return {"host": site.address, "user": site.person, "key": str(site.key), "ssh": site.ssh, "calls": 1000}


@asynccontextmanager
async def opening(make: type[P], name: str, site: BatchSite, home: Path, **more: Any) -> AsyncIterator[P]:
    """A platform on a site that looks often, and waits for reservations: other tests take part of this machine."""
    quick = {"poll": AT_ONCE, "look": AT_ONCE, "patience": timedelta(seconds=2)}
    settings = settings_of(site) | quick | {"reserves_within": timedelta(seconds=10)} | more
    platform = make(name=name, **settings)
    (place := home / "platforms" / name).mkdir(parents=True)
    await platform.open(place)
    yield platform
    await platform.close()
