"""Sends a session's results to the addresses in its request, as it ends."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from functools import partial

from sublet.booking.loop.context import LoopContext
from sublet.booking.model.events import EventKind
from sublet.booking.model.marks import Mark
from sublet.booking.model.offer import Reason
from sublet.booking.model.phases import Phase
from sublet.booking.model.request import Data, Request, SentResults
from sublet.booking.model.session import End, Session
from sublet.data.bringing import tell_progress
from sublet.data.executables import Movers
from sublet.data.sending import Shipment, describe_sent, send_shipment
from sublet.data.sent_tasks import SentTasks
from sublet.data.write_back import (
    CHANGED,
    BroughtVersions,
    list_changed,
    list_write_backs,
    look_at_source,
    remember_versions,
)
from sublet.kernel.errors import DataNotSent, NotFound, PlatformRefused
from sublet.kernel.faults import point
from sublet.kernel.log import log
from sublet.kernel.streams import closing
from sublet.kernel.texts import count_text
from sublet.movers.arrival import without_secrets
from sublet.movers.port import SIMPLE, Content
from sublet.platforms.brokering import PassesOn

SENDING = frozenset({Mark.SENDING})
UNSENT = frozenset({Mark.UNSENT})


async def find_outputs(context: LoopContext, session: Session, end: End) -> Sequence[SentResults]:
    """Return the results to send after this end; none if the session never ran."""
    if isinstance(context.platforms.of(session), PassesOn):
        return ()  # the other broker has the request too, and sends them
    offerset = await context.store.read(lambda tx: tx.offersets.get(session.offerset)) if session.started else None
    if offerset is None:
        return ()
    is_well = end.phase is Phase.COMPLETED
    asked = [*offerset.request.outputs, *list_write_backs(offerset.request)]
    return [output for output in asked if is_well or output.always]


async def send_outputs(context: LoopContext, session: Session, outputs: Sequence[SentResults]) -> str:
    """Send all outputs, and say what could not be sent; empty if nothing is missing.

    Sending again does no harm, so that a service that was killed can begin anew.
    """
    point("send.before")
    failures: list[str] = []
    try:
        for output in outputs:
            try:
                await _send(context, session, output)
            except (DataNotSent, NotFound, PlatformRefused) as error:  # the others may still be sent
                failures.append(error.message.rstrip("."))
                await _tell(context, session, EventKind.UNSENT, error.message)
    finally:
        context.loop_state.staging.pop(session.id, None)
    point("send.after")
    kept = f"Its results are still on {session.offer.platform}: sublet result {session.id[:8]}"
    return ". ".join([*failures, kept]) if failures else ""


async def remember_sources(context: LoopContext, session: Session, request: Request) -> None:
    """Before staging, record the versions of data that may be written back, so that changes by others are noticed."""
    if any(data.write_back for data in request.data):
        movers, guest = await _open_movers(context, session)
        await remember_versions(context.settings.home, movers, request, session.id, guest=guest)


async def forget_sources(context: LoopContext, session: Session) -> None:
    """Remove the records for writing data back and for sending results."""
    brought = BroughtVersions.find_file(context.settings.home, session.id)
    await asyncio.to_thread(brought.unlink, missing_ok=True)
    tasks = SentTasks(context.settings.home, session.id)
    await asyncio.to_thread(shutil.rmtree, tasks.folder, ignore_errors=True)


async def _open_movers(context: LoopContext, session: Session) -> tuple[Movers, bool]:
    """Return movers with the person's own credentials, and whether the person is a guest there, who has none."""
    guest = context.platforms.of(session).hosts(session.person)
    credentials = () if guest else await context.credentials.open(session.person)
    return context.movers.with_credentials(credentials), guest


async def _write_back(context: LoopContext, session: Session, output: SentResults) -> None:
    """Write data that the session changed back to its source; raise DataNotSent if others have changed it meanwhile."""
    platform = context.platforms.of(session)
    movers, guest = await _open_movers(context, session)
    mover, location = movers.choose_push(output, guest=guest), without_secrets(output.to)
    if isinstance(mover, Reason):
        raise DataNotSent(name=output.path, location=location, why=mover.message)
    source = await look_at_source(movers, Data(output.source, SIMPLE, output.to), guest=guest)
    brought = await asyncio.to_thread(BroughtVersions.of, context.settings.home, session.id)
    results = await platform.results(session.id)
    changed = list_changed(output, source, brought, results)
    for file, path in changed:
        if brought.has_changed(output.source, path, source):
            raise DataNotSent(name=file.path, location=location, why=CHANGED)
    for file, path in changed:
        content = Content(path, file.size, partial(platform.read, session.id, file.path))
        to = f"{output.to.rstrip('/')}/" if source.is_folder else output.to
        await mover.push(content, to, tell_progress(context, session.id, f"writing {file.path} back to {location}"))
        await asyncio.to_thread(brought.note_sent, output.source, path)
        point("send.between")
    if changed:
        await _tell(context, session, EventKind.SENT, f"{count_text(len(changed), 'changed file')} back to {location}")


async def _send(context: LoopContext, session: Session, output: SentResults) -> None:
    if output.source:
        return await _write_back(context, session, output)
    platform = context.platforms.of(session)
    movers, guest = await _open_movers(context, session)
    mover = movers.choose_push(output, guest=guest)
    if isinstance(mover, Reason):
        raise DataNotSent(name=output.path, location=without_secrets(output.to), why=mover.message)
    results = await platform.results(session.id)
    chosen = [(file, place) for file in results.files if (place := output.place(file.path))]
    if not chosen:
        why = "the session left no such file"
        raise DataNotSent(name=output.path, location=without_secrets(output.to), why=why)
    to = output.to if len(chosen) == 1 or output.to.endswith("/") else f"{output.to}/"
    shipment, tell = Shipment(session.id, platform, mover, chosen, to), partial(tell_progress, context, session.id)
    road = ""
    async with closing(send_shipment(shipment, movers, context.settings.home, tell, guest=guest)) as sent:
        async for file in sent:
            road = road or file.road
    await _tell(context, session, EventKind.SENT, describe_sent(len(chosen), output.to, road))
    return None


async def _tell(context: LoopContext, session: Session, kind: EventKind, words: str) -> None:
    log.info(kind.value, session=session.id, detail=words)
    now = context.now()
    await context.store.write(lambda tx: tx.events.add(now, session.id, session.person, kind, words))
    await context.signals.announce()
