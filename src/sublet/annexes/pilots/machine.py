"""The machine's own access point: its schedd has the jobs, and the person's own collector has the pilots.

A stock HTCondor lets people who may submit attach execution points to the schedd, but only administrators may advertise
them. So pilots advertise to the person's collector, which also brokers the schedd's connections to nodes that can't be
connected to (CCB). The schedd's address is advertised there too, so that pilots find it.
"""

from __future__ import annotations

import getpass
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from sublet.annexes.pilots.keeping import keep
from sublet.annexes.pilots.own import Contact, OwnAccessPoint
from sublet.annexes.pilots.tokens import identity
from sublet.kernel.errors import AccessPointUnreachable, SubletError
from sublet.platforms.htcondor.commands import to_queue
from sublet.platforms.htcondor.configuration import quote_string
from sublet.platforms.htcondor.slots import to_advertise, to_config, to_fetch_token, to_ping
from sublet.platforms.htcondor.tools import Tools
from sublet.reach.local import LocalReach

SCHEDD_MAY = ("READ", "WRITE")
_TOLD_FOR = 600  # seconds for which the schedd's address is valid at the person's collector
_ADDRESS, _METHODS = "SCHEDD_ADDRESS_FILE", "SEC_DEFAULT_AUTHENTICATION_METHODS"
_TAKE_TOKENS = f"{_METHODS} = $({_METHODS}) IDTOKENS"


@dataclass(frozen=True)
class MachineFacts:
    """The content of a schedd's address file."""

    address: str
    name: str
    machine: str


@dataclass(frozen=True)
class Schedd:
    """A schedd of this machine that accepts the person's jobs."""

    tools: Tools
    address_file: Path  # kept up to date by the schedd itself
    owner: str  # the person's identity at the schedd

    def read_facts(self) -> MachineFacts:
        """Read the schedd's address file."""
        return read_file(self.address_file)


@dataclass(frozen=True)
class Unusable:
    """Why the machine's schedd can't be used, and the configuration line with which an administrator could allow it."""

    why: str
    line: str


class MachineAccessPoint:
    """An access point that others run, with the person's own collector beside it."""

    kind = "machine"
    note = ""

    def __init__(self, own: OwnAccessPoint, schedd: Schedd) -> None:
        """Prepare the access point without starting anything."""
        self.own, self.schedd, self.tools = own, schedd, schedd.tools

    @property
    def gathering(self) -> Tools:
        """The tools that see pilots."""
        return self.own.tools

    @property
    def contact(self) -> Contact:
        """What a pilot must know to find the access point."""
        return Contact(self.own.ground.collector, self.schedd.read_facts().name, self.schedd.owner)

    @property
    def lease(self) -> timedelta:
        """How long a job survives a lost connection to its node."""
        return self.own.ground.lease

    async def start(self, now: datetime) -> None:
        """Make sure that pilots can report, and can find the schedd."""
        await self.own.start(now)
        ad = schedd_ad(self.schedd.read_facts())
        await LocalReach("access point").run(to_advertise(self.own.tools, "UPDATE_SCHEDD_AD", ad))

    async def stop(self) -> None:
        """Stop the person's collector; the schedd isn't ours."""
        await self.own.stop()

    async def pilot_tokens(self, lifetime: timedelta, now: datetime) -> Mapping[str, str]:
        """Return a token for the person's collector, and one that the schedd issues for the person."""
        fetch = to_fetch_token(self.schedd.tools, SCHEDD_MAY, int(lifetime.total_seconds()))
        theirs = await LocalReach("access point").run(fetch)
        return {**await self.own.pilot_tokens(lifetime, now), "schedd": theirs}

    def keep_token(self, pilot: str, token: str) -> None:
        """Store the token with which the owner can stop a pilot."""
        self.own.keep_token(pilot, token)

    def drop_token(self, pilot: str) -> None:
        """Delete a pilot's token."""
        self.own.drop_token(pilot)


async def find_machine_schedd(tools: Tools, scratch: Path) -> Schedd | Unusable | None:
    """Return this machine's schedd, None if it has none, or Unusable if it refuses the person's token."""
    here = LocalReach("access point")
    try:
        values = await here.run(to_config(tools, _ADDRESS, _METHODS))
        file = Path(values.get(_ADDRESS, ""))
        facts = read_file(file)
        await here.run(to_queue(tools, "false"))
    except SubletError:
        return None
    owner = f"{getpass.getuser()}@*"
    try:
        token = await here.run(to_fetch_token(tools, SCHEDD_MAY, 60))
        owner = identity(token)
        with tempfile.TemporaryDirectory(dir=scratch) as directory:
            keep(Path(directory) / "schedd", f"{token}\n".encode())
            await here.run(to_ping(tools, facts.address, directory))
    except SubletError as error:
        takes_tokens = re.search(r"\b(ID)?TOKENS?\b", values.get(_METHODS, ""), re.IGNORECASE)
        return Unusable(error.message, f"ALLOW_WRITE = $(ALLOW_WRITE) {owner}" if takes_tokens else _TAKE_TOKENS)
    return Schedd(tools, file, owner)


def read_file(file: Path) -> MachineFacts:
    """Read a schedd's address file."""
    try:
        return read_address(file.read_text())
    except OSError as error:
        raise AccessPointUnreachable(why=f"{file}: {error.strerror}") from error


def read_address(text: str) -> MachineFacts:
    """Parse a schedd's address file: its address, two versions, then a few attributes."""
    lines = text.splitlines()
    values = dict(line.split(" = ", 1) for line in lines[1:] if " = " in line)
    name, machine = (values.get(key, "").strip('"') for key in ("Name", "Machine"))
    if not lines or not lines[0].startswith("<") or not name:
        raise AccessPointUnreachable(why="its address file does not say where its schedd is")
    return MachineFacts(lines[0].strip(), name, machine)


def schedd_ad(facts: MachineFacts) -> str:
    """Return the schedd's ad for the person's collector, with only what a pilot needs."""
    values = {"MyType": "Scheduler", "Name": facts.name, "Machine": facts.machine}
    values |= {"MyAddress": facts.address, "ScheddIpAddr": facts.address}
    lines = [f"{name} = {quote_string(value)}" for name, value in values.items()]
    return "\n".join([*lines, f"ClassAdLifetime = {_TOLD_FOR}"]) + "\n"
