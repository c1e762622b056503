"""HTCondor's commands for jobs, and the readers of their output."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from sublet.kernel.errors import AccessPointRefused
from sublet.platforms.htcondor.configuration import quote_string
from sublet.platforms.htcondor.tools import Ad, Tools, limit_attributes, read_ads, reading
from sublet.reach.port import Command, Outcome

# The values of JobStatus.
IDLE, RUNNING, REMOVED, COMPLETED, HELD, SENDING, SUSPENDED = range(1, 8)
_AT_ONCE = 200  # ids per command
_NONE = re.compile(r"couldn't find/\w+ all jobs|failed to set attribute .* by constraint", re.IGNORECASE)
_TERSE = re.compile(r"^(\d+)\.(\d+)(?:\s*-\s*(\d+)\.(\d+))?$", re.MULTILINE)


def to_submit(
    tools: Tools, description: str, *, directory: str = "", more: Sequence[str] = ()
) -> Command[list[tuple[int, int, int]]]:
    """Submit a description, in the directory that its paths are relative to; `more` are lines put before `queue`."""
    added = [word for line in more for word in ("-append", line)]
    words = ("condor_submit", "-terse", *added, "-file", "-")
    return tools.command(words, read_submitted, stdin=description.encode(), directory=directory, seconds=180)


def to_queue(
    tools: Tools, constraint: str = "true", attributes: Iterable[str] = (), everybody: bool = False
) -> Command[list[Ad]]:
    """List the jobs in the queue that meet a constraint: the user's own, or everybody's."""
    words = ["condor_q", "-json", "-constraint", constraint, *(["-allusers"] if everybody else [])]
    return tools.command([*words, *limit_attributes(attributes)], read_ads)


def to_factories(tools: Tools, constraint: str, attributes: Iterable[str] = ()) -> Command[list[Ad]]:
    """List the clusters that meet a constraint and still have jobs to materialize."""
    return tools.command(
        ("condor_q", "-factory", "-json", "-constraint", constraint, *limit_attributes(attributes)), read_ads
    )


def to_history(tools: Tools, constraint: str, attributes: Iterable[str] = (), most: int = 10_000) -> Command[list[Ad]]:
    """List the jobs that left the queue and meet a constraint, the latest first."""
    words = ("condor_history", "-json", "-constraint", constraint, "-limit", str(most), *limit_attributes(attributes))
    return tools.command(words, read_ads)


def to_edit(tools: Tools, constraint: str, changes: Mapping[str, str]) -> Command[int]:
    """Set attributes of jobs, each to a ClassAd expression.

    The answer is how many jobs, 0 if none meets the constraint.
    """
    return _edit(tools, ("-constraint", constraint), changes)


def to_edit_cluster(tools: Tools, cluster: str, changes: Mapping[str, str]) -> Command[int]:
    """Set attributes of a cluster: of its jobs, and of those that are still to be materialized."""
    return _edit(tools, (cluster,), changes)


def _edit(tools: Tools, which: Sequence[str], changes: Mapping[str, str]) -> Command[int]:
    pairs = [word for name, expression in changes.items() for word in (name, expression)]
    words = tools.words("condor_qedit", *which, *pairs)
    return Command(words, lambda outcome: 0 if _none(outcome) else reading(read_edited)(outcome))


def to_remove(tools: Tools, constraint: str, reason: str = "") -> Command[bool]:
    """Remove jobs; the answer is whether there were any."""
    return _act(tools, "condor_rm", constraint, reason)


def to_hold(tools: Tools, constraint: str, reason: str = "") -> Command[bool]:
    """Hold jobs; the answer is whether there were any."""
    return _act(tools, "condor_hold", constraint, reason)


def to_release(tools: Tools, constraint: str, reason: str = "") -> Command[bool]:
    """Release held jobs; the answer is whether there were any."""
    return _act(tools, "condor_release", constraint, reason)


def to_suspend(tools: Tools, constraint: str) -> Command[bool]:
    """Stop the processes of running jobs; the answer is whether there were any."""
    return _act(tools, "condor_suspend", constraint, "")


def to_continue(tools: Tools, constraint: str) -> Command[bool]:
    """Continue suspended jobs; the answer is whether there were any."""
    return _act(tools, "condor_continue", constraint, "")


def to_forget(tools: Tools, constraint: str) -> Command[bool]:
    """Make removed jobs that are kept in the queue leave it; the answer is whether there were any."""
    words = tools.words("condor_rm", "-forcex", "-constraint", constraint)
    return Command(words, lambda outcome: not _none(outcome) and reading(lambda _: True)(outcome))


def _act(tools: Tools, program: str, constraint: str, reason: str) -> Command[bool]:
    text = quote_string(reason)[1:-1]  # HTCondor adds the quotes itself
    words = tools.words(program, *(("-reason", text) if reason else ()), "-constraint", constraint)
    return Command(words, lambda outcome: not _none(outcome) and reading(lambda _: True)(outcome))


def _none(outcome: Outcome) -> bool:
    """Whether a tool failed only because no job meets the constraint."""
    return outcome.code != 0 and bool(_NONE.search(outcome.complaint))


def ids(jobs: Sequence[str]) -> list[str]:
    """Return constraints that name jobs such as `12` (a cluster) and `12.0`, each short enough for a command line."""
    clauses = []
    for job in jobs:
        cluster, _, number = job.partition(".")
        if not cluster.isdecimal() or (number and not number.isdecimal()):
            raise AccessPointRefused(f"{job!r} is not the id of a job.", hint="Write it as 12 or 12.0.")
        clauses.append(f"(ClusterId=={cluster}&&ProcId=={number})" if number else f"(ClusterId=={cluster})")
    return ["||".join(clauses[first : first + _AT_ONCE]) for first in range(0, len(clauses), _AT_ONCE)]


def read_submitted(text: str) -> list[tuple[int, int, int]]:
    """Read what was submitted: cluster, its first job, its last."""
    clusters = []
    for cluster, first, _, last in _TERSE.findall(text):
        clusters.append((int(cluster), int(first), int(last or first)))
    if not clusters:
        raise AccessPointRefused(why=f"condor_submit did not say what it submitted: {text.strip()[:200]}")
    return clusters


def read_edited(text: str) -> int:
    """Read for how many jobs condor_qedit set something."""
    numbers = [int(number) for number in re.findall(r"for (\d+) matching jobs?", text)]
    return max(numbers, default=0)
