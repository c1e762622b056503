"""A pilot: what a lease runs on each of its nodes, so that they take HTCondor jobs. The service alone asks for it.

What travels with the job is small and holds no secret of HTCondor's: the lease, a token that is good for one claim per
node, and where to ask. Everything else is fetched when it starts.
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
        """A lease, by its id."""
        fields = executable.fields
        reasons = f.unknown_fields(fields, FIELDS)
        lease = fields.get("lease")
        if not isinstance(lease, str) or not LEASE.fullmatch(lease):
            reasons.append(f.invalid("lease", "a pilot needs the id of its lease.", wanted=lease))
        if fields.get("carry", "") not in CARRIES:
            reasons.append(f.invalid("carry", "it is direct, spool, or left out.", wanted=fields.get("carry")))
        return reasons

    def ways(self, executable: Executable, tools: Mapping[str, str]) -> Sequence[Way]:
        """By the shell that every node has; HTCondor is looked for when it starts."""
        lease, carry = str(executable.fields["lease"]), str(executable.fields.get("carry", ""))
        return [Way("htcondor", contained=False, program=partial(program, lease, carry), asks=True)]

    def needs(self, executable: Executable) -> str:
        """Nothing but nodes of one's own."""
        return "permission to run outside a container"


def program(lease: str, carry: str, setting: Setting) -> Program:
    """The scripts, and what they need to ask."""
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
    """A script of the pilot's."""
    return files("sublet.kinds.inside").joinpath("pilot", f"{name}.sh").read_bytes()


def assign_variables(values: Mapping[str, object]) -> bytes:
    """Assignments that a shell reads; every value is quoted data."""
    return "".join(f"{name}={quote(str(value))}\n" for name, value in values.items()).encode()


PILOT = PilotKind()
