"""Runs HTCondor's own tools in the person's directory and environment, with the settings that the service provides."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass

from sublet.annexes.calls import jobs
from sublet.annexes.views.jobs import SubmittingView
from sublet.cli.output import Output
from sublet.client.link import Link
from sublet.kernel.errors import NotAtAccessPoint, NotHere, SubmitFailed

TERSE = re.compile(r"^(\d+)\.(\d+)(?:\s*-\s*\d+\.(\d+))?$", re.MULTILINE)


@dataclass(frozen=True)
class Cluster:
    """The jobs of one submission."""

    cluster: int
    first: int
    last: int

    @property
    def text(self) -> str:
        """The ids of the jobs: `12.0`, or `12.0 to 12.9`."""
        name = f"{self.cluster}.{self.first}"
        return name if self.first == self.last else f"{name} to {self.cluster}.{self.last}"


def submitting(out: Output, link: Link, annex: str) -> SubmittingView:
    """Return what the tools need to submit for an annex; print a note if the annex has no nodes yet."""
    if not link.address.local:
        raise NotAtAccessPoint
    access = link.do(jobs.submitting(annex))
    if not access.leased:
        out.note(f"{annex} has no nodes yet. Lease some with: sublet annex create {annex}")
    return access


def tool(access: SubmittingView, program: str, *words: str, stdin: str | None = None) -> str:
    """Run one of HTCondor's tools and return its output; raise SubmitFailed if it fails. Its stderr isn't captured."""
    environment = {**os.environ, **access.environment}
    typed = [access.programs[program], *words]
    try:
        done = subprocess.run(typed, input=stdin, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    except OSError as error:
        raise NotHere(f"{typed[0]} can't be run: {error.strerror}.") from error
    if done.returncode:
        raise SubmitFailed(f"{done.stdout.rstrip()}\n{SubmitFailed(program=program, code=done.returncode)}".strip())
    return done.stdout


def clusters(answer: str) -> list[Cluster]:
    """Parse the output of condor_submit -terse."""
    return [Cluster(int(number), int(first), int(last or first)) for number, first, last in TERSE.findall(answer)]
