"""What a part of a run is done to: services, their home and database, and what was injected and noticed so far."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from sublet.client.link import Link
from tests.chaos.evidence import Injected
from tests.chaos.plan import Part
from tests.chaos.services import BrokenService
from tests.chaos.slurm_site import SlurmSite
from tests.postgres import Postgres


@dataclass
class World:
    """Of one part."""

    part: Part
    base: Path  # of all its files
    home: Path  # SUBLET_HOME
    database: str  # its address
    services: list[BrokenService]
    postgres: Postgres | None = None
    cluster: SlurmSite | None = None
    injected: list[Injected] = field(default_factory=list)
    outages: list[tuple[float, float]] = field(default_factory=list)  # of the database
    notes: list[str] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    submitting: threading.Event = field(default_factory=threading.Event)  # set whenever a client accepts an offer
    over: threading.Event = field(default_factory=threading.Event)  # set when clients must not wait any longer
    _turns: itertools.count[int] = field(default_factory=itertools.count)

    @property
    def witness(self) -> Path:
        """What programs on this machine write."""
        return self.base / "witness"

    @property
    def clock(self) -> Path:
        """The file that says by how many seconds the clock is off."""
        return clock_of(self.base)

    @property
    def elapsed(self) -> float:
        """Seconds since the part began."""
        return time.monotonic() - self.began

    def next_link(self) -> Link:
        """A way to a service: each time to the next one."""
        return self.services[next(self._turns) % len(self.services)].link

    def wait_until(self, seconds: float) -> None:
        """Until so long after the beginning."""
        time.sleep(max(0.0, seconds - self.elapsed))

    def revive(self) -> None:
        """See that all services are there; what can't be begun again is noted."""
        for service in self.services:
            for _ in range(2):  # it may have been killed once more by an ordered crash, just now
                if service.is_alive and service.wait_ready():
                    break
                service.kill()
                service.launch()
            if not service.wait_ready():
                self.notes.append(f"service {service.number} did not start: {service.last_words()}")

    def note_deaths(self) -> None:
        """Write down services that ended by themselves."""
        for service in self.services:
            if not service.is_alive:
                self.notes.append(f"service {service.number} ended by itself ({service.code}): {service.last_words()}")


def clock_of(base: Path) -> Path:
    """Where the services of a part look for that."""
    return base / "clock"


def wait_for(look: Callable[[], bool], seconds: float, every: float = 0.05) -> bool:
    """Look again and again; whether it became true in time."""
    deadline = time.monotonic() + seconds
    while not look():
        if time.monotonic() > deadline:
            return False
        time.sleep(every)
    return True
