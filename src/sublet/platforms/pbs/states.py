"""The meaning of PBS's states, and of its exit status for jobs that couldn't run or were stopped."""

from __future__ import annotations

from sublet.booking.model.session import EndKind
from sublet.platforms.batch.states import StateTable

HOLD = "H"
WAITS: dict[str, str] = {
    "Q": "waits",
    "W": "waits for its time",
    "T": "is being moved",
    "M": "was moved to another server",
    HOLD: "is held",
}
RUNS: dict[str, str] = {
    "R": "",
    "B": "",  # an array with a running part
    "E": "is ending",
    "S": "is suspended by the system",
    "U": "is suspended by the system",
}
ENDS: dict[str, tuple[EndKind, str]] = {
    "deleted": (EndKind.CANCELLED, ""),
    "walltime": (EndKind.TIMEOUT, "PBS's walltime was reached"),
    "cpu time": (EndKind.TIMEOUT, "PBS's limit of processor time was reached"),
    "cores": (EndKind.CULLED, "it used more cores than it had asked for"),
    "memory": (EndKind.OUT_OF_MEMORY, "PBS stopped it for using more memory than it had asked for"),
    "not started": (EndKind.NOT_STARTED, "PBS could not start it"),
    "node lost": (EndKind.NODE_LOST, "a node that it ran on went away"),
}
STATES = StateTable("PBS", WAITS, RUNS, ENDS, held=HOLD)
FINISHED = frozenset({"F", "X"})
STOPPED: dict[int, str] = {  # exit status → why PBS ended a job that ran
    **dict.fromkeys((-4, -5, -6), "node lost"),  # the node was restarted
    **dict.fromkeys((-14, -20), "node lost"),  # one of several nodes was lost, or the first one
    **dict.fromkeys((-24, -25), "cores"),
    **dict.fromkeys((-26, -27, -31), "memory"),  # virtual memory, memory, huge pages
    -28: "cpu time",
    -29: "walltime",
    -32: "node lost",
}
KILLED = 256  # plus the signal's number
TERMINATED = "91"  # the substate of a job that was deleted, also before it had started


def describe_end(status: int, comment: str, substate: str = "") -> str:
    """Return the meaning of PBS's exit status; `ended` if the job itself has ended."""
    if status < 0:
        return STOPPED.get(status, "not started")
    is_deleted = substate == TERMINATED or (status >= KILLED and "terminated" in comment.lower())
    return "deleted" if is_deleted else "ended"
