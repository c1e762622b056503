"""The commands that an OAR site is asked; their output is read in `readers.py`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta

from sublet.platforms.batch.failures import Failures
from sublet.platforms.batch.scheduler import Rows
from sublet.platforms.batch.scripts import own_script
from sublet.platforms.oar import readers as read
from sublet.reach.port import Command, Outcome, as_is

PACKAGE = "sublet.platforms.oar"
STAMP = "%Y-%m-%d %H:%M:%S"
AWAY = re.compile(  # the server or its database is away or overloaded: it is tried again
    r"cannot connect to executor|cannot connect to database|is oar started|connection refused|timed? ?out"
    r"|could not connect to server|too many (clients|connections)|server closed the connection",
    re.IGNORECASE,
)


def to_survey(properties: str = "") -> dict[str, Command[Outcome]]:
    """Ask for all nodes, or those with certain properties."""
    which = ("--sql", f"({properties})") if properties else ()
    return {"nodes": Command(("oarnodes", "-J", *which), as_is, calls=1)}


def to_queue(failures: Failures) -> Command[Rows]:
    """List the person's own jobs that are queued or running."""
    return Command(("oarstat", "-f", "-J", "-u"), failures.reading(read.read_queue), calls=1)


def to_remember(ids: Sequence[str], keys: Sequence[str]) -> list[Command[Rows]]:
    """Ask what OAR still knows of ended jobs; a session's key has no characters that are special in SQL."""
    names = ",".join(f"'{key}'" for key in keys)
    argv = ("oarstat", "-f", "-J", "--sql", f"job_name IN ({names})")
    return [Command(argv, lambda outcome: read.read_jobs(outcome.text), calls=1)]


def to_gantt(start: datetime, end: datetime) -> Command[Outcome]:
    """Ask for the plan: running and queued jobs, and everybody's reservations."""
    return Command(("oarstat", "-J", "--gantt", f"{start:{STAMP}}, {end:{STAMP}}"), as_is, seconds=30, calls=1)


def to_move_limit(failures: Failures, key: str, longer: timedelta) -> Command[str]:
    """Ask for more walltime, where the site lets users change it."""
    seconds = max(1, round(longer.total_seconds()))
    return Command(own_script(PACKAGE, "extend", key, str(seconds)), failures.reading(str), calls=1)
