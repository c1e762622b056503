"""Sends a session's results where they were asked to go, as it ends."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sublet.booking.loop.context import LoopContext
from sublet.booking.model.events import EventKind
from sublet.booking.model.marks import Mark
from sublet.booking.model.offer import Reason
from sublet.booking.model.phases import Phase
from sublet.booking.model.request import SentResults
from sublet.booking.model.session import End, Session
from sublet.data.staging import tell_progress
from sublet.kernel.errors import DataNotSent, NotFound, PlatformRefused
from sublet.kernel.faults import point
from sublet.kernel.log import log
from sublet.kernel.texts import count_text
from sublet.movers.arrival import without_secrets
from sublet.movers.port import Content

SENDING = frozenset({Mark.SENDING})
UNSENT = frozenset({Mark.UNSENT})


async def find_outputs(context: LoopContext, session: Session, end: End) -> Sequence[SentResults]:
    """The results that are to be sent after an end like this; none of what never ran."""
    offerset = await context.store.read(lambda tx: tx.offersets.get(session.offerset)) if session.started else None
    if offerset is None:
        return ()
    is_well = end.phase is Phase.COMPLETED
    return [output for output in offerset.request.outputs if is_well or output.always]


async def send_outputs(context: LoopContext, session: Session, outputs: Sequence[SentResults]) -> str:
    """Send all of them, and say in words what could not be sent; empty: nothing is missing.

    To send again what was sent before does no harm, so that a service that was killed begins anew.
    """
    point("send.before")
    failures: list[str] = []
    try:
        for output in outputs:
            try:
                await _send(context, session, output)
            except (DataNotSent, NotFound, PlatformRefused) as error:  # the others may be sent all the same
                failures.append(error.message.rstrip("."))
                await _tell(context, session, EventKind.UNSENT, error.message)
    finally:
        context.loop_state.staging.pop(session.id, None)
    point("send.after")
    kept = f"Its results are still on {session.offer.platform}: sublet result {session.id[:8]}"
    return ". ".join([*failures, kept]) if failures else ""


async def _send(context: LoopContext, session: Session, output: SentResults) -> None:
    platform = context.platforms.of(session)
    guest = platform.hosts(session.person)
    credentials = () if guest else await context.credentials.open(session.person)
    mover = context.movers.with_credentials(credentials).choose_push(output, guest=guest)
    if isinstance(mover, Reason):
        raise DataNotSent(name=output.path, location=without_secrets(output.to), why=mover.message)
    results = await platform.results(session.id)
    chosen = [(file, place) for file in results.files if (place := output.place(file.path))]
    if not chosen:
        why = "the session left no such file"
        raise DataNotSent(name=output.path, location=without_secrets(output.to), why=why)
    to = output.to if len(chosen) == 1 or output.to.endswith("/") else f"{output.to}/"
    for number, (file, place) in enumerate(chosen, 1):
        words = f"sending {file.path} ({number} of {len(chosen)}) to {without_secrets(output.to)}"
        content = Content(place, file.size, partial(platform.read, session.id, file.path))
        await mover.push(content, to, tell_progress(context, session.id, words))
        point("send.between")
    words = f"{count_text(len(chosen), 'file')} to {without_secrets(output.to)}"
    await _tell(context, session, EventKind.SENT, words)


async def _tell(context: LoopContext, session: Session, kind: EventKind, words: str) -> None:
    log.info(kind.value, session=session.id, detail=words)
    now = context.now()
    await context.store.write(lambda tx: tx.events.add(now, session.id, session.person, kind, words))
    await context.signals.announce()
