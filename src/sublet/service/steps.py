"""One step of a session, by its phase: what is done, and where it leads. A table, not branches."""

from __future__ import annotations

import errno
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from sublet.core.job import Job, JobState, State
from sublet.core.request import Executable, Request
from sublet.core.session import PAUSED, STOPPED, Connector, End, EndKind, Phase, Session, paused
from sublet.errors import DataNotThere, DiskFull, LoginNeeded, NotFound, PlatformRefused, PlatformUnreachable
from sublet.kinds.port import Setting, Way
from sublet.platforms.port import Platform
from sublet.service.dependencies import doomed, ended_with, jobs_before, must_wait, waited_for
from sublet.service.desk import Desk, is_clock_set
from sublet.service.ending import ask_state, cancel_job, give_up_lost, note_found, record_end, with_reason
from sublet.service.faults import point
from sublet.service.held_back import held_back
from sublet.service.layout import laid_out
from sublet.service.staging import carry, kept_in, mounts_of, stage
from sublet.service.step import GRACE, RETRY, Step, deadline_of, failed, has_outlived
from sublet.service.turns import no_turn
from sublet.shortage import find_shortage

P = Phase


async def accepted(desk: Desk, session: Session) -> Step:
    """Recorded: now it waits until it must be prepared."""
    if step := await _taken_back(desk, session):
        return step
    at = desk.now() if session.offer.after else _prepare_at(session)
    return Step(P.WAITING, at, "session.waiting", changes={"condition": ""})


async def waiting(desk: Desk, session: Session) -> Step:
    """For the time to prepare it."""
    if step := await _taken_back(desk, session) or await must_wait(desk, session, desk.platform_of(session)):
        return step
    if desk.now() >= (at := _prepare_at(session)) and (step := await held_back(desk, session)):
        return step
    if desk.now() < at:
        desk.freed.update({session.offer.platform} if session.offer.after else ())  # it may move up now
        return Step(due=at, changes={"condition": await waited_for(desk, session)})
    desk.fresh.add(session.id)
    return Step(P.PREPARING, desk.now(), "session.preparing", changes={"condition": ""})


async def preparing(desk: Desk, session: Session) -> Step:
    """Bring its data; at its start, submit it once; then it is queued, runs, or listens."""
    platform = desk.platform_of(session)
    if session.job:
        return await _queued(desk, session, platform)
    if step := await _end_unwanted(desk, session, platform):
        return step
    if step := await _found_again(desk, session, platform) or await held_back(desk, session):
        return step
    offerset = await desk.store.read(lambda tx: tx.offersets.get(session.offerset))
    if offerset is None:
        raise NotFound(noun="offer set", name=session.offerset)
    try:
        place = await platform.place(session.id)
    except DiskFull as error:
        return failed(desk, EndKind.DISK_FULL, error.message)
    if place and (step := await _staged(desk, offerset.request, platform, place, session)):
        return step
    point("stage.after")
    now = desk.now()
    deadline = deadline_of(session) or session.until
    if deadline and now >= deadline:
        return failed(desk, EndKind.WINDOW_PASSED, "It could not be started in time.")
    if session.offer.terms.kind == "booked" and session.start and now < session.start:
        return Step(due=session.start, changes={"condition": "ready; waits for its start"})
    if (
        step := await must_wait(desk, session, platform)
        or await held_back(desk, session)
        or await no_turn(desk, session)
    ):
        return step
    return await _submitted(desk, session, platform, offerset.request, place)


async def _found_again(desk: Desk, session: Session, platform: Platform) -> Step | None:
    """An earlier try may have been cut off as it submitted."""
    found = None if session.id in desk.fresh else await platform.find(session.id)
    if not found:
        desk.fresh.add(session.id)
        return None
    return Step(due=desk.now(), event="session.submitted", detail="found again", changes={"job": found})


async def _end_unwanted(desk: Desk, session: Session, platform: Platform) -> Step | None:
    """The end of what is cancelled, revoked, or waits in vain for another session."""
    found = await _found_before_cancel(desk, session, platform)
    return found or await _taken_back(desk, session) or await doomed(desk, session)


async def _found_before_cancel(desk: Desk, session: Session, platform: Platform) -> Step | None:
    """Look for what an earlier try may have submitted before it is told as cancelled; what wasn't never will be."""
    if not session.cancel_by or session.id in desk.fresh:
        return None
    with suppress(PlatformUnreachable, LoginNeeded):  # nobody can be asked; what is left there is swept later
        if step := await _found_again(desk, session, platform):
            return step
        await platform.cancel([session.id], session.cancel_by)  # another process may be about to start it
    return None


async def _staged(desk: Desk, request: Request, platform: Platform, place: Path, session: Session) -> Step | None:
    """Bring what it needs; a step only if that can't be done."""
    if why := await desk.unapproved(session, request):
        return failed(desk, EndKind.NOT_APPROVED, why)
    try:
        guest = platform.hosts(session.person)
        await stage(desk, request, platform, session.offer.way, place, session.id, guest=guest)
    except (DataNotThere, PlatformRefused) as error:
        if find_shortage(error):
            raise  # it is not the session's fault, and is tried again
        kind = EndKind.DISK_FULL if isinstance(error, DiskFull) else EndKind.STAGING_FAILED
        return failed(desk, kind, error.message)
    except OSError as error:
        if find_shortage(error):
            raise
        kind = EndKind.DISK_FULL if error.errno == errno.ENOSPC else EndKind.STAGING_FAILED
        return failed(desk, kind, str(error))
    return None


async def _submitted(desk: Desk, session: Session, platform: Platform, request: Request, place: Path | None) -> Step:
    """Hand it to the platform, once: its id is the key."""
    if why := await desk.unapproved(session, request):  # it may have been revoked while its data was brought
        return failed(desk, EndKind.NOT_APPROVED, why)
    now = desk.now()
    try:
        way = await _way(desk, session, request.executable)
        job = await _job(desk, session, way, request, place)
        desk.fresh.discard(session.id)
        if place:
            await carry(desk, platform, session.id)
        if is_clock_set():  # the times in it are not those of the clock that it would run by
            return Step(due=now)
        point("submit.before")
        id = await platform.submit(job, session.id)
    except PlatformRefused as error:
        if find_shortage(error):
            raise
        kind = EndKind.DISK_FULL if isinstance(error, DiskFull) else EndKind.NOT_STARTED
        return failed(desk, kind, error.message)
    point("submit.after")
    started = now if session.offer.terms.kind == "booked" else None
    changes = {"job": id, "condition": "", "started": started}
    return Step(due=desk.now(), event="session.submitted", detail=f"by way of {way.name}", changes=changes)


async def _job(desk: Desk, session: Session, way: Way, request: Request, place: Path | None) -> Job:
    platform = desk.platform_of(session)
    directory = await platform.session_directory(session.id)
    setting = Setting(
        work=f"{directory.rstrip('/')}/work" if place else "/",
        directory=directory,
        shape=session.offer.shape,
        nodes=session.offer.nodes,
        duration=session.offer.duration,
        mounts=mounts_of(request, place),
        tools=(await desk.survey(session.offer.platform)).tools,
        parts=session.offer.parts,
        secret=desk.secret(session.id) if way.interactive or way.asks else "",
        base_url=f"/connect/{session.id}/",
        callback=await desk.callback(session.offer.platform) if way.asks else None,
        session=session.id,
        person=session.person,
        platform=session.offer.platform,
        network=platform.choose_network_policy(desk.settings.mode == "gateway" or platform.hosts(session.person)),
        has_files=bool(laid_out(request)),
    )
    return Job(
        program=way.program(setting),
        shape=session.offer.shape,
        nodes=session.offer.nodes,
        until=session.until or desk.now() + session.offer.duration,
        warn=_warning(desk, session),
        mounts=setting.mounts,
        kept=kept_in(place) if place else {},
        person=session.person,
        name=session.name,
        queue=session.offer.queue,
        qos=session.offer.qos,
        project=session.offer.project,
        count=session.offer.count,
        begin=session.offer.begin,
        after=await jobs_before(desk, session, platform),
        parts=session.offer.parts,
    )


async def _queued(desk: Desk, session: Session, platform: Platform) -> Step:
    """Submitted: it runs at once, or waits in the platform's queue, or is not yet listening."""
    state = await ask_state(platform, session)
    refused = await ended_with(desk, session, platform, state) if session.offer.after else None
    if step := note_found(desk, session, state) or refused:
        return step
    if state.state is State.ENDED:
        return record_end(desk, session, state)
    if session.cancel_by:
        return await cancel_job(desk, session, platform, state)
    if state.state is State.UNKNOWN:
        return await give_up_lost(desk, session, platform, state)
    deadline = deadline_of(session)
    if deadline and state.state is State.QUEUED and desk.now() > deadline + GRACE:
        await platform.cancel([session.job], "sublet, because its window had passed")
        return failed(desk, EndKind.WINDOW_PASSED, "It was still in the queue when the asked window ended.")
    if state.state is State.QUEUED:
        words = state.condition or f"in the queue of {session.offer.platform}"
        if (others := await waited_for(desk, session)) and not words.startswith(PAUSED):
            words = f"{others}; {words}"
        return Step(due=desk.now() + RETRY, changes={"condition": words})
    if session.offer.interactive and state.connector is None:
        return Step(
            due=desk.now() + timedelta(milliseconds=300), changes={"condition": state.condition or "starting to listen"}
        )
    now = desk.now()
    connectors = _connectors(session, state)
    phase = P.AVAILABLE if connectors else P.RUNNING
    started = state.started or now
    changes = {"condition": state.condition, "started": started, "connectors": connectors}
    if session.until is None:  # others' queues start it when they do: its time runs from then
        session = replace(session, until=state.until or started + session.offer.duration)
        changes["until"] = session.until
    return Step(phase, _look_again(desk, session), f"session.{phase.lower()}", changes=changes)


async def running(desk: Desk, session: Session) -> Step:
    """Look at it; stop it if someone asked, or if its time is over and it is still there."""
    platform = desk.platform_of(session)
    state = await ask_state(platform, session)
    point("ended.before")
    if step := note_found(desk, session, state):
        return step
    if state.state is State.ENDED:
        return record_end(desk, session, state)
    now = desk.now()
    if session.cancel_by:
        return await cancel_job(desk, session, platform, state)
    if state.state is State.UNKNOWN:
        return await give_up_lost(desk, session, platform, state)
    if state.until:  # its parts begin when they do, and each has the whole time
        session = replace(session, until=state.until)
    if has_outlived(session, platform, now):
        await platform.cancel([session.job], "sublet, because its time was over")
        return Step(due=now + RETRY, changes={"condition": "its time is over; it is being stopped"})
    if session.until and session.offer.terms.kind == "booked":
        await platform.extend(session.job, session.until)  # after `extend`; else it changes nothing
    warned = bool(session.until and now >= session.until - _warning(desk, session))
    soon = f"ends soon, at {session.until:%Y-%m-%d %H:%M:%S} UTC"
    words = soon if warned else state.condition or await desk.word_on(session)
    if warned and state.condition.startswith(PAUSED):
        words = f"{paused(STOPPED)}; {words}"
    event = "session.warned" if warned and session.condition != words else ""
    connectors = _connectors(session, state) or session.connectors
    changes: dict[str, object] = {"condition": words, "connectors": connectors}
    if state.until:  # else it stays as it is by then: someone may be extending it
        changes["until"] = session.until
    return Step(None, _look_again(desk, session), event, words, changes=changes)


async def releasing(desk: Desk, session: Session) -> Step:
    """Give back what it held; its files stay for their keep time."""
    point("final.before")
    end = session.end or End(EndKind.UNKNOWN)
    finished = tuple(replace(connector, status="FINISHED") for connector in session.connectors)
    now = desk.now()
    changes = {"condition": "", "ended": session.ended or now, "connectors": finished}
    detail = end.kind.value if end.code is None else f"{end.kind.value} {end.code}"
    due = now if _leaves_nothing(desk, session) else now + desk.settings.keep
    return Step(end.phase, due, f"session.{end.phase.lower()}", detail, True, changes)


async def over(desk: Desk, session: Session) -> Step:
    """Its keep time has passed: remove its files."""
    platform = desk.platforms_by_name.get(session.offer.platform)
    until = (session.ended or session.modified) + desk.settings.keep
    if platform and _leaves_nothing(desk, session) and desk.now() < until:
        await platform.come_home(session.id)
        return Step(due=until, event="session.fetched", changes={"condition": ""})
    if platform:
        await platform.clean(session.id)
    return Step(event="session.cleaned")


STEPS: dict[Phase, Callable[[Desk, Session], Awaitable[Step]]] = {
    P.ACCEPTED: accepted,
    P.WAITING: waiting,
    P.PREPARING: preparing,
    P.AVAILABLE: running,
    P.RUNNING: running,
    P.RELEASING: releasing,
    P.COMPLETED: over,
    P.FAILED: over,
    P.CANCELLED: over,
}


def _leaves_nothing(desk: Desk, session: Session) -> bool:
    kind = desk.kinds.get(session.kind)
    return kind is not None and kind.leaves_nothing


async def _way(desk: Desk, session: Session, executable: Executable | None) -> Way:
    survey = await desk.survey(session.offer.platform)
    for way in desk.ways(executable, survey.tools) if executable else ():
        if way.name == session.offer.way:
            return way
    raise PlatformRefused(platform=session.offer.platform, why=f"it no longer has {session.offer.way}")


def _prepare_at(session: Session) -> datetime:
    """Shared queues and other brokers are asked at once; what we own is prepared in time for its start."""
    if session.start is None or session.offer.terms.kind != "booked":
        return session.created
    return session.start - session.offer.prepare


def _warning(desk: Desk, session: Session) -> timedelta:
    """How long before the end it is warned: a short session not for most of its time."""
    return min(desk.settings.warn, session.offer.duration / 4)


def _look_again(desk: Desk, session: Session) -> datetime:
    """News bring most ends; the clock brings the warning and the end of the time."""
    until = session.until or desk.now() + session.offer.duration
    warn = until - _warning(desk, session)
    return warn if desk.now() < warn else max(until + GRACE, desk.now() + RETRY)


def _connectors(session: Session, state: JobState) -> tuple[Connector, ...]:
    """How it is reached, as it is stored: without its secret, and without our own address, which may change."""
    if state.connector is None:
        return ()
    return (Connector(state.connector.kind, "AVAILABLE", "HTTP", f"/connect/{session.id}/"),)


async def _taken_back(desk: Desk, session: Session) -> Step | None:
    """The end of what waits and may not be run, or is not wanted any more."""
    if revoked := await desk.word_on(session):
        return failed(desk, EndKind.NOT_APPROVED, revoked)
    return _stopped(desk, session) if session.cancel_by else None


def _stopped(desk: Desk, session: Session) -> Step:
    """Cancelled before it was submitted."""
    now = desk.now()
    end = with_reason(session, End(EndKind.CANCELLED, by=session.cancel_by))
    changes = {"end": end, "ended": now, "condition": ""}
    words = f"by {session.cancel_by}{f': {session.cancel_reason}' if session.cancel_reason else ''}"
    return Step(P.CANCELLED, now + desk.settings.keep, "session.cancelled", words, True, changes)
