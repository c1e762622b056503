"""The commands that an LSF site is asked; their output is read in `readers.py`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from sublet.platforms.batch.failures import Failures, read_if_possible
from sublet.platforms.batch.scheduler import Rows
from sublet.platforms.lsf import readers as read
from sublet.reach.port import Command, Outcome, as_is

PACKAGE = "sublet.platforms.lsf"
AWAY = re.compile(
    r"batch system daemon not responding|lsf is down|lim is down|mbatchd|try later|still trying|timed? ?out"
    r"|connection refused|communication (time out|error)|slave lim configuration",
    re.IGNORECASE,
)
NONE = re.compile(r"No (unfinished )?job found|Job <[^>]*> is not found", re.IGNORECASE)
JOBS = ("env", "LSB_DISPLAY_YEAR=Y", "bjobs", "-json", "-o", read.FIELDS)
SURVEY = {
    "load": Command(("bhosts", "-w"), as_is, calls=1),
    "hosts": Command(("lshosts", "-w"), as_is, calls=1),
    "gpus": Command(("lshosts", "-gpu"), as_is, calls=1),
    "queues": Command(("bqueues", "-l"), as_is, calls=1),
}


def to_queue(failures: Failures) -> Command[Rows]:
    """List the person's own jobs, including recently ended ones."""

    def check(outcome: Outcome) -> Rows:
        if outcome.code and NONE.search(outcome.complaint):
            outcome = replace(outcome, code=0)
        return failures.reading(read.read_jobs)(outcome)

    return Command((*JOBS, "-a"), check, calls=1)


def to_remember(ids: Sequence[str], keys: Sequence[str]) -> list[Command[Rows]]:
    """Ask what LSF still knows of jobs by their names."""
    return [Command((*JOBS, "-a", "-J", key), read_if_possible(read.read_jobs), seconds=30, calls=1) for key in keys]


def to_plan() -> Command[Outcome]:
    """Ask for everybody's running jobs, to make a plan."""
    return Command((*JOBS, "-r", "-u", "all"), as_is, seconds=30, calls=1)
