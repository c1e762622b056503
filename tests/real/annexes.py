"""Someone at `ap` who makes annexes, and submits HTCondor jobs that name them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

from sublet.annexes.calls import access_point, annexes
from sublet.annexes.model.annex import JOB_SUPPLIER, JOB_TARGET, TARGETED
from sublet.annexes.views.annexes import AnnexView, LeaseView
from tests.access_points import Person
from tests.real.researchers import answer_prompts
from tests.serving import eventually

SOON = 240.0  # seconds: on a busy machine
EVERY = 0.5  # seconds between two looks at a lease: each asks HTCondor twice
DESCRIPTION = """\
executable = /bin/sh
arguments = "-c '{script}'"
output = {directory}/$(Cluster).$(Process).out
transfer_executable = false
request_memory = 16M
request_disk = 1M
"""


class Leaser:
    """One person's annexes, and their jobs."""

    def __init__(self, person: Person) -> None:
        """Their service runs, or starts when it is asked."""
        self.person, self.site = person, person.site

    def creates(self, *words: str) -> tuple[int, list[str], str]:
        """Make an annex at a terminal: agree, and sign in if asked; the exit code, what was asked, what was said."""
        with self.person.terminal("annex", "create", *words) as terminal:
            terminal.reads("Send it?")
            terminal.types("y")
            asked = answer_prompts(terminal, self.site, ends=("Look at it with", "error:"))
            code = terminal.ends()
            return code, asked, terminal.seen

    def types(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command line under `annex`."""
        return self.person.types("annex", *words)

    def typed(self, *words: str) -> str:
        """What one prints that has to succeed."""
        return self.person.typed("annex", *words)

    def looks(self, name: str) -> AnnexView:
        """How an annex is."""
        return self.person.client().do(annexes.annex(name))

    def lease(self, name: str) -> LeaseView:
        """How one lease is."""
        [found] = self.looks(name).leases
        return found

    def waits(self, name: str, true: Callable[[LeaseView], bool], what: str = "", seconds: float = SOON) -> LeaseView:
        """Wait until something is true of a lease."""
        seen: list[LeaseView] = []

        def look() -> bool:
            seen.append(self.lease(name))
            return true(seen[-1])

        try:
            eventually(look, what, seconds, EVERY)
        except AssertionError as error:
            raise AssertionError(f"{error}: {seen[-1] if seen else 'nothing'}") from None
        return seen[-1]

    def submits(self, annex: str, script: str, count: int = 1, more: str = "true") -> str:
        """Submit jobs that name an annex (empty: none), with more requirements; their cluster."""
        directory = f"/home/{self.person.user}/{self.person.home}-out"
        self.person.did("mkdir", "-p", directory)
        lines = [DESCRIPTION.format(script=script, directory=directory)]
        if annex:
            owner = self.person.client().do(access_point.access_point()).owner
            lines += [f'My.{JOB_TARGET} = "{self.looks(annex).id}"', f'My.{JOB_SUPPLIER} = "{owner}"']
            lines += [f"requirements = {TARGETED} && ({more})"]
        self.person.kept("job.sub").write_text("\n".join([*lines, f"queue {count}", ""]))
        file = f"/home/{self.person.user}/{self.person.home}/job.sub"
        return self.condor("condor_submit", "-terse", file).partition(".")[0]

    def printed(self, cluster: str) -> list[str]:
        """What the jobs of a cluster printed."""
        files = self.person.file(f"{self.person.home}-out").glob(f"{cluster}.*.out")
        return [file.read_text() for file in files]

    def runs(self, cluster: str) -> bool:
        """Whether the one job of a cluster runs."""
        return self.condor("condor_q", cluster, "-af", "JobStatus").split() == ["2"]

    def idles(self, cluster: str) -> bool:
        """Whether it waits."""
        return self.condor("condor_q", cluster, "-af", "JobStatus").split() == ["1"]

    def condor(self, *words: str) -> str:
        """What one of HTCondor's own tools says."""
        return self.person.condor(*words)

    def jobs(self) -> dict[str, Any]:
        """The Slurm jobs that there are: name → state."""
        rows = self.site.on("ctl", "squeue", "-ah", "-o", "%j|%T").split()
        return dict(row.split("|") for row in rows)

    def left(self, *nodes: str) -> str:
        """What is left of us on the site: in the home directory, on nodes' disks, and processes."""
        look = "ls -A ~/.sublet/sessions ~/.sublet/incoming 2>/dev/null"
        there = self.site.on("researcher@login", "sh", "-c", look, check=False)
        files = [line for line in there.split() if not line.endswith(":")]
        for node in nodes:
            look = "ls -A /tmp; pgrep -u researcher -l condor"
            files += self.site.on(f"researcher@{node}", "sh", "-c", look, check=False).split()
        return " ".join(files)
