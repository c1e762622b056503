"""Has a transfer service move data to a system: submitted once, polled, and resumed after a restart.

Which task moves an entry is noted beside it on the system, so that whoever resumes finds the task and doesn't submit
another. Files have a temporary name until they are complete, as transfers write large files in any order.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial

from sublet.booking.model.request import Data
from sublet.data.executables import Movers
from sublet.data.journeys import Journey, bring_alone, heed_cancel, publish_entry
from sublet.data.model.links import LinkedFiles
from sublet.data.model.retries import TransferRetries
from sublet.kernel.errors import DiskFull
from sublet.movers.arrival import missing
from sublet.movers.port import SIMPLE, Interrupted, TransferPhase, TransferService, TransferState
from sublet.platforms.caching import EntryState, NoWay, TakesTransfers

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 10.0  # seconds between two polls of a task
MOST_FAILURES = 30  # failed polls in a row
STARTS = 2  # attempts with a transfer that its service has lost


@dataclass(frozen=True, slots=True)
class TransferNote:
    """The transfer that brings a cache entry."""

    location: str
    target: str
    submission: str  # an idempotency key, noted before submission so that the transfer is never submitted twice
    task: str = ""  # noted after submission

    @classmethod
    def read(cls, text: str) -> TransferNote | None:
        """Parse a note, or return None if it is malformed."""
        try:
            fields: dict[str, str] = json.loads(text)
            return cls(**fields)
        except (TypeError, ValueError):
            return None


async def move_by_service(journey: Journey, data: Data, mover: object, files: LinkedFiles, entry: str) -> EntryState:
    """Bring an entry with the mover's transfer service; raise NoWay if there is none."""
    cache = journey.cache
    if not isinstance(mover, TransferService):
        raise NoWay("")
    if not isinstance(cache, TakesTransfers):
        raise NoWay(f"{journey.platform} is in no collection of {mover.name}")
    target = cache.find_collection(entry, is_folder=files.is_folder)
    move = partial(_move, journey, cache, data, mover, files, entry, target)
    return await bring_alone(journey.cache, entry, journey.tell(f"waiting for {data.name}"), move)


async def _move(
    journey: Journey,
    cache: TakesTransfers,
    data: Data,
    mover: TransferService,
    files: LinkedFiles,
    entry: str,
    target: str,
    sizes: Mapping[str, int],
) -> None:
    what = f"{mover.name} is moving {data.name} to {journey.platform}"

    def tell(state: TransferState) -> None:
        journey.tell(f"{what} ({state.why})" if state.why else what)(state.done, files.size)

    for _ in range(STARTS):
        task = await _find_task(cache, data, mover, entry, target)
        state = await watch_task(mover, data, task, tell, partial(cache.beat, entry))
        if state.phase is TransferPhase.DONE:
            await cache.accept_moved(entry, is_folder=files.is_folder)
            await publish_entry(journey.cache, entry, data, files)
            return
        await mover.stop(data.location, task)
        await cache.write_note(entry, "")
        if state.phase is TransferPhase.FULL:
            raise DiskFull(platform=journey.platform, why=state.why)
        if state.phase is TransferPhase.FAILED:
            break
    if files.links[0].url.startswith("http"):
        raise NoWay(state.why)
    raise missing(data, state.why)


async def _find_task(cache: TakesTransfers, data: Data, mover: TransferService, entry: str, target: str) -> str:
    """Return the task that moves an entry: the noted one, or a new one."""
    note = TransferNote.read(await cache.read_note(entry))
    if note is None or (note.location, note.target) != (data.location, target):
        note = TransferNote(data.location, target, await mover.reserve(data.location))
        await cache.write_note(entry, json.dumps(asdict(note)))
    if not note.task:
        note = replace(note, task=await mover.submit([(data.location, target)], note.submission))
        await cache.write_note(entry, json.dumps(asdict(note)))
    return note.task


async def watch_task(
    mover: TransferService,
    data: Data,
    task: str,
    tell: Callable[[TransferState], None],
    beat: Callable[[], Awaitable[None]] | None = None,
) -> TransferState:
    """Poll a task until it ends, calling `beat` as a heartbeat for other sessions."""
    pause, retries = FIRST_PAUSE, TransferRetries(most=MOST_FAILURES)
    while True:
        try:
            state = await mover.look(data.location, task)
            retries.failures = 0
        except Interrupted as broken:
            if retries.note_failure(has_progress=False) is None:
                raise missing(data, str(broken)) from broken
        else:
            if state.phase is not TransferPhase.MOVING:
                return state
            tell(state)
        if beat:
            await beat()
        heed_cancel()
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, LONGEST_PAUSE)


async def stop_transfers(movers: Movers, notes: Iterable[str]) -> None:
    """Stop transfers that are no longer needed.

    If a task's id was lost, submitting it again with the same key returns it.
    """
    for note in map(TransferNote.read, notes):
        mover = movers.choose(Data("", SIMPLE, note.location)) if note else None
        if note and isinstance(mover, TransferService):
            with suppress(Interrupted):
                task = note.task or await mover.submit([(note.location, note.target)], note.submission)
                await mover.stop(note.location, task)
