"""Brings data to this machine, for sessions whose data can't take a road of its own to the system."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Protocol

from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Data
from sublet.data.executables import ExecutableKinds, Movers
from sublet.data.model.credentials import Credential
from sublet.data.model.roads import describe_bytes
from sublet.data.model.throughput import Meter, TransferTimes
from sublet.data.recording import TransferLog
from sublet.data.resolving import bring_files, find_files
from sublet.data.sources import source_of
from sublet.data.unpacking import unpack_brought
from sublet.kernel.data_urls import shorten_location
from sublet.kernel.errors import DataNotThere
from sublet.kernel.log import log
from sublet.movers.arrival import without_secrets
from sublet.movers.port import AnyMover, Progress, Resolves
from sublet.platforms.port import Platform


class Bringing(Protocol):
    """Where staging reports its progress."""

    @property
    def staging(self) -> dict[str, str]:
        """What is being staged for each session and how far it has come, by session id."""
        ...


class CredentialOpener(Protocol):
    """Opens people's stored credentials."""

    async def open(self, person: str) -> Sequence[Credential]:
        """Return a person's credentials, each for one place."""
        ...


class NodeSystems(Protocol):
    """Finds the systems that the nodes of a platform such as an annex belong to."""

    async def find_systems(self, platform: str) -> Sequence[tuple[Platform, str]]:
        """Return each system, and the session there that protects the nodes' cached files; empty if not known."""
        ...


class StagingContext(Protocol):
    """What staging needs from the loop that runs it."""

    @property
    def kinds(self) -> ExecutableKinds:
        """The installed kinds of executable."""
        ...

    @property
    def movers(self) -> Movers:
        """The installed movers."""
        ...

    @property
    def loop_state(self) -> Bringing:
        """Where staging progress is reported."""
        ...

    @property
    def transfers(self) -> TransferLog:
        """Where transfer times are recorded."""
        ...

    @property
    def credentials(self) -> CredentialOpener:
        """The credentials for people's storage."""
        ...

    @property
    def systems(self) -> NodeSystems:
        """The systems that the nodes of annexes belong to."""
        ...


def tell_progress(context: StagingContext, session: str, what: str) -> Progress:
    """Return a progress callback that shows how far a session's staging has come."""

    def tell(done: int, total: int | None) -> None:
        of = f" of {describe_bytes(total)}" if total else ""
        context.loop_state.staging[session] = f"{what}: {describe_bytes(done)}{of}"

    return tell


def _make_room(data: Data, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    need, free = data.size or 0, shutil.disk_usage(target).free
    if need > free:
        raise DataNotThere(name=data.name, location=data.location, why=f"it has {need} bytes and {free} are free here")


async def bring_here(
    context: StagingContext,
    movers: Movers,
    mover: AnyMover | Reason,
    data: Data,
    target: Path,
    session: str,
    times: TransferTimes,
    *,
    guest: bool = False,
) -> int:
    """Bring data into a directory of this machine, record how long it took, and return how many bytes came.

    Raise DataNotThere if it can't be brought.
    """
    if isinstance(mover, Reason):
        raise DataNotThere(name=data.name, location=data.location, why=mover.message)
    progress, began = Meter(tell_progress(context, session, f"bringing {data.name}")), monotonic()
    if isinstance(mover, Resolves):
        files = await find_files(movers, mover, data, guest=guest)
        sizes = [file.sources[0][1].size or 0 for file in files]
        await asyncio.to_thread(_make_room, replace(data, size=sum(sizes)), target)
        await bring_files(data, files, target, progress)
    else:
        await asyncio.to_thread(_make_room, data, target)
        await mover.bring(data, target, progress)
    times.note(source_of(data), progress.bytes, monotonic() - began)
    if data.unpack:
        context.loop_state.staging[session] = f"unpacking {data.name}"
        await asyncio.to_thread(unpack_brought, data, target)
    log.info("data.brought", session=session, data=data.name, location=without_secrets(shorten_location(data.location)))
    return progress.bytes
