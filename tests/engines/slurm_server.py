"""A real Slurm of the testbed with accounts, as an engine: its person is an operator, who may make reservations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.sites import Site, running

OPERATOR = "service"  # whom a key lets in


@dataclass(frozen=True)
class SlurmSite:
    """A site of the testbed, as the tests of engines use machines."""

    site: Site
    person: str = OPERATOR

    @property
    def address(self) -> str:
        """As this machine reaches it."""
        return self.site.host

    @property
    def key(self) -> Path:
        """Lets the person in over SSH."""
        return self.site.key

    @property
    def ssh(self) -> dict[str, str]:
        """Options of ssh for a host that only its tests know."""
        return {"UserKnownHostsFile": str(self.site.facts["known_hosts"]), "HostKeyAlias": self.site.name}

    def run_as_person(self, line: str, *, check: bool = True) -> str:
        """Run a line in the person's shell."""
        return self.site.on(f"{OPERATOR}@login", "sh", "-c", line, check=check)

    def let_reserve(self, level: str = "operator") -> None:
        """Have Slurm let the person make reservations, or not."""
        self.site.on("ctl", "sacctmgr", "-iQ", "modify", "user", OPERATOR, "set", f"adminlevel={level}")


@contextmanager
def serve_slurm(place: Path) -> Iterator[SlurmSite]:
    """A site with Slurm, which is gone afterwards."""
    with running("--accounts", "--nodes", "2") as site:
        slurm = SlurmSite(site)
        slurm.let_reserve()
        yield slurm
