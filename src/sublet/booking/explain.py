"""Why a session is in its current phase, in sentences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from sublet.booking.holds import GIVE_BACK
from sublet.booking.loop.held_back import holds_back, is_held
from sublet.booking.loop.moving_up import find_causes
from sublet.booking.model.ends import end_sentence
from sublet.booking.model.events import EventKind
from sublet.booking.model.phases import ACTIVE, GOING_ON, Phase
from sublet.booking.model.pledge import pledge_text
from sublet.booking.model.session import Session
from sublet.booking.model.staging import describe_staging
from sublet.booking.sessions import Sessions
from sublet.kernel.clock import Clock
from sublet.kernel.texts import describe_duration
from sublet.people.model.person import Person
from sublet.store.store import Store

P = Phase


def _moment(time: datetime | None, now: datetime) -> str:
    if time is None:
        return "a time not yet known"
    away = time - now
    seconds = abs(round(away.total_seconds()))
    words = "now" if seconds == 0 else f"{'in ' if away.total_seconds() > 0 else ''}{_long(seconds)}"
    return f"{time:%Y-%m-%d %H:%M:%S} UTC ({words}{' ago' if away.total_seconds() < 0 and seconds else ''})"


def _long(seconds: int) -> str:
    return describe_duration(timedelta(seconds=seconds), units=2)


SENTENCES: dict[Phase, Callable[[Session, datetime], list[str]]] = {
    P.OFFERED: lambda s, now: [
        "It is an offer: nothing runs until it is accepted. "
        + ("It is held until" if s.offer.is_held else "It can be accepted until")
        + f" {_moment(s.expires, now)}.",
        f"Accept it with: sublet accept {s.id[:8]}",
    ],
    P.ACCEPTED: lambda s, now: [f"It is accepted and starts at {_moment(s.start, now)}."],
    P.WAITING: lambda s, now: [
        f"It waits for its time: {', '.join(s.offer.nodes) or 'the platform'} "
        f"is booked for it from {_moment(s.start, now)}, because that is the offer that was accepted."
        if s.offer.is_in_calendar
        else "It has not been handed to its platform yet."
    ],
    P.PREPARING: lambda s, now: [
        f"Its data is being staged; it starts at {_moment(s.start, now)} or as soon as that is done."
    ],
    P.AVAILABLE: lambda s, now: [
        ": ".join(["It is up and can be connected to", *(c.location for c in s.connectors)])
        + ("" if s.connectors else "."),
        f"Its time ends at {_moment(s.until, now)}.",
    ],
    P.RUNNING: lambda s, now: [f"Running since {_moment(s.started, now)}; its time ends at {_moment(s.until, now)}."],
    P.RELEASING: lambda s, now: ["It has ended; its resources are being released."],
    P.REJECTED: lambda s, now: (
        [] if s.end else ["The offer was declined, or another offer of the same set was accepted."]
    ),
    P.EXPIRED: lambda s, now: [f"The offer was not accepted before {_moment(s.expires, now)}. Ask again."],
    P.COMPLETED: lambda s, now: [f"It completed at {_moment(s.ended, now)}."],
    P.FAILED: lambda s, now: [f"It failed at {_moment(s.ended, now)}."],
    P.CANCELLED: lambda s, now: [f"It was cancelled at {_moment(s.ended, now)}."],
}


@dataclass
class Explain:
    """The answer to *why is it not running?*"""

    store: Store
    now: Clock
    sessions: Sessions

    async def explain(self, name: str, person: Person) -> tuple[Session, list[str]]:
        """Return the session, and sentences that explain its state."""
        session = await self.sessions.get(name, person)
        sentences = SENTENCES[session.phase](session, self.now())
        if person.name == session.person:
            sentences += await self._explain_holds(session)
        if session.offer.after and session.phase in ACTIVE and not session.started:
            others = ", ".join(id[:8] for id in session.offer.after)
            sentences.append(f"It starts only when these have completed: {others}.")
        if session.offer.pledge and session.phase in ACTIVE | {P.OFFERED}:
            sentences.append(f"It draws on {pledge_text(session.offer.pledge)} of {session.offer.platform}.")
        if session.cancel_by and session.phase in ACTIVE:
            reason = f": {session.cancel_reason.rstrip('.')}" if session.cancel_reason else ""
            sentences.append(f"{session.cancel_by} asked to cancel it{reason}.")
        if staging := describe_staging(session.offer.staging, session.staged):
            sentences.append(f"Staging: {staging}.")
        if session.condition:
            sentences.append(f"Condition: {session.condition}.")
        sentences += await self._explain_drain(session)
        sentences += await self._explain_data(session)
        if session.paused:
            sentences.append(f"It is paused. Resume it with: sublet resume {session.id[:8]}")
        if session.end:
            sentences.append(end_sentence(session.end))
        if session.offer.terms.kind == "predicted":
            sentences.append("Its start is a prediction: others share that queue, and nothing is held.")
        return session, sentences

    async def _explain_drain(self, session: Session) -> list[str]:
        """Say what a drain of the session's platform does to it."""
        now = self.now()
        drain = await self.store.read(lambda tx: tx.drains.get(session.offer.platform, now))
        if drain is None or session.phase not in GOING_ON or session.cancel_by or session.condition == drain.sentence:
            return []
        if is_held(session):
            return [f"{drain.sentence}; it waits until that is over."] if holds_back(drain, session) else []
        end = f"; it is cancelled at {_moment(drain.ends, now)} if it has not ended by then" if drain.ends else ""
        return [f"{drain.sentence}{end or '; it may finish'}."]

    async def _explain_data(self, session: Session) -> list[str]:
        """Describe by which road the session's data were staged."""
        events = await self.store.read(lambda tx: tx.events.after(session=session.id))
        return [f"Data: {event.detail}." for event in events if event.kind is EventKind.STAGED]

    async def _explain_holds(self, session: Session) -> list[str]:
        """Describe whose unaccepted offers delay the session, and how to give back one's own."""
        now = self.now()
        if session.phase not in (P.ACCEPTED, P.WAITING) or not session.offer.is_in_calendar or session.offer.after:
            return []
        causes = await self.store.read(lambda tx: find_causes(tx, session, now))
        give_back = f" Release your own offers with: {GIVE_BACK}"
        return [f"{cause.message}{give_back if cause.nearest else ''}" for cause in causes]
