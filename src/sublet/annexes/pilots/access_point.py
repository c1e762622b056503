"""The access point: where a person's HTCondor jobs wait, and where pilots attach to run them.

The machine's own access point is used if it accepts the person's jobs; otherwise Sublet runs one as the person. Either
way pilots report to the person's own collector, so that no administrator has to allow anything.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal, Protocol

from sublet.annexes.pilots.address import is_here, is_portable, towards
from sublet.annexes.pilots.keeping import make_private
from sublet.annexes.pilots.machine import MachineAccessPoint, Schedd, Unusable, find_machine_schedd
from sublet.annexes.pilots.own import Contact, OwnAccessPoint
from sublet.kernel.errors import AccessPointFailed, NoHTCondor, SubletError
from sublet.platforms.htcondor.release import find_release
from sublet.platforms.htcondor.tools import Tools

LOOPBACK = "127.0.0.1"  # until it is known which system has to reach it
PORTABLE_LEASE, STEADY_LEASE = timedelta(minutes=20), timedelta(minutes=2)


@dataclass(frozen=True)
class WantedPoint:
    """An operator's settings for the access point."""

    use: Literal["any", "own", "machine"] = "any"
    address: str = ""  # where nodes connect to; empty: this machine's address towards the system
    bind: str = ""  # this machine's own address, if `address` is that of a forwarder
    port: int = 0  # 0: the first free one, from HTCondor's own on
    lease: timedelta | None = None  # None: depends on the type of machine


class AccessPoint(Protocol):
    """What the service needs of an access point; `tools` are for jobs, `gathering` for what pilots report."""

    kind: str  # "own" or "machine"
    tools: Tools
    note: str  # a remark for the person

    @property
    def gathering(self) -> Tools:
        """The tools that see pilots, and may stop them."""
        ...

    @property
    def contact(self) -> Contact:
        """What a pilot must know to find the access point."""
        ...

    @property
    def lease(self) -> timedelta:
        """How long a job survives a lost connection to its node; must be given at submission."""
        ...

    async def start(self, now: datetime) -> None:
        """Make sure that the access point runs and answers; called at the start and every half minute to repair it."""
        ...

    async def stop(self) -> None:
        """Stop what Sublet started; the queue is kept."""
        ...

    async def pilot_tokens(self, lifetime: timedelta, now: datetime) -> Mapping[str, str]:
        """Return the tokens that a new pilot needs, by file name."""
        ...

    def keep_token(self, pilot: str, token: str) -> None:
        """Store the token with which only the owner can stop a pilot."""
        ...

    def drop_token(self, pilot: str) -> None:
        """Delete a pilot's token."""
        ...


async def find_access_point(home: Path, wanted: WantedPoint, host: str = "") -> AccessPoint:
    """Find or configure the access point, without starting it; `host` is the system that must reach it.

    Earlier decisions are kept: the address changes only if the machine no longer has it, or if it is set.
    """
    release = find_release(home / "htcondor")
    own = OwnAccessPoint(home / "ap", release)
    address = _address(own, wanted, host)
    lease = wanted.lease or usual_lease()
    schedd = None
    ours = os.environ.get("CONDOR_CONFIG") == own.tools.configuration  # people may set it for HTCondor's tools
    if wanted.use != "own" and not ours and not (wanted.use == "any" and own.has_jobs()):
        make_private(own.directory)
        schedd = await find_machine_schedd(Tools(release), own.directory)
    if wanted.use == "machine" and not isinstance(schedd, Schedd):
        raise _unusable(schedd)
    machine = isinstance(schedd, Schedd)
    own.settle(address, bind=wanted.bind, port=wanted.port, schedd=not machine, lease=lease)
    if isinstance(schedd, Schedd):
        return MachineAccessPoint(own, schedd)
    if isinstance(schedd, Unusable):
        own.note = f"This machine's own is not used: {schedd.why} An administrator could add: {schedd.line}"
    return own


def _unusable(obstacle: Unusable | None) -> AccessPointFailed:
    if obstacle is None:
        return AccessPointFailed(
            why="this machine has none that takes your jobs",
            hint="Leave `use` in the section [annex] of sublet.toml away, and Sublet runs one for you.",
        )
    hint = f"An administrator can allow it by one line of its configuration: {obstacle.line}"
    return AccessPointFailed(why=f"this machine's own can't be used: {obstacle.why}", hint=hint)


def usual_lease() -> timedelta:
    """Return how long a job survives a lost connection by default, which depends on the type of machine."""
    return PORTABLE_LEASE if is_portable() else STEADY_LEASE


def read_access_point(home: Path) -> OwnAccessPoint | None:
    """Return the access point that was configured before, or None; nothing is queried or started."""
    try:
        own = OwnAccessPoint(home / "ap", find_release(home / "htcondor"))
        _ = own.ground
    except (NoHTCondor, AccessPointFailed):
        return None
    return own


def _address(own: OwnAccessPoint, wanted: WantedPoint, host: str) -> str:
    if wanted.address:
        return wanted.address
    try:
        before = own.ground.address
    except SubletError:
        before = ""
    if not host:
        return before or LOOPBACK
    return before if before not in ("", LOOPBACK) and is_here(before) else towards(host)
