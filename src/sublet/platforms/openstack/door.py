"""The way into sessions' machines by ssh: files are brought, what was left is fetched, and people are connected.

Each session has a key of its own, whose private half stays in its directory here. The machine makes its host key itself
and tells its public half on the console, sealed; no other is taken. Who comes in is a user without rights, who may
use one folder there and one port.
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

ALIAS = "sublet-machine"  # by which its host key is known, whatever address it has
BASTION = "bastion.log"  # what the bastion said last
PIECE = 4 << 20  # bytes that are fetched at once
FAILURES = (PlatformRefused, PlatformUnreachable, LoginNeeded)


@dataclass(frozen=True, slots=True)
class DoorSettings:
    """How machines are reached, as a platform's settings say."""

    address: str = ""  # `fixed`, `floating`; empty: they aren't
    port: int = 0
    floating_network: str = ""
    bastion: Bastion = NO_BASTION
    has_network: bool = True  # whether machines have one at all

    @property
    def is_open(self) -> bool:
        """Whether they are reached at all."""
        return bool(self.address)

    def describe(self) -> str:
        """Which way files go and people come."""
        if not self.is_open:
            return "reached by its console alone"
        through = f" through {self.bastion.host}" if self.bastion.host else ""
        return f"reached by ssh{through} at {'a floating IP' if self.address == 'floating' else 'its own address'}"


@dataclass
class MachineDoors:
    """The ways into the machines of one service."""

    compute: CloudCompute
    settings: DoorSettings
    home: Path
    _reaches: dict[str, UnattendedReach] = field(default_factory=dict)

    @property
    def addresses(self) -> CloudAddresses:
        """Neutron."""
        return CloudAddresses(self.compute.calls)

    async def bring(self, session: VmSession, name: str) -> None:
        """Send the session's files, once; its server's name is told for what is made on the way."""
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
        """Have the archive of what it left here, whole; what came at an earlier try is not fetched again."""
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
        """Order the session's end; False, if the order could not be given."""
        if not session.heard.door or not (session.read_note("address") or self.settings.address == "fixed"):
            return False
        try:
            async with self._enter(session, name) as reach:
                await reach.run(Command(("touch", f"{DOOR}/stop"), read_printed, seconds=20))
        except FAILURES:
            return False
        return True

    async def connect(self, session: VmSession, name: str) -> Connector | str:
        """Where people connect to it; in words, why they can't."""
        try:
            async with self._enter(session, name) as reach:
                place = await reach.tunnel("program", "127.0.0.1", PORT)
        except FAILURES as error:
            return f"it can't be connected to yet: {error.message}"
        return Connector(session.read("job.json")["connects"], "AVAILABLE", "HTTP", place)

    async def leave(self, key: str) -> None:
        """Close the way into one machine."""
        reach = self._reaches.pop(key, None)
        if reach:
            await reach.untunnel("program")
            await reach.close()
        await asyncio.to_thread(remove_tree, self._control(key))

    async def release(self, name: str) -> bool:
        """Give back what leads to a server; whether there was anything."""
        return self.settings.address == "floating" and await self.addresses.release(name)

    async def list_names(self, prefix: str) -> list[str]:
        """The names of servers that floating IPs were taken for."""
        return await self.addresses.list_names(prefix) if self.settings.address == "floating" else []

    async def close(self) -> None:
        """Let go of all of them."""
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
