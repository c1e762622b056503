"""The Slurm site of a run: how the service reaches it, what its programs witness, and what is left on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.sites import HASTY, Site, running

USER = "service"  # gets in by its key, so that a connection that was killed is opened again by itself
NODE = "c2"  # the last one, on which the queue `shared` runs
OPTIONS = ("--nodes", "2", "--cpus", "32", "--slurm", "MinJobAge=5", *HASTY)
SETTINGS = """
[platforms.site]
kind = "slurm"
host = "{host}"
user = "{user}"
key = "{key}"
queue = "shared"
poll = "1s"
look = "0.5s"
patience = "2s"
grace = "1s"
calls = 50
[platforms.site.ssh]
UserKnownHostsFile = "{known_hosts}"
HostKeyAlias = "{name}"
ServerAliveInterval = "1"
ServerAliveCountMax = "2"
ConnectTimeout = "3"
"""


class SlurmSite:
    """A site that is up."""

    def __init__(self, site: Site) -> None:
        """Of the testbed."""
        self.site = site

    @property
    def settings(self) -> str:
        """The platform, as it stands in `sublet.toml`."""
        site = self.site
        return SETTINGS.format(
            host=site.host, user=USER, key=site.key, known_hosts=site.facts["known_hosts"], name=site.name
        )

    @property
    def home(self) -> Path:
        """The account's home, as this machine sees it."""
        return Path(self.site.facts["home"]) / USER

    @property
    def witness(self) -> str:
        """Where programs write, as the site's nodes see it."""
        return f"/home/{USER}/witness"

    def read_witness(self) -> list[str]:
        """What they wrote."""
        file = self.home / "witness"
        return file.read_text().splitlines() if file.exists() else []

    def name_directories(self) -> list[str]:
        """The sessions that have a directory there."""
        return [path.name for path in self.home.glob(".sublet/sessions/*")]

    def find_submitted(self) -> set[str]:
        """The sessions that sbatch has given a number."""
        return {path.parent.name for path in self.home.glob(".sublet/sessions/*/id")}

    def find_work(self) -> list[str]:
        """Jobs in the queue, and processes of jobs on the node."""
        jobs = self.site.on("ctl", "squeue", "-h", "-o", "job %A %j %T", check=False).splitlines()
        listed = self.site.on(NODE, "ps", "-o", "args=", "-u", USER, check=False).splitlines()
        return [*jobs, *(f"on {NODE}: {words}" for words in listed)]


@contextmanager
def running_site() -> Iterator[SlurmSite | None]:
    """A site for as long as the block runs, if there can be one; should this process be killed, it is swept."""
    with ExitStack() as stack:
        try:
            site = stack.enter_context(running(*OPTIONS))
        except pytest.skip.Exception as reason:
            print(f"note: there is no Slurm site: {reason.msg}")
            yield None
            return
        yield SlurmSite(site)
