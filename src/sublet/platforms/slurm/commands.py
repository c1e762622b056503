"""The commands that a Slurm site is asked; their output is read in `readers.py` and `rows.py`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sublet.platforms.batch.failures import Failures
from sublet.platforms.batch.scheduler import Rows
from sublet.platforms.batch.scripts import own_script
from sublet.platforms.batch.states import QueueRow
from sublet.platforms.slurm import readers as read
from sublet.platforms.slurm import rows as rows
from sublet.platforms.slurm.states import STATES
from sublet.reach.port import Command, Outcome, as_is

PACKAGE = "sublet.platforms.slurm"
AWAY = re.compile(  # the controller is away, restarting or overloaded: it is tried again
    r"unable to contact|socket timed out|connection refused|connect failure|timed out|zero bytes were transmitted"
    r"|backup controller in standby|too many requests|rate limit|resource temporarily unavailable|not responding"
    r"|communication connection failure|connection reset|slurmdbd: .* refused",
    re.IGNORECASE,
)
ACCOUNTS = 'sacctmgr --noheader --parsable2 show assoc user="$(id -un)" format=account,maxsubmit,grpsubmit'
ADMIN = 'printf "%s|" "$(id -un)"; sacctmgr --noheader --parsable2 show user "$(id -un)" format=adminlevel || :'
QOS = ("sacctmgr", "--noheader", "--parsable2", "show", "qos", "format=name,maxsubmitpu,grpsubmit")
SURVEY = {  # what a survey asks
    "nodes": Command(("sinfo", "--Node", "--noheader", "--all", f"--format={read.NODE_FORMAT}"), as_is, calls=2),
    "queues": Command(("scontrol", "show", "partition", "--oneliner"), as_is, calls=1),
    "reservations": Command(("scontrol", "show", "reservation", "--oneliner"), as_is, calls=1),
    "licenses": Command(("scontrol", "show", "licenses", "--oneliner"), as_is, calls=1),
    "config": Command(("scontrol", "show", "config"), as_is, calls=2),
    "accounts": Command(("sh", "-c", ACCOUNTS), as_is, seconds=20),
    "qos": Command(QOS, as_is, seconds=20),
}


def to_admin() -> Command[Outcome]:
    """Ask for the person's user name there and their administrative level: `ann|Operator`."""
    return Command(("sh", "-c", ADMIN), as_is, seconds=20)


def to_plan(flags: Sequence[str]) -> Command[Outcome]:
    """Ask when a job would start."""
    return Command(("sbatch", "--test-only", *flags), as_is, stdin=b"#!/bin/sh\nexit 0\n", seconds=30, calls=2)


def to_queue(failures: Failures) -> Command[Rows]:
    """List the person's own jobs, including recently ended ones; an array's queued parts share one line."""
    argv = ("squeue", "--me", "--noheader", "--states=all", f"--format={rows.QUEUE_FORMAT}")
    return Command(argv, failures.reading(rows.read_queue), calls=3)


def to_remember(ids: Sequence[str], keys: Sequence[str]) -> list[Command[Rows]]:
    """Ask what Slurm still knows of jobs that left the queue; unknown ones are left out."""
    jobs = [
        Command(("scontrol", "show", "job", "--oneliner", id), lambda outcome: rows.read_jobs(outcome.text), calls=2)
        for id in ids
    ]
    past = ("sacct", "--allocations", "--noheader", "--parsable2", "--starttime=now-30days")
    words = (*past, f"--format={rows.PAST_FORMAT}", f"--name={','.join(keys)}")
    return [*jobs, Command(words, _read_ends, seconds=30)]


def to_energy(keys: Sequence[str]) -> Command[dict[str, int]]:
    """Ask accounting for the energy of ended jobs, with their steps; empty if it can't tell."""
    words = ("sacct", "--noheader", "--parsable2", "--starttime=now-30days", f"--format={rows.ENERGY_FORMAT}")
    return Command((*words, f"--name={','.join(keys)}"), lambda outcome: rows.read_energy(outcome.text), seconds=30)


def _read_ends(outcome: Outcome) -> Rows:
    """Read what accounting says of ended jobs; jobs that a controller lost stay queued or running there for ever."""
    return {name: row for name, row in rows.read_past(outcome.text).items() if not STATES.is_active(row)}


def to_move_limit(failures: Failures, key: str, minutes: int) -> Command[str]:
    """Move Slurm's own time limit of a job."""
    return Command(own_script(PACKAGE, "extend", key, str(minutes)), failures.reading(str), calls=3)


def to_limit(key: str) -> Command[tuple[QueueRow, ...]]:
    """List a job, or its parts, as the queue has it, with its end by Slurm's limit."""
    argv = ("squeue", "--me", "--noheader", "--array", f"--name={key}", f"--format={rows.QUEUE_FORMAT}")
    return Command(argv, lambda outcome: tuple(rows.read_queue(outcome.text).values()), calls=3)


def to_give_back(failures: Failures, root: str, key: str, nodes: Sequence[str]) -> Command[str]:
    """Release some of a job's nodes."""
    return Command(own_script(PACKAGE, "give_back", root, key, *nodes), failures.reading(str))
