"""Access to sessions' machines by ssh: for sending files, fetching results, and connecting people.

Each session has its own key, whose private half stays in its directory here. The machine makes its host key itself and
reports the public half on the console, sealed; no other is accepted. The service signs in as a user without rights, who
may use one folder and one port there.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sublet.booking.model.session import Connector
from sublet.kernel.checksums import compute_checksum
from sublet.kernel.errors import LoginNeeded, PlatformRefused, PlatformUnreachable
from sublet.platforms.names import name_session
from sublet.platforms.openstack.addresses import CloudAddresses
from sublet.platforms.openstack.bastion import NO_BASTION, Bastion
from sublet.platforms.openstack.compute import CloudCompute
from sublet.platforms.openstack.guest.door import DOOR, DOOR_NAME, PORT
from sublet.platforms.openstack.session import LEFT, VmSession
from sublet.platforms.port import quietly
from sublet.platforms.sessiondir import remove_tree
from sublet.reach.login import Login
from sublet.reach.port import Command, read_printed
from sublet.reach.unattended import UnattendedReach, by_key

if TYPE_CHECKING:
    from sublet.platforms.openstack.readers import CloudServer

ALIAS = "sublet-machine"  # the name for its host key, whatever address it has
BASTION = "bastion.log"  # the bastion's last messages
PIECE = 4 << 20  # bytes that are fetched at once
FAILURES = (PlatformRefused, PlatformUnreachable, LoginNeeded)


@dataclass(frozen=True, slots=True)
class DoorSettings:
    """How machines are reached, by a platform's settings."""

    address: str = ""  # `fixed`, `floating`; empty: not at all
    port: int = 0
    floating_network: str = ""
    bastion: Bastion = NO_BASTION
    has_network: bool = True  # whether machines have a network at all

    @property
    def is_open(self) -> bool:
        """Whether machines are reached by ssh."""
        return bool(self.address)

    def describe(self) -> str:
        """Describe how files and people reach a machine."""
        if not self.is_open:
            return "reached by its console alone"
        through = f" through {self.bastion.host}" if self.bastion.host else ""
        return f"reached by ssh{through} at {'a floating IP' if self.address == 'floating' else 'its own address'}"


@dataclass
class MachineDoors:
    """The ssh connections to the machines of one service."""

    compute: CloudCompute
    settings: DoorSettings
    home: Path
    _reaches: dict[str, UnattendedReach] = field(default_factory=dict)

    @property
    def addresses(self) -> CloudAddresses:
        """Neutron's addresses."""
        return CloudAddresses(self.compute.calls)

    async def bring(self, session: VmSession, name: str) -> None:
        """Send the session's files, once; `name` is its server's name, for a floating IP that may be allocated."""
        archive = session.root / "sent.tar.gz"
        if not archive.exists():
            part = archive.with_suffix(".part")
            await asyncio.to_thread(session.pack_into, part)
            part.rename(archive)
        async with self._enter(session, name) as reach:
            await reach.send(archive, f"{DOOR}/in", quietly)
        session.note("sent", "")
        archive.unlink(missing_ok=True)

    async def fetch(self, session: VmSession, name: str, size: int, digest: str) -> None:
        """Fetch the archive of the results and check it; parts from an earlier try aren't fetched again."""
        part = session.root / f"{LEFT}.fetched"
        part.touch(0o600)
        async with self._enter(session, name) as reach:
            while (at := part.stat().st_size) < size:
                piece = await reach.read(f"{DOOR}/left", at, min(PIECE, size - at))
                if not piece:
                    raise PlatformUnreachable(platform=session.platform, why="the archive of what it left is cut short")
                await asyncio.to_thread(_append, part, piece)
        if await asyncio.to_thread(compute_checksum, part, "sha256") != digest:
            part.unlink()
            why = "the archive of what it left is not the one that its machine told of"
            raise PlatformUnreachable(platform=session.platform, why=why)
        part.rename(session.root / LEFT)

    async def stop(self, session: VmSession, name: str) -> bool:
        """Order the session's end; return False if the order couldn't be given."""
        if not session.heard.door or not (session.read_note("address") or self.settings.address == "fixed"):
            return False
        try:
            async with self._enter(session, name) as reach:
                await reach.run(Command(("touch", f"{DOOR}/stop"), read_printed, seconds=20))
        except FAILURES:
            return False
        return True

    async def connect(self, session: VmSession, name: str) -> Connector | str:
        """Return where people connect to the session, or a sentence why they can't."""
        try:
            async with self._enter(session, name) as reach:
                place = await reach.tunnel("program", "127.0.0.1", PORT)
        except FAILURES as error:
            return f"it can't be connected to yet: {error.message}"
        return Connector(session.read("job.json")["connects"], "AVAILABLE", "HTTP", place)

    async def leave(self, key: str) -> None:
        """Close the connection to one machine."""
        reach = self._reaches.pop(key, None)
        if reach:
            await reach.untunnel("program")
            await reach.close()
        await asyncio.to_thread(remove_tree, self._control(key))

    async def release(self, name: str) -> bool:
        """Release the floating IPs of a server, and return whether there were any."""
        return self.settings.address == "floating" and await self.addresses.release(name)

    async def list_names(self, prefix: str) -> list[str]:
        """List the names of servers that floating IPs were allocated for."""
        return await self.addresses.list_names(prefix) if self.settings.address == "floating" else []

    async def close(self) -> None:
        """Close all connections."""
        for reach in self._reaches.values():
            await reach.close()
        self._reaches.clear()

    def _control(self, key: str) -> Path:
        return self.home / "doors" / name_session(key)

    @asynccontextmanager
    async def _enter(self, session: VmSession, name: str) -> AsyncIterator[UnattendedReach]:
        if session.key not in self._reaches:
            address = session.read_note("address") or await self._find_address(session, name)
            self._reaches[session.key] = self._open(session, address)
        with self.settings.bastion.explain_failures(session.platform, session.root / BASTION):
            yield self._reaches[session.key]

    async def _find_address(self, session: VmSession, name: str) -> str:
        id = session.read_note("id")
        if self.settings.address == "floating":
            address = await self.addresses.have_floating(self.settings.floating_network, id, name)
        else:
            address = _choose_address(await self.compute.find_server(id), session.platform)
        session.note("address", address)
        return address

    def _open(self, session: VmSession, address: str) -> UnattendedReach:
        door = session.heard.door or {}
        known = session.root / "known_hosts"
        known.write_text(f"{ALIAS} {door['host_key']}\n")
        key = str(session.root / "door_key")
        options = {
            **by_key(key),
            "IdentityAgent": "none",
            "HostKeyAlias": ALIAS,
            "UserKnownHostsFile": f'"{known}"',
            "GlobalKnownHostsFile": "/dev/null",
            "UpdateHostKeys": "no",
        }
        if self.settings.bastion.host:
            options["ProxyCommand"] = self.settings.bastion.write_command(session.root / BASTION)
        login = Login(
            address,
            control=self._control(session.key),
            platform=session.platform,
            user=DOOR_NAME,
            port=int(door["port"]),
            options=options,
        )
        return UnattendedReach(login, key)


def _choose_address(server: CloudServer | None, platform: str) -> str:
    if server is None or not server.addresses:
        why = "its virtual machine has no address in a network"
        raise PlatformRefused(platform=platform, why=why, hint="Set the platform's `network`.")
    return server.addresses[0]


def _append(file: Path, piece: bytes) -> None:
    with file.open("ab") as opened:
        opened.write(piece)
