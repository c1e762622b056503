"""Dependencies: which sessions a session may wait for, until when, and how it ends if one of them fails.

A session starts only when all sessions that it depends on have completed. If the queue itself supports dependencies,
the job is submitted early and gains priority while it waits; if not, or if the session needs the others' results, the
loop holds it back. On a booked platform the start is after the latest planned end of the others; if one of them ends
later than that, the start is missed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from sublet.booking.loop.context import LoopContext
from sublet.booking.loop.step import GRACE, RETRY, Step, deadline_of, fail_early
from sublet.booking.model.ends import end_sentence
from sublet.booking.model.job import JobState, State
from sublet.booking.model.marks import set_condition
from sublet.booking.model.offer import Answer, Offer, Predicted, Reason
from sublet.booking.model.phases import ACTIVE, OVER, Phase
from sublet.booking.model.session import Dependency, EndKind, Session
from sublet.booking.session_results import split_source
from sublet.kernel.errors import NotYours
from sublet.people.model.person import Person
from sublet.platforms.port import Platform
from sublet.store.tx import Tx

LOOK = timedelta(seconds=30)  # between two checks of the dependencies; their end wakes the session at once
TOLD = timedelta(minutes=1)  # how long after its queue gave a job up we wait to learn which dependency failed
FIELD = "after"


def find_planned_end(session: Session) -> datetime:
    """Return when a session is planned to end."""
    return session.until or (session.start or session.offer.start) + session.offer.duration


def latest_end(session: Session) -> datetime:
    """Return a session's planned end, by the p90 of a predicted start, so that a booked successor can't miss it."""
    end, terms = find_planned_end(session), session.offer.terms
    if session.until or not isinstance(terms, Predicted):
        return end
    return max(end, terms.p90 + session.offer.duration)


def hopeless(name: str, session: Session | None) -> Reason | None:
    """Return why nothing can depend on this session, or None."""
    if session is None:
        why = f"There is no session {name} to wait for."
        return Reason("urn:invalid-value", FIELD, why, name, nearest="the id of one that `sublet ps` lists")
    if session.phase is Phase.OFFERED:
        why = f"{_name_session(session)} is an offer that has not been accepted, so nothing can depend on it."
        return Reason("urn:invalid-value", FIELD, why, name, nearest=f"accept it first: sublet accept {session.id[:8]}")
    if session.phase in OVER - {Phase.COMPLETED}:
        why = f"{_name_session(session)} is {session.phase}, so a session that depends on it would never start."
        return Reason("urn:invalid-value", FIELD, why, name, nearest="a session that is under way or has completed")
    return None


def own(session: Session | None, person: Person) -> Session | None:
    """Return the session; raise NotYours if it is someone else's, even for an operator."""
    if session and session.person != person.name:
        raise NotYours(noun="session", hint="A session can wait for sessions of the same person only.")
    return session


def end_of_all(sessions: Sequence[Session], end: Callable[[Session], datetime]) -> datetime | None:
    """Return when the last of the active sessions ends, or None if none is active."""
    return max((end(session) for session in sessions if session.phase in ACTIVE), default=None)


def later(answer: Answer, not_before: datetime | None) -> Answer:
    """Delay a shared queue's offers until `not_before`, and drop those that would then start too late."""
    if not_before is None:
        return answer
    offers: list[Offer] = []
    reasons = [*answer.reasons]
    for offer in answer.offers:
        start = max(offer.start, not_before)
        if start > offer.latest_start > offer.start:
            why = f"The sessions that it depends on are planned to end at {start:%Y-%m-%d %H:%M} UTC, too late."
            reasons.append(Reason("urn:window-passed", FIELD, why, platform=offer.platform))
            continue
        terms = offer.terms
        if isinstance(terms, Predicted):
            p10, p50, p90 = (max(time, not_before) for time in (terms.p10, terms.p50, terms.p90))
            terms = replace(terms, p10=p10, p50=p50, p90=p90)
        latest = max(offer.latest_start, start)
        offers.append(replace(offer, start=start, latest_start=latest, terms=terms))
    return Answer(tuple(offers), tuple(reasons))


def begin(tx: Tx, session: Session) -> None:
    """Record the dependencies of an accepted session, with their current phases."""
    known = [(id, tx.sessions.get(id)) for id in session.offer.after]
    tx.dependencies.add(session.id, [_as_it_is(id, other) for id, other in known])


def settle(tx: Tx, session: Session, now: datetime) -> None:
    """Record that a session is over, and wake the sessions that depend on it."""
    for id in tx.dependencies.settle(session.id, session.phase, _words(session)):
        tx.sessions.change(id, when=tuple(ACTIVE), now=now, due=now)


def _as_it_is(id: str, session: Session | None) -> Dependency:
    if session is None:
        return Dependency(id, Phase.CANCELLED, f"{id[:8]} was deleted")
    return Dependency(id, session.phase, _words(session)) if session.phase in OVER else Dependency(id)


def _words(session: Session) -> str:
    end = f": {end_sentence(session.end)}" if session.end else ""
    return f"{_name_session(session)} is {session.phase}{end}".rstrip(".")


def _name_session(session: Session) -> str:
    return session.id[:8] if session.name == session.kind else f"{session.id[:8]} ({session.name})"


# In the loop


async def _find_dependencies(context: LoopContext, session: Session) -> list[Dependency]:
    return await context.store.read(lambda tx: tx.dependencies.of(session.id)) if session.offer.after else []


async def end_in_vain(context: LoopContext, session: Session) -> Step | None:
    """Return the step that ends a session because a dependency failed, or None."""
    for dependency in await _find_dependencies(context, session):
        if dependency.failed:
            return fail_early(context, EndKind.DEPENDENCY_FAILED, dependency.words)
    return None


async def must_wait(context: LoopContext, session: Session, platform: Platform) -> Step | None:
    """Return a step that holds a session back or ends it, or None if it may go on."""
    if step := await end_in_vain(context, session):
        return step
    booked = session.offer.is_in_calendar
    now, words = context.now(), await describe_wait(context, session)
    latest = session.start if booked else deadline_of(session)
    if not words:
        return None
    needs_results = await _needs_results(context, session)
    if booked and session.phase is Phase.WAITING and not needs_results:
        return None
    if latest and now >= latest + GRACE:
        return fail_early(context, EndKind.WINDOW_PASSED, f"It {words}, and that had not ended in time.")
    if not booked and not needs_results and await _chain(context, session, platform) is not None:
        return None
    again = now + (RETRY if booked else LOOK)
    return Step(due=min(again, latest + GRACE) if latest else again, changes=set_condition(words))


async def _needs_results(context: LoopContext, session: Session) -> bool:
    """Whether the session's data are results of other sessions, which can't be staged before those have ended."""
    offerset = await context.store.read(lambda tx: tx.offersets.get(session.offerset))
    return offerset is not None and any(split_source(data.location)[0] for data in offerset.request.data)


async def describe_wait(context: LoopContext, session: Session) -> str:
    """Return which sessions a session waits for, in words; empty if none."""
    names = [dependency.id[:8] for dependency in await _find_dependencies(context, session) if dependency.open]
    return f"waits for {', '.join(names)} to complete" if names else ""


async def jobs_before(context: LoopContext, session: Session, platform: Platform) -> tuple[str, ...]:
    """Return the jobs that the platform's own queue must wait for."""
    return await _chain(context, session, platform) or ()


async def _chain(context: LoopContext, session: Session, platform: Platform) -> tuple[str, ...] | None:
    """Return the jobs of all open dependencies if the platform has them all and can wait for them itself, else None.

    A dependency in several parts rules this out: how it ended is only known once its results are joined.
    """
    ids = [dependency.id for dependency in await _find_dependencies(context, session) if dependency.open]
    others = await context.store.read(lambda tx: [tx.sessions.get(id) for id in ids])
    there = [
        other for other in others if other and other.offer.platform == session.offer.platform and other.offer.parts == 1
    ]
    jobs = [other.job for other in there if other.job]
    return tuple(jobs) if platform.chains and len(jobs) == len(ids) else None


async def end_with_failed(context: LoopContext, session: Session, platform: Platform, state: JobState) -> Step | None:
    """End a session whose queued job depends on one that failed; cancel the job unless its queue gave it up."""
    given_up = state.end is not None and state.end.kind is EndKind.CANCELLED and not session.cancel_by
    if state.state is not State.QUEUED and not given_up:
        return None
    step = await end_in_vain(context, session)
    if step and state.state is State.QUEUED:
        await platform.cancel([session.job], "sublet, because a session that it depends on did not complete")
    if step or not given_up or not await describe_wait(context, session):
        return step
    now = context.now()
    if now - (state.ended or now) > TOLD:
        return None  # someone else took it out of the queue
    return Step(
        due=now + RETRY, changes=set_condition("its queue gave it up; checking the sessions that it depends on")
    )
