"""The meaning of LSF's states, and of its reasons for the end of a job."""

from __future__ import annotations

from sublet.booking.model.session import EndKind
from sublet.platforms.batch.states import StateTable

HELD = "PSUSP"
WAITS: dict[str, str] = {
    "PEND": "waits",
    HELD: "is held",
    "WAIT": "waits for the rest of its chunk",
    "FWD_PEND": "waits",
}
RUNS: dict[str, str] = {
    "RUN": "",
    "PROV": "waits for its nodes to be ready",
    "USUSP": "is suspended",
    "SSUSP": "is suspended by the system",
    "UNKWN": "is on a node that does not answer",
}
ENDS: dict[str, tuple[EndKind, str]] = {
    "TERM_OWNER": (EndKind.CANCELLED, ""),
    "TERM_ADMIN": (EndKind.CANCELLED, ""),
    "TERM_FORCE_OWNER": (EndKind.CANCELLED, ""),
    "TERM_FORCE_ADMIN": (EndKind.CANCELLED, ""),
    "TERM_REMOVE_HUNG_JOB": (EndKind.CANCELLED, ""),
    "TERM_RUNLIMIT": (EndKind.TIMEOUT, "LSF's run limit was reached"),
    "TERM_DEADLINE": (EndKind.TIMEOUT, "its deadline passed"),
    "TERM_WINDOW": (EndKind.TIMEOUT, "the window of its queue closed"),
    "TERM_CPULIMIT": (EndKind.TIMEOUT, "LSF's limit of processor time was reached"),
    "TERM_MEMLIMIT": (EndKind.OUT_OF_MEMORY, "LSF stopped it for using more memory than it had asked for"),
    "TERM_SWAP": (EndKind.OUT_OF_MEMORY, "LSF stopped it for using more swap than it had asked for"),
    "TERM_PREEMPT": (EndKind.PREEMPTED, "LSF gave its nodes to a job of higher priority"),
    "TERM_ZOMBIE": (EndKind.NODE_LOST, "the node that it ran on went away"),
    "ZOMBI": (EndKind.NODE_LOST, "the node that it ran on went away"),
    "TERM_CWD_NOTEXIST": (EndKind.NOT_STARTED, "its directory is not on the node"),
    "TERM_PRE_EXEC_FAIL": (EndKind.NOT_STARTED, "LSF's own preparation failed"),
}
STATES = StateTable("LSF", WAITS, RUNS, ENDS, held=HELD)


def describe_exit(reason: str) -> str:
    """Return the keyword of a reason like `TERM_RUNLIMIT: job killed after …`; `EXIT` if it isn't a known one."""
    word = reason.partition(":")[0].strip()
    return word if word in ENDS else "EXIT"
