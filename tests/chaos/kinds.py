"""The faults that can be injected: what each needs, how long it lasts, and which ends it can explain."""

from __future__ import annotations

from dataclasses import dataclass

from sublet.kernel.faults import POINTS as SERVICE_POINTS
from sublet.platforms.local.shim.faults import POINTS as ALL_SHIM_POINTS

SHIM_POINTS = ALL_SHIM_POINTS[1:]  # the first one kills the service
CRASH_POINTS = (*SERVICE_POINTS, ALL_SHIM_POINTS[0])
HERE, SITE = "here", "site"  # the platforms
ON_SITE = frozenset({SITE})
# Slurm may believe that a job runs which never began: Sublet stops that at the end of its time.
LOST = frozenset({"node-lost", "unknown", "not-started", "timeout", "cancelled"})
NEVER_RAN = frozenset({"not-started", "staging-failed", "window-passed", "disk-full"})  # ends that deny that it ran


@dataclass(frozen=True)
class FaultKind:
    """One way to break something."""

    name: str
    about: str
    shortest: float = 0.0  # seconds that it lasts
    longest: float = 0.0
    needs: frozenset[str] = frozenset()  # of what a part of the run has
    details: tuple[str, ...] = ("",)  # one of these is chosen
    explains: frozenset[str] = frozenset()  # ends, other than the planned one, of sessions that it met
    hits: frozenset[str] = frozenset({HERE})  # the platforms on which it can lead to such ends
    weight: int = 2  # how often it is chosen, beside the others


def _kind(name: str, about: str, lasts: tuple[float, float] = (0.0, 0.0), **more: object) -> FaultKind:
    return FaultKind(name, about, *lasts, **more)  # type: ignore[arg-type]


FAULTS = (
    _kind("kill", "kill -9 of the service", weight=3),
    _kind("kill-near-start", "kill -9 within 0.4 s of a session's start", (0.0, 0.4), weight=4),
    _kind("kill-starting", "kill -9 while the service starts", (0.02, 1.2), weight=2),
    _kind("crash-point", "the service dies at a named point", (6.0, 6.0), details=CRASH_POINTS, weight=4),
    _kind(
        "shim-point",
        "each shim that starts dies at a named point",
        (3.0, 5.0),
        details=SHIM_POINTS,
        explains=frozenset({"not-started", "unknown"}),
        weight=3,
    ),
    _kind("freeze", "the service is frozen for longer than its claims last", (4.5, 7.0), weight=2),
    _kind(
        "full-disk",
        "the disk of SUBLET_HOME is full",
        (3.0, 6.0),
        needs=frozenset({"small-disk"}),
        explains=frozenset({"disk-full", "staging-failed", "not-started", "unknown"}),
        hits=frozenset({HERE, SITE}),
    ),
    _kind(
        "few-descriptors",
        "the service can open no more files",
        (2.0, 5.0),
        needs=frozenset({"here"}),
    ),
    _kind(
        "database-crash",
        "PostgreSQL is ended by SIGQUIT, and is away for a while",
        (1.0, 4.0),
        needs=frozenset({"postgres"}),
        weight=5,
    ),
    _kind(
        "clock",
        "the machine's clock is set by an hour, and back",
        (3.0, 6.0),
        details=("3600", "-3600"),
        needs=frozenset({"own-clock"}),  # no site: its jobs are given times of this machine's clock
        explains=frozenset({"window-passed"}),  # by that clock it has, for what had not begun
    ),
    _kind(
        "controller-crash",
        "slurmctld crashes within a second of sbatch",
        (0.0, 1.0),
        needs=ON_SITE,
        explains=LOST,
        hits=ON_SITE,
    ),
    _kind(
        "node-crash",
        "the node that runs jobs loses its power",
        (1.0, 3.0),
        needs=ON_SITE,
        explains=LOST,
        hits=ON_SITE,
    ),
    _kind("cable", "the login host falls silent", (2.0, 6.0), needs=ON_SITE),
    _kind("ssh-master", "kill -9 of the shared ssh connection", needs=ON_SITE),
)
BY_NAME = {kind.name: kind for kind in FAULTS}
