"""The meaning of OAR's states; for the state Error, a job's events say how it got there."""

from __future__ import annotations

from collections.abc import Collection

from sublet.booking.model.session import EndKind
from sublet.platforms.batch.states import StateTable

HOLD = "Hold"
WAITS: dict[str, str] = {  # OAR's state → in words
    "Waiting": "waits",
    HOLD: "is held",
    "toAckReservation": "waits for its reservation to be confirmed",
    "toLaunch": "is about to start",
    "Launching": "is about to start",
}
RUNS: dict[str, str] = {
    "Running": "",
    "Finishing": "is ending",
    "Suspended": "is suspended by the system",
    "Resuming": "is going on again",
    "toError": "is ending",
}
ENDS: dict[str, tuple[EndKind, str]] = {
    "deleted": (EndKind.CANCELLED, ""),
    "walltime": (EndKind.TIMEOUT, "OAR's walltime was reached"),
    "preempted": (EndKind.PREEMPTED, "OAR gave its nodes to a job that is not best effort"),
    "node lost": (EndKind.NODE_LOST, "a node that it ran on went away"),
    "not launched": (EndKind.NOT_STARTED, "OAR could not launch it"),
}
STATES = StateTable("OAR", WAITS, RUNS, ENDS, held=HOLD)
EVENTS: tuple[tuple[str, str], ...] = (  # OAR's event → what became of the job; the first match counts
    ("WALLTIME", "walltime"),
    ("BESTEFFORT_KILL", "preempted"),
    ("SUSPECTED_NODE_KILL", "node lost"),
    ("EXTERMINATE_JOB", "node lost"),
    ("FRAG_JOB_REQUEST", "deleted"),
    ("WORKING_DIRECTORY", "not launched"),
    ("CANNOT_CREATE_TMP_DIRECTORY", "not launched"),
    ("LAUNCHING_OAREXEC_TIMEOUT", "not launched"),
    ("SCHEDULER_PRIORITY", ""),
)


def describe_error(events: Collection[str]) -> str:
    """Return how a job ended up in the state Error; `Error` if no event says so."""
    return next((state for event, state in EVENTS if event in events and state), "Error")
