"""The kind `pilot`: what a lease runs on each node, so that it takes HTCondor jobs. Only the service requests it.

What travels with the job is small and has no secret of HTCondor: the lease, a token for one claim per node, and where
to ask. Everything else is fetched at the start.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache, partial
from importlib.resources import files
from shlex import quote

from sublet.booking.model.job import Program
from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Executable, Request
from sublet.kinds import fields as f
from sublet.kinds.port import Callback, Kind, Setting, Way

FIELDS = ("lease", "carry")
CARRIES = ("", "direct", "spool")
LEASE = re.compile(r"[A-Za-z0-9-]{1,64}")
PLACE = ".sublet/pilot"
SCRIPTS = ("start", "node", "ask")


class PilotKind(Kind):
    """The kind `pilot`."""

    name = "pilot"
    uri = "urn:sublet:kind:executable:pilot"
    leaves_nothing = True

    def check(self, executable: Executable, request: Request) -> Sequence[Reason]:
        """Return what is wrong with the lease's id, or with `carry`."""
        fields = executable.fields
        reasons = f.unknown_fields(fields, FIELDS)
        lease = fields.get("lease")
        if not isinstance(lease, str) or not LEASE.fullmatch(lease):
            reasons.append(f.invalid("lease", "a pilot needs the id of its lease.", wanted=lease))
        if fields.get("carry", "") not in CARRIES:
            reasons.append(f.invalid("carry", "it is direct, spool, or left out.", wanted=fields.get("carry")))
        return reasons

    def ways(self, executable: Executable, tools: Mapping[str, str]) -> Sequence[Way]:
        """Return the way by the shell that every node has; HTCondor is searched for at the start."""
        lease, carry = str(executable.fields["lease"]), str(executable.fields.get("carry", ""))
        return [Way("htcondor", contained=False, program=partial(program, lease, carry), asks=True)]

    def needs(self, executable: Executable) -> str:
        """Return that it needs permission to run outside a container."""
        return "permission to run outside a container"


def program(lease: str, carry: str, setting: Setting) -> Program:
    """Build the pilot's scripts and their values."""
    callback = setting.callback or Callback((), "")
    asking = {"token": setting.secret, "urls": " ".join(callback.urls), "pin": callback.pin}
    values = {"lease": lease, "carry": carry, **asking}
    travels = {f"{PLACE}/{name}.sh": script(name) for name in SCRIPTS}
    return Program(
        argv=(setting.tool("sh"), f"{PLACE}/start.sh"),
        files={**travels, f"{PLACE}/values": assign_variables(values)},
        outlives_nodes=True,
    )


@cache
def script(name: str) -> bytes:
    """Return one of the pilot's scripts."""
    return files("sublet.kinds.inside").joinpath("pilot", f"{name}.sh").read_bytes()


def assign_variables(values: Mapping[str, object]) -> bytes:
    """Format values as shell assignments, safely quoted."""
    return "".join(f"{name}={quote(str(value))}\n" for name, value in values.items()).encode()


PILOT = PilotKind()
