"""The commands that a PBS site is asked; their output is read in `readers.py`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sublet.platforms.batch.failures import Failures, read_if_possible
from sublet.platforms.batch.scheduler import Rows
from sublet.platforms.pbs import readers as read
from sublet.reach.port import Command, Outcome, as_is

PACKAGE = "sublet.platforms.pbs"
AWAY = re.compile(
    r"cannot connect to server|connection refused|communication failure|premature end of message|timed? ?out"
    r"|server is busy|no default server|end of file|try again",
    re.IGNORECASE,
)
SURVEY = {
    "nodes": Command(("pbsnodes", "-a", "-F", "json"), as_is, calls=1),
    "queues": Command(("qstat", "-Q", "-f", "-F", "json"), as_is, calls=1),
}
OWN = """ids=$(qselect -u "$(id -un)") || exit; [ -n "$ids" ] || exit 0
qstat -t -f -F json $ids; code=$?
case $code in 35 | 153) exit 0 ;; esac; exit $code"""  # one of them has ended meanwhile, or is gone: the others count
PAST = 'ids=$(qselect -x -N "$1"); [ -n "$ids" ] || exit 0; exec qstat -x -t -f -F json $ids'


def to_queue(failures: Failures) -> Command[Rows]:
    """List the person's own jobs that are queued or running, each part of an array separately."""
    return Command(("sh", "-c", OWN), failures.reading(read.read_jobs), calls=2)


def to_remember(ids: Sequence[str], keys: Sequence[str]) -> list[Command[Rows]]:
    """Ask the server's history about ended jobs, where it keeps one."""
    return [
        Command(("sh", "-c", PAST, "sublet", f"{read.MARK}{key}"), read_if_possible(read.read_jobs), calls=2)
        for key in keys
    ]


def to_plan() -> Command[Outcome]:
    """Ask for everybody's jobs, to make a plan."""
    return Command(("qstat", "-t", "-f", "-F", "json"), as_is, seconds=30, calls=1)
