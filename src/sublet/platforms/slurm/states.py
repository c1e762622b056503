"""The meaning of Slurm's states."""

from __future__ import annotations

from sublet.booking.model.session import EndKind
from sublet.platforms.batch.states import StateTable

WAITS: dict[str, str] = {  # Slurm's state → in words
    "PENDING": "waits",
    "CONFIGURING": "waits for its nodes to be ready",
    "REQUEUED": "waits again",
    "REQUEUE_FED": "waits again",
    "REQUEUE_HOLD": "is held",
    "RESV_DEL_HOLD": "is held, because its reservation is gone",
    "SPECIAL_EXIT": "is held",
}
RUNS: dict[str, str] = {
    "RUNNING": "",
    "COMPLETING": "is ending",
    "RESIZING": "is changing its size",
    "SIGNALING": "is being signalled",
    "STAGE_OUT": "is moving its data out",
    "SUSPENDED": "is suspended by the system",
    "STOPPED": "is paused",
}
ENDS: dict[str, tuple[EndKind, str]] = {
    "CANCELLED": (EndKind.CANCELLED, ""),
    "REVOKED": (EndKind.CANCELLED, "a sibling of the job ran on another cluster"),
    "TIMEOUT": (EndKind.TIMEOUT, "Slurm's time limit was reached"),
    "DEADLINE": (EndKind.TIMEOUT, "its deadline passed"),
    "OUT_OF_MEMORY": (EndKind.OUT_OF_MEMORY, "Slurm stopped it for using more memory than it had asked for"),
    "NODE_FAIL": (EndKind.NODE_LOST, "a node that it ran on went away"),
    "BOOT_FAIL": (EndKind.NODE_LOST, "its nodes could not be started"),
    "PREEMPTED": (EndKind.PREEMPTED, "Slurm gave its nodes to a job of higher priority"),
    "LAUNCH_FAILED": (EndKind.NOT_STARTED, "Slurm could not launch it"),
    "RECONFIG_FAIL": (EndKind.NOT_STARTED, "its nodes could not be made ready"),
}
STATES = StateTable("Slurm", WAITS, RUNS, ENDS, held="JobHeldUser")
