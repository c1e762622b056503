"""Sublet's own access point: run as the person, for their jobs, where pilots can reach it."""

from __future__ import annotations

import asyncio
import fcntl
import getpass
import json
import os
import re
import secrets
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from sublet.annexes.pilots.address import can_listen, free_port, is_here
from sublet.annexes.pilots.ground import Ground, daemons_configuration, tools_configuration
from sublet.annexes.pilots.keeping import keep, keep_first, make_private
from sublet.annexes.pilots.master import Master
from sublet.annexes.pilots.tokens import OWNER_MAY, PILOT_MAY, PILOTS, POOL, Signer, expiry, new_key
from sublet.kernel.errors import AccessPointFailed, AccessPointRefused, SubletError
from sublet.kernel.short_paths import shorten
from sublet.platforms.htcondor.configuration import PLACES
from sublet.platforms.htcondor.release import Release
from sublet.platforms.htcondor.slots import to_schedds, to_slots
from sublet.platforms.htcondor.tools import Tools
from sublet.reach.local import LocalReach
from sublet.reach.target import private

PATIENCE = 30.0  # seconds in which it must answer
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,100}")
_JOB = re.compile(rb"0*[1-9]\d*\.\d+")  # cluster and number; 0.0 is the queue itself, and 01.-1 a whole cluster
TOKEN_LIFE = timedelta(days=30)  # of the owner's own token, renewed after half of it


@dataclass(frozen=True)
class Contact:
    """What a pilot must know to find an access point."""

    collector: str  # to which it reports, and which finds the schedd and brokers connections
    schedd: str  # the name of the schedd that it attaches to
    owner: str  # the owner's identity at the schedd: `researcher@ap.example`

    @property
    def user(self) -> str:
        """The owner's user name in jobs."""
        return self.owner.partition("@")[0]


class OwnAccessPoint:
    """An access point below a directory; it outlives the service, and is found again by its configuration's path."""

    kind = "own"

    def __init__(self, directory: Path, release: Release) -> None:
        """Prepare the access point without creating anything."""
        self.directory, self.release = directory, release
        self.note = ""  # why the machine's own isn't used, if it has one
        self.tools = Tools(release, str(directory / "tools.conf"))
        self.master = Master(directory / "daemons.conf", directory / "log")

    @property
    def ground(self) -> Ground:
        """The decisions about the access point; raises AccessPointFailed if there are none yet."""
        try:
            values = json.loads((self.directory / "ground.json").read_bytes())
        except FileNotFoundError:
            raise AccessPointFailed(why="it was never set up", logs=self.directory / "log") from None
        return Ground(**{**values, "sockets": self._sockets, "lease": timedelta(seconds=values["lease"])})

    @property
    def _sockets(self) -> str:
        return str(shorten(self.directory / "sockets"))

    def settle(
        self, address: str, *, bind: str = "", port: int = 0, schedd: bool = True, lease: timedelta | None = None
    ) -> Ground:
        """Configure the access point: name, port and keys are kept; address and lease may change at the next start."""
        if os.geteuid() == 0:
            raise AccessPointFailed(
                why="an access point of one's own is not run as root",
                hint="Use Sublet as an ordinary user, or set up HTCondor for the whole machine.",
            )
        for place in ("", *PLACES.values(), "tools", "tools/tokens.d", "tools/log"):
            make_private(self.directory / place)
        for name in (POOL, PILOTS):
            keep_first(self.directory / "passwords.d" / name, new_key())
        try:
            before = self.ground
        except AccessPointFailed:
            before = Ground(
                directory=str(self.directory),
                sockets=self._sockets,
                user=getpass.getuser(),
                domain=f"{secrets.token_hex(4)}.sublet",
                address=address,
                port=port or free_port(bind or address),
            )
        ground = replace(
            before, address=address, bind=bind, port=port or before.port, schedd=schedd, lease=lease or before.lease
        )
        keep(
            self.directory / "ground.json",
            json.dumps({**asdict(ground), "lease": ground.lease.total_seconds()}).encode(),
        )
        return ground

    @property
    def gathering(self) -> Tools:
        """The tools that see pilots: the same as for jobs."""
        return self.tools

    @property
    def contact(self) -> Contact:
        """What a pilot must know to find the access point."""
        ground = self.ground
        return Contact(ground.collector, ground.name, ground.owner)

    @property
    def lease(self) -> timedelta:
        """How long a job survives a lost connection to its node."""
        return self.ground.lease

    def has_jobs(self) -> bool:
        """Whether there are jobs in its queue, which mustn't be left behind."""
        try:
            with (self.directory / "spool/job_queue.log").open("rb") as file:
                return has_queued(file)
        except FileNotFoundError:
            return False

    async def start(self, now: datetime) -> None:
        """Make sure that it runs as configured, and answers; of concurrent callers only one starts it."""
        with (self.directory / "start.lock").open("w") as lock:
            await asyncio.to_thread(fcntl.flock, lock, fcntl.LOCK_EX)
            private(self.directory / "sockets")
            ground = self.ground
            self.renew(now)
            if self._write(ground) and self.master.pid() is not None:
                await self.master.stop()
            if self.master.pid() is None:
                await self.master.stop()  # a master that was killed may have left daemons
                _check(ground)
                self.master.start(self.release)
            await self._wait_for_answer(ground)

    async def stop(self) -> None:
        """Stop the access point; the queue is kept, and running jobs are found again if it is restarted soon."""
        await self.master.stop()

    def renew(self, now: datetime) -> None:
        """Renew the token of the owner's tools after half of its lifetime."""
        file = self.directory / "tools/tokens.d/owner"
        if file.exists() and expiry(file.read_text()) - now > TOKEN_LIFE / 2:
            return
        ground = self.ground
        token = self._signer(POOL).mint(ground.owner, TOKEN_LIFE, now, [*OWNER_MAY, "ADVERTISE_SCHEDD"])
        keep(file, f"{token}\n".encode())

    async def pilot_tokens(self, lifetime: timedelta, now: datetime) -> Mapping[str, str]:
        """Return a token with which a pilot can attach and report."""
        return {"pilot": self._signer(PILOTS).mint(self.ground.owner, lifetime, now, PILOT_MAY)}

    def keep_token(self, pilot: str, token: str) -> None:
        """Store the token with which only the owner can stop a pilot."""
        keep(self._pilot_file(pilot), f"{token}\n".encode())

    def drop_token(self, pilot: str) -> None:
        """Delete a pilot's token."""
        self._pilot_file(pilot).unlink(missing_ok=True)

    def _pilot_file(self, pilot: str) -> Path:
        if not _NAME.fullmatch(pilot):
            raise AccessPointRefused(why=f"{pilot!r} can't be the name of a pilot")
        return self.directory / "tools/tokens.d" / f"pilot-{pilot}"

    def _signer(self, name: str) -> Signer:
        return Signer((self.directory / "passwords.d" / name).read_bytes(), name, self.ground.domain)

    def _write(self, ground: Ground) -> bool:
        """Write the configuration; return whether that of the daemons has changed."""
        tools = tools_configuration(ground, self.release, str(self.directory / "tools"))
        keep(self.directory / "tools.conf", tools.encode())
        text = daemons_configuration(ground, self.release).encode()
        file = self.directory / "daemons.conf"
        if file.exists() and file.read_bytes() == text:
            return False
        keep(file, text)
        return True

    async def _wait_for_answer(self, ground: Ground) -> None:
        """Wait until its collector answers and, if it has a schedd, knows the schedd."""
        here = LocalReach("access point")
        command = to_schedds(self.tools) if ground.schedd else to_slots(self.tools)
        deadline = time.monotonic() + PATIENCE
        while True:
            self.master.check()
            try:
                if await here.run(command) or not ground.schedd:
                    return
                why = "its schedd did not appear"
            except SubletError as error:
                why = error.message
            if time.monotonic() > deadline:
                raise AccessPointFailed(why=f"{why}\n  {self.master.last_words()}", logs=self.directory / "log")
            await asyncio.sleep(0.1)


def has_queued(log: Iterable[bytes]) -> bool:
    """Whether a schedd's queue log has jobs that were created (101) and not destroyed (102)."""
    jobs: set[bytes] = set()
    for line in log:
        act, _, rest = line.partition(b" ")
        key = rest.split(None, 1)[0] if rest.strip() else b""
        if act == b"101" and _JOB.fullmatch(key):
            jobs.add(key)
        elif act == b"102":
            jobs.discard(key)
    return bool(jobs)


def _check(ground: Ground) -> None:
    """Refuse an address or a port that can't be used, before HTCondor fails with its own message."""
    here = ground.bind or ground.address
    if not is_here(here):
        raise AccessPointFailed(
            why=f"{here} is not an address of this machine",
            hint="Set `address` in the section [annex] of sublet.toml to one that nodes can connect to; if that is"
            " another machine's that passes connections on, set `bind` to this machine's own.",
        )
    if not can_listen(here, ground.port):
        raise AccessPointFailed(
            why=f"another program listens on port {ground.port} of {here}",
            hint="Set `port` in the section [annex] of sublet.toml to another one.",
        )
