"""The meaning of Grid Engine's states: letters in qstat, and a failure number in its accounting."""

from __future__ import annotations

from sublet.booking.model.session import EndKind
from sublet.platforms.batch.states import StateTable

TITLE = "Grid Engine"
HOLD = "hold"
WAITS: dict[str, str] = {"waits": "waits", HOLD: "is held"}
RUNS: dict[str, str] = {
    "runs": "",
    "suspended": "is suspended",
    "stopped": "is suspended by the system",
    "ending": "is ending",
}
ENDS: dict[str, tuple[EndKind, str]] = {
    "deleted": (EndKind.CANCELLED, ""),
    "limit": (EndKind.TIMEOUT, "Grid Engine's limit of its time (h_rt) was reached"),
    "memory": (EndKind.OUT_OF_MEMORY, "Grid Engine's limit of its memory (h_vmem) was reached"),
    "not started": (EndKind.NOT_STARTED, "Grid Engine could not start it"),
    "node lost": (EndKind.NODE_LOST, "the node that it ran on went away"),
    "error": (EndKind.NOT_STARTED, "Grid Engine could not start it, and keeps it in the state Eqw"),
}
STATES = StateTable(TITLE, WAITS, RUNS, ENDS, held=HOLD)
LIMIT, AFTER_JOB, LOST = 37, 100, frozenset({22, 24, 25})  # values of `failed` in accounting


def read_letters(letters: str) -> str:
    """Return the meaning of qstat's letters: `qw`, `hqw`, `r`, `dr`, `Eqw`, …"""
    if "E" in letters:
        return "error"
    if "d" in letters:
        return "ending"
    if "q" in letters or "w" in letters:
        return HOLD if "h" in letters else "waits"
    if set(letters) & set("ST"):  # with its queue, or because of its node's load
        return "stopped"
    return "suspended" if "s" in letters else "runs"


def read_failure(failed: int, *, is_early: bool) -> str:
    """Return the meaning of accounting's `failed`; `ended` if the job itself has ended.

    A limit that was reached long before the end of the job's time is the memory limit.
    """
    if failed in LOST:
        return "node lost"
    if failed == LIMIT and is_early:
        return "memory"
    return {0: "ended", LIMIT: "limit", AFTER_JOB: "deleted"}.get(failed, "not started")
