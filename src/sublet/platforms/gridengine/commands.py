"""The commands that a Grid Engine site is asked; their output is read in `readers.py` and `rows.py`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sublet.platforms.batch.failures import Failures
from sublet.platforms.batch.scheduler import Rows
from sublet.platforms.gridengine import rows
from sublet.reach.port import Command, Outcome, as_is

PACKAGE = "sublet.platforms.gridengine"
AWAY = re.compile(  # the master is away, restarting or overloaded: it is tried again
    r"can.?t connect to service|unable to (send message to|contact) qmaster|got send error|commlib error"
    r"|connection refused|timed? ?out|qmaster .* (is not|not) (running|reachable)|try again later",
    re.IGNORECASE,
)
QUEUES = 'for name in $(qconf -sql); do qconf -sq "$name"; done'
HOSTS = 'for name in $(qconf -sel); do qconf -se "$name"; done'
ENVIRONMENTS = 'for name in $(qconf -spl); do qconf -sp "$name"; done'
RESERVATIONS = """\
ids=$(qrstat -u '*' -xml | sed -n 's/.*<id>\\([0-9]*\\)<.*/\\1/p')
for id in $ids; do qrstat -ar "$id" -xml | sed 1d; done
"""
OWN = """me=$(id -un)
jobs=$(qstat -xml -u "$me") || exit
printf '%s\\n' "$jobs"
case $jobs in *"<state>h"*) ;; *) exit 0 ;; esac
for types in ho hs; do qstat -u "$me" -s $types; done |
    awk '$1 ~ /^[0-9]+$/ { print "<!-- held by others: " $1 " -->" }'
"""  # a hold of operators or of the system has the same letter as the user's own
SURVEY = {
    "nodes": Command(("qhost", "-q", "-F", "-xml"), as_is, calls=1),
    "hosts": Command(("sh", "-c", HOSTS), as_is, calls=2),
    "queues": Command(("sh", "-c", QUEUES), as_is, calls=2),
    "environments": Command(("sh", "-c", ENVIRONMENTS), as_is, calls=2),
    "complexes": Command(("qconf", "-sc"), as_is, calls=1),
}


def to_queue(failures: Failures) -> Command[Rows]:
    """List the person's own jobs that are queued or running, and those that others hold."""
    return Command(("sh", "-c", OWN), failures.reading(rows.read_queue), calls=1)


def to_remember(ids: Sequence[str], keys: Sequence[str]) -> list[Command[Rows]]:
    """Ask accounting about ended jobs; unknown ones are left out."""
    return [
        Command(("qacct", "-j", f"{rows.MARK}{key}"), lambda outcome: rows.read_past(outcome.text), seconds=60)
        for key in keys
    ]


def to_plan() -> list[Command[Outcome]]:
    """Ask for everybody's jobs and reservations, to make a plan."""
    jobs = Command(("qstat", "-r", "-xml", "-u", "*"), as_is, seconds=30, calls=1)
    return [jobs, Command(("sh", "-c", RESERVATIONS), as_is, seconds=30, calls=2)]
