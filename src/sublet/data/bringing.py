"""Bringing data to this machine, for a session whose data takes no road of its own."""

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
    """Where it is told what is being brought."""

    @property
    def staging(self) -> dict[str, str]:
        """Of each session, what is being brought for it, and how far that is."""
        ...


class CredentialOpener(Protocol):
    """Knows people's credentials."""

    async def open(self, person: str) -> Sequence[Credential]:
        """A person's, each for one place."""
        ...


class NodeSystems(Protocol):
    """Knows on which systems the nodes of platforms are, where those are others, as with annexes."""

    async def find_systems(self, platform: str) -> Sequence[tuple[Platform, str]]:
        """Each of them now, and the session there that protects what is kept for the nodes; none: it is not known."""
        ...


class StagingContext(Protocol):
    """What staging needs of the loop that it is a step of."""

    @property
    def kinds(self) -> ExecutableKinds:
        """The kinds that are installed."""
        ...

    @property
    def movers(self) -> Movers:
        """The movers that are installed."""
        ...

    @property
    def loop_state(self) -> Bringing:
        """What is shown of it."""
        ...

    @property
    def transfers(self) -> TransferLog:
        """Where it is written down how long transfers took."""
        ...

    @property
    def credentials(self) -> CredentialOpener:
        """What opens the storage that people's data is in."""
        ...

    @property
    def systems(self) -> NodeSystems:
        """Where the nodes of annexes are."""
        ...


def tell_progress(context: StagingContext, session: str, what: str) -> Progress:
    """Let those who look at the session see how far it is."""

    def tell(done: int, total: int | None) -> None:
        of = f" of {total >> 20}" if total else ""
        context.loop_state.staging[session] = f"{what}: {done >> 20}{of} MiB"

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
    """Bring data into a directory of this machine, and note how long that took; how many bytes came.

    DataNotThere says why it can't be had.
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
