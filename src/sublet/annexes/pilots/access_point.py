"""The access point: where a person's HTCondor jobs wait, and where pilots come to run them.

The machine's own is used if it has one that takes the person's jobs; else Sublet runs one as the person. Either way
pilots gather at a collector of the person's own, so that no administrator has to allow anything.
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
    """What an operator has set of it."""

    use: Literal["any", "own", "machine"] = "any"
    address: str = ""  # where nodes connect to; empty: this machine's own on the way to the system
    bind: str = ""  # this machine's own address, where `address` is one that passes connections on
    port: int = 0  # 0: the first that is free, from HTCondor's own on
    lease: timedelta | None = None  # None: by what sort of machine this is


class AccessPoint(Protocol):
    """What the service asks of one. `tools` are for jobs, `gathering` for what pilots tell."""

    kind: str  # "own" or "machine"
    tools: Tools
    note: str  # what a person should know of it

    @property
    def gathering(self) -> Tools:
        """The tools that see pilots, and may stop them."""
        ...

    @property
    def contact(self) -> Contact:
        """What a pilot must know to find it."""
        ...

    @property
    def lease(self) -> timedelta:
        """How long a job outlives a lost connection to its node; say it when submitting."""
        ...

    async def start(self, now: datetime) -> None:
        """Make sure that it runs and answers. Call it at the start and every half minute: it mends what it can."""
        ...

    async def stop(self) -> None:
        """End what Sublet started of it; the queue stays."""
        ...

    async def pilot_tokens(self, lifetime: timedelta, now: datetime) -> Mapping[str, str]:
        """The tokens that a new pilot needs, by the names of their files."""
        ...

    def keep_token(self, pilot: str, token: str) -> None:
        """Keep the token by which the owner, and nobody else, can stop a pilot."""
        ...

    def drop_token(self, pilot: str) -> None:
        """Forget a pilot's token."""
        ...


async def find_access_point(home: Path, wanted: WantedPoint, host: str = "") -> AccessPoint:
    """The access point of whoever runs this, settled but not started; `host` is the system that must reach it.

    What was settled before is kept: the address changes only when the machine has it no longer, or when it is set.
    """
    release = find_release(home / "htcondor")
    own = OwnAccessPoint(home / "ap", release)
    address = _address(own, wanted, host)
    lease = wanted.lease or usual_lease()
    schedd = None
    ours = os.environ.get("CONDOR_CONFIG") == own.tools.configuration  # who uses HTCondor's tools may have set that
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
    """How long a job outlives a lost connection to its node by what sort of machine this is, where nobody set it."""
    return PORTABLE_LEASE if is_portable() else STEADY_LEASE


def read_access_point(home: Path) -> OwnAccessPoint | None:
    """What was settled before, if anything was; nothing is asked or started."""
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
