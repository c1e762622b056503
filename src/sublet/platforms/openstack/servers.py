"""The servers of sessions: created once, read by their consoles, stopped, and reliably deleted.

If a call to create a server is repeated, Nova creates two. So each call names a key pair that is made only for it. If
the answer to a call was lost, its key pair is deleted first, so that no delayed call can succeed, and then the server
is looked for by its name: it exists, or it never will.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from weakref import WeakValueDictionary

from sublet.booking.model.job import Job, JobState, State
from sublet.booking.model.marks import PAUSED
from sublet.booking.model.session import STOPPED, Connector, End, EndKind, describe_pause
from sublet.kernel.errors import PlatformRefused
from sublet.platforms.names import name_session
from sublet.platforms.openstack.compute import CloudCompute
from sublet.platforms.openstack.door import MachineDoors
from sublet.platforms.openstack.readers import CloudServer
from sublet.platforms.openstack.session import HeardConsole, VmSession
from sublet.platforms.openstack.states import (
    SILENT,
    UNHEARD,
    UNTOLD,
    StopWishes,
    describe_deletion,
    describe_end,
    describe_fault,
    describe_loss,
    describe_wait,
    read_refusal,
)
from sublet.platforms.openstack.transfers import SessionTransfers
from sublet.platforms.openstack.userdata import (
    MOST,
    GuestDoor,
    GuestTimes,
    UserDataTooLarge,
    describe_job,
    write_user_data,
)
from sublet.platforms.sessiondir import age

LISTENED = 1.0  # seconds between two reads of a console
SETTLED = 5.0  # seconds that a call may take from Nova's check of its key pair until the server is recorded
SILENCE = 180.0  # seconds without a heartbeat after which a machine is lost
FORCED = 120.0  # seconds after which an ignored stop is forced


@dataclass(frozen=True, slots=True)
class ServerPlace:
    """How servers are made, by a platform's settings."""

    owner: str
    image: str
    network: str
    zone: str
    security_groups: Sequence[str]
    times: GuestTimes
    patience: timedelta


@dataclass
class SessionServers:
    """The servers of one service in one project."""

    compute: CloudCompute
    place: ServerPlace
    home: Path
    doors: MachineDoors
    _listened: dict[str, float] = field(default_factory=dict)
    _locks: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)
    transfers: SessionTransfers = field(init=False)

    def __post_init__(self) -> None:
        """Set up the transfers, none of which is under way yet."""
        self.transfers = SessionTransfers(self.doors, self.name_of, lambda session: self.listen(session, 0.0))

    async def close(self) -> None:
        """Close the connections; running sessions continue."""
        await self.transfers.close()
        await self.compute.calls.close()

    @property
    def prefix(self) -> str:
        """The prefix of the names of all servers of this service."""
        return f"sublet-{self.place.owner}-"

    def name_of(self, key: str) -> str:
        """Return the name of a session's server."""
        return self.prefix + name_session(key)

    def lock(self, key: str) -> asyncio.Lock:
        """Return the lock under which anything is done about a session; it exists while someone uses it."""
        return self._locks.setdefault(key, asyncio.Lock())

    # Creating

    async def find(self, session: VmSession) -> bool:
        """Whether a session has or had a server; a call whose answer was lost is settled first."""
        if session.read_note("id"):
            return True
        if not session.read_note("asked"):
            return False
        return await self._settle_call(session)

    async def _settle_call(self, session: VmSession) -> bool:
        """Whether a call that was started has created a server; if not, it never will."""
        if await self._note_server(session):
            return True
        await self.compute.delete_key(session.read_note("asked"))
        await asyncio.sleep(SETTLED)
        if await self._note_server(session):
            return True
        (session.root / "asked").unlink(missing_ok=True)
        return False

    async def _note_server(self, session: VmSession) -> bool:
        servers = await self.compute.list_servers(self.name_of(session.key))
        if not servers:
            return False
        first, *others = sort_servers(servers)
        for other in others:
            await self.compute.delete_server(other.id)
        session.note("id", first.id)
        return True

    async def submit(self, job: Job, session: VmSession, flavor: str, image: str) -> None:
        """Create a session's server, unless there is one."""
        if await self.find(session):
            return
        packed = await asyncio.to_thread(session.pack, MOST if self.doors.settings.is_open else None)
        data = self._write_data(job, session, packed)
        count = int(session.read_note("calls") or 0) + 1
        session.note("calls", str(count))
        key = f"{self.name_of(session.key)}-{count}"
        network = await self.compute.find_network(self.place.network)
        await self.compute.create_key(key, make_public_key(session.secret))
        session.note("asked", key)
        try:
            id = await self.compute.create_server(self._describe(job, session, flavor, image, data, key, network))
        except PlatformRefused:
            await self.compute.delete_key(key)
            (session.root / "asked").unlink(missing_ok=True)
            raise
        session.note("id", id)

    def _write_data(self, job: Job, session: VmSession, packed: bytes | None) -> str:
        """Write user data with all files of a session, or if they are too large, with a note that they are sent."""
        settings, now = self.doors.settings, datetime.now(UTC)
        for awaits in (False, True) if packed is not None else (True,):
            door = GuestDoor(session.read_note("door_key.pub"), settings.port, awaits, bool(job.program.connects))
            described = describe_job(job, session.key, self.place.times, now, door)
            try:
                data = write_user_data(described, packed if packed and not awaits else b"", session.secret)
            except UserDataTooLarge as error:
                if settings.is_open and not awaits:
                    continue
                hint = "Set the platform's `address`, so that files are brought; or have the program fetch them itself."
                raise PlatformRefused(platform=self.compute.platform, why=str(error), hint=hint) from error
            session.note("awaits", "yes" if awaits else "")
            return data
        raise AssertionError("the last way returns or raises")

    def _describe(
        self, job: Job, session: VmSession, flavor: str, image: str, data: str, key: str, network: object
    ) -> Mapping[str, object]:
        server: dict[str, object] = {
            "name": self.name_of(session.key),
            "flavorRef": flavor,
            "imageRef": image,
            "networks": network,
            "user_data": data,
            "config_drive": True,
            "adminPass": session.read_note("secret"),
            "key_name": key,
            "metadata": {"sublet-owner": self.place.owner, "sublet-session": session.key},
        }
        if self.place.zone:
            server["availability_zone"] = self.place.zone
        if self.place.security_groups:
            server["security_groups"] = [{"name": name} for name in self.place.security_groups]
        return server

    # Looking

    async def list_all(self) -> dict[str, list[CloudServer]]:
        """Return the servers of this service by name, the oldest first."""
        named: dict[str, list[CloudServer]] = {}
        for server in sort_servers(await self.compute.list_servers(self.prefix)):
            named.setdefault(server.name, []).append(server)
        return named

    async def look(self, session: VmSession, servers: Sequence[CloudServer]) -> JobState:
        """Return a session's state now, after doing what it needs."""
        async with self.lock(session.key):
            if session.ended:
                return session.state()
            if not await self.find(session):
                return JobState(State.UNKNOWN)
            id = session.read_note("id")
            for other in servers:
                if other.id != id:
                    await self.compute.delete_server(other.id)
            server = next((each for each in servers if each.id == id), None) or await self.compute.find_server(id)
            return await self._judge(session, server)

    async def _judge(self, session: VmSession, server: CloudServer | None) -> JobState:
        wishes = _read_wishes(session)
        if server is None or server.status == "ERROR":
            return await self._end_unheard(session, server, wishes)
        if server.is_being_made:
            return JobState(State.QUEUED, condition=describe_wait(server))
        console = await self.listen(session, 0.0 if server.is_off else LISTENED)
        heard = session.heard
        if heard.end is not None:
            if session.count_missing(heard.end) and not server.is_off:
                self.transfers.fetch(session)
                trouble = self.transfers.find_trouble(session.key)
                words = f"it has ended, and what it left is being fetched{trouble and f': {trouble}'}"
                return JobState(State.RUNNING, started=session.began, condition=words)
            return await self._finish(session, heard.end, wishes)
        if loss := self._find_loss(session, server, heard, console or ""):
            return await self.end(session, wishes.find_end(loss.detail) or loss)
        if session.read_note("awaits") and heard.door and not (session.root / "sent").exists():
            self.transfers.bring(session)
        return await self._keep_time(session, server, wishes)

    def _find_loss(self, session: VmSession, server: CloudServer, heard: HeardConsole, console: str) -> End | None:
        """Return the end of a session if nothing more can be expected of its machine, else None."""
        if server.is_off:
            kind = EndKind.NODE_LOST if heard.began else EndKind.NOT_STARTED
            return End(kind, detail=describe_loss(read_refusal(console) or UNTOLD, console))
        if not heard.began:
            up = datetime.now(UTC) - (server.launched or datetime.now(UTC))
            words = read_refusal(console) or (self._find_silence(session) if up > self.place.patience else "")
            return End(EndKind.NOT_STARTED, detail=describe_loss(words, console)) if words else None
        silent = time.time() - heard.at
        if server.status == "ACTIVE" and silent > SILENCE and self._is_fresh(session):
            return End(EndKind.NODE_LOST, detail=describe_loss(SILENT.format(seconds=silent), console))
        return None

    def _find_silence(self, session: VmSession) -> str:
        """Return why a machine that has been up for long hasn't begun; empty while its files are being sent."""
        patience = self.place.patience.total_seconds()
        if session.read_note("awaits") and session.heard.door and not (session.root / "sent").exists():
            trouble = self.transfers.find_trouble(session.key, patience)
            return trouble and f"its files could not be brought: {trouble}"
        is_sent = (session.root / "sent").exists() and age(session.root / "sent") < patience
        return "" if is_sent else UNHEARD

    def _is_fresh(self, session: VmSession) -> bool:
        return time.monotonic() - self._listened.get(session.key, float("-inf")) < 2 * LISTENED

    async def _keep_time(self, session: VmSession, server: CloudServer, wishes: StopWishes) -> JobState:
        """Stop a session that is over its time or was cancelled; return its state."""
        until, began = session.until, session.began
        if until and datetime.now(UTC) >= until and not wishes.cancelled_by and not wishes.is_over_time:
            session.note("timeout", "")
            await self.stop(session)
        elif wishes.cancelled_by or wishes.is_over_time:
            await self.stop(session)
        if began is None:
            return JobState(State.QUEUED, condition=self._describe_start(session))
        if server.status in ("PAUSED", "SUSPENDED"):
            return JobState(State.RUNNING, started=began, condition=describe_pause(STOPPED), marks=PAUSED)
        where: Connector | str = ""
        if session.heard.listens:
            where = await self.doors.connect(session, self.name_of(session.key))
        connector, words = (where, "") if isinstance(where, Connector) else (None, where)
        return JobState(State.RUNNING, started=began, condition=words, connector=connector)

    def _describe_start(self, session: VmSession) -> str:
        if not session.read_note("awaits") or not session.heard.door:
            return "its virtual machine is starting"
        trouble = self.transfers.find_trouble(session.key)
        return f"its files are being brought{trouble and f': {trouble}'}"

    async def listen(self, session: VmSession, older: float = LISTENED) -> str | None:
        """Read a session's console, unless that was just done; return its content if it was read."""
        now = time.monotonic()
        if now - self._listened.get(session.key, float("-inf")) < older:
            return None
        self._listened[session.key] = now
        console = await self.compute.read_console(session.read_note("id"))
        if console:
            await asyncio.to_thread(session.listen, console, time.time())
        return console

    # Ending

    async def _end_unheard(self, session: VmSession, server: CloudServer | None, wishes: StopWishes) -> JobState:
        end = session.heard.end
        if end is not None:
            return await self._finish(session, end, wishes)
        has_begun = bool(session.heard.began)
        judged = describe_fault(server, has_begun, wishes) if server else describe_deletion(has_begun, wishes)
        return await self.end(session, judged)

    async def _finish(self, session: VmSession, end: dict[str, object], wishes: StopWishes) -> JobState:
        """Put a session's results in place, record how it ended, and delete its server."""
        missing = session.count_missing(end)
        notes: dict[str, str] = {}
        words = f"{missing} of {end['pieces'] or 1} parts of what it left could not be read" if missing else ""
        if not missing:
            try:
                notes = await asyncio.to_thread(session.unpack_left, end)
            except (OSError, EOFError, ValueError) as error:
                words = f"what it left can't be unpacked: {error}"
        judged = describe_end(end, notes, wishes)
        detail = "; ".join(filter(None, (judged.detail, words)))
        return await self.end(session, End(judged.kind, judged.code, judged.signal, judged.by, detail, judged.usage))

    async def end(self, session: VmSession, end: End) -> JobState:
        """Record how a session ended, and delete its server."""
        (self.home / "leaving" / name_session(session.key)).touch(0o600)  # until it is certainly gone
        await asyncio.to_thread(session.finish, end)
        await self.transfers.forget(session.key)
        await self.remove(session.key)
        self._listened.pop(session.key, None)
        return session.state()

    async def stop(self, session: VmSession) -> None:
        """Press the power button, so that the results are written.

        Delete a machine that hasn't begun or doesn't react.
        """
        id = session.read_note("id")
        if not session.heard.began or session.heard.end:
            await self.remove(session.key)
            return
        note = session.root / "stopped"
        if not note.exists():
            await self.compute.act(id, "unpause")  # a paused machine doesn't see the button
            if await self.doors.stop(session, self.name_of(session.key)) or await self.compute.act(id, "os-stop"):
                session.note("stopped", "")
        elif age(note) > FORCED:
            await self.remove(session.key)

    async def remove(self, key: str) -> bool:
        """Delete everything of a session in the project; return whether it was gone already."""
        name = self.name_of(key)
        servers = await self.compute.list_servers(name)
        for server in servers:
            await self.compute.delete_server(server.id)
        keys = await self.compute.list_keys(f"{name}-")
        for each in keys:
            await self.compute.delete_key(each)
        is_released = not await self.doors.release(name)
        return not servers and is_released

    async def chase(self) -> None:
        """Delete again what should be deleted and still exists."""
        for note in (self.home / "leaving").iterdir():
            if await self.remove(note.name):
                note.unlink(missing_ok=True)

    async def list_left(self, older_than: timedelta) -> list[str]:
        """List the keys of sessions that have had a server for this long, or have a stray key pair or floating IP."""
        now, named, left = datetime.now(UTC), await self.list_all(), []
        for name, servers in named.items():
            if now - (servers[0].created or now) >= older_than:
                left.append(servers[0].metadata.get("sublet-session") or name.removeprefix(self.prefix))
        keys = [each.rpartition("-")[0] for each in await self.compute.list_keys(self.prefix)]
        for name in (*keys, *await self.doors.list_names(self.prefix)):
            if name not in named and not self._is_under_way(name):
                left += [name.removeprefix(self.prefix)]
        return list(dict.fromkeys(left))

    def _is_under_way(self, name: str) -> bool:
        """Whether a session of this name is being created, or runs."""
        return any(self.name_of(path.name) == name for path in (self.home / "running").iterdir())


def sort_servers(servers: Sequence[CloudServer]) -> list[CloudServer]:
    """Sort servers, the oldest first."""
    latest = datetime.max.replace(tzinfo=UTC)
    return sorted(servers, key=lambda server: (server.created or latest, server.id))


def _read_wishes(session: VmSession) -> StopWishes:
    return StopWishes(session.cancelled_by, (session.root / "timeout").exists())


def make_public_key(secret: bytes) -> str:
    """Return a public key without a private half, as Nova requires one for a key pair."""
    body = hashlib.sha256(b"sublet key " + secret).digest()
    wire = b"".join(len(part).to_bytes(4, "big") + part for part in (b"ssh-ed25519", body))
    return f"ssh-ed25519 {base64.b64encode(wire).decode()} sublet"
