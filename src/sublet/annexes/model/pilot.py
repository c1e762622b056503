"""How a pilot that couldn't do its work ends: its exit codes and their meanings."""

from __future__ import annotations

UNREACHED = 81
REFUSED = 82
NO_ACCESS_POINT = 83
NO_HTCONDOR = 84
NO_DISK = 85
BROKEN = 86

MEANING = {
    UNREACHED: "its nodes could not reach this service",
    REFUSED: "this service refused it",
    NO_ACCESS_POINT: "its nodes could not reach the access point",
    NO_HTCONDOR: "there is no HTCondor that its nodes can run",
    NO_DISK: "its nodes have no disk of their own to work on",
    BROKEN: "HTCondor did not stay up on its nodes",
}
