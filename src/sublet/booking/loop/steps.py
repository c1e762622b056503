"""One step of a session, by its phase: a table of functions, not branches."""

from __future__ import annotations

import errno
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from sublet.booking.dependencies import describe_wait, end_in_vain, end_with_failed, jobs_before, must_wait
from sublet.booking.loop.context import LoopContext
from sublet.booking.loop.ending import ask_state, cancel_job, end_waiting, note_found, record_end
from sublet.booking.loop.fair_share import no_turn
from sublet.booking.loop.giving_up import end_given_up, give_up_lost, give_up_queued
from sublet.booking.loop.held_back import hold_back
from sublet.booking.loop.idle_ends import STOPPING, UNUSED, describe_idle, find_idle_end, look_sooner
from sublet.booking.loop.remote import prepare_remote
from sublet.booking.loop.roads import tell_roads
from sublet.booking.loop.sending import SENDING, UNSENT, find_outputs, forget_sources, remember_sources, send_outputs
from sublet.booking.loop.step import GRACE, RETRY, Step, deadline_of, fail_early, has_outlived, list_connectors
from sublet.booking.model.events import EventKind, kind_of_move
from sublet.booking.model.idle import IdleEnd
from sublet.booking.model.job import Job, JobState, State
from sublet.booking.model.marks import NONE, Mark, Marks, set_condition
from sublet.booking.model.offer import Remote
from sublet.booking.model.phases import OVER, Phase
from sublet.booking.model.request import Executable, Request
from sublet.booking.model.session import STOPPED, End, EndKind, Session, describe_pause
from sublet.data.layout import list_laid_out
from sublet.data.recording import find_staging_time
from sublet.data.staging import carry, find_kept_files, leave_cache, mounts_of, stage
from sublet.kernel.clock import is_clock_set
from sublet.kernel.errors import DataNotThere, DiskFull, LoginNeeded, NotFound, PlatformRefused, PlatformUnreachable
from sublet.kernel.faults import point
from sublet.kernel.shortage import find_shortage
from sublet.kinds.port import Setting, Way
from sublet.platforms.brokering import PassesOn
from sublet.platforms.port import Platform

P = Phase
WARNED = frozenset({Mark.WARNED})


async def begin_waiting(context: LoopContext, session: Session) -> Step:
    """Let an accepted session wait until it has to be prepared."""
    if step := await end_waiting(context, session):
        return step
    at = context.now() if session.offer.after else _prepare_at(session)
    return Step(P.WAITING, at, EventKind.WAITING, changes=set_condition())


async def waiting(context: LoopContext, session: Session) -> Step:
    """Wait until it is time to prepare the session."""
    if step := await end_waiting(context, session) or await must_wait(context, session, context.platforms.of(session)):
        return step
    if context.now() >= (at := _prepare_at(session)) and (step := await hold_back(context, session)):
        return step
    if context.now() < at:
        context.signals.freed.update({session.offer.platform} if session.offer.after else ())  # it may move up now
        return Step(due=at, changes=set_condition(await describe_wait(context, session)))
    context.loop_state.fresh.add(session.id)
    return Step(P.PREPARING, context.now(), EventKind.PREPARING, changes=set_condition())


async def preparing(context: LoopContext, session: Session) -> Step:
    """Prepare and submit the session; once it is submitted, see whether it is queued, runs or listens."""
    platform, terms = context.platforms.of(session), session.offer.terms
    if session.job:
        return await _judge_queued(context, session, platform)
    if isinstance(platform, PassesOn) and isinstance(terms, Remote):
        return await prepare_remote(context, session, platform, terms)
    return await _prepare_here(context, session, platform)


async def _prepare_here(context: LoopContext, session: Session, platform: Platform) -> Step:
    """Stage the session's data and, at its start, submit it once."""
    if step := await _end_unwanted(context, session, platform):
        return step
    if step := await _find_earlier_submit(context, session, platform) or await hold_back(context, session):
        return step
    offerset = await context.store.read(lambda tx: tx.offersets.get(session.offerset))
    if offerset is None:
        raise NotFound(noun="offer set", name=session.offerset)
    try:
        place = await platform.place(session.id)
    except DiskFull as error:
        return fail_early(context, EndKind.DISK_FULL, error.message)
    if place and (step := await _stage_session(context, offerset.request, platform, place, session)):
        return step
    point("stage.after")
    now = context.now()
    deadline = deadline_of(session) or session.until
    if deadline and now >= deadline:
        return fail_early(context, EndKind.WINDOW_PASSED, "It could not be started in time.")
    if session.offer.is_in_calendar and session.start and now < session.start:
        changes = {"staged": _find_staged(session, place), **set_condition("ready; waits for its start")}
        return Step(due=session.start, is_ready=True, changes=changes)
    if (
        step := await must_wait(context, session, platform)
        or await hold_back(context, session)
        or await no_turn(context, session)
    ):
        return step
    return await _submit(context, session, platform, offerset.request, place)


async def _find_earlier_submit(context: LoopContext, session: Session, platform: Platform) -> Step | None:
    """Find the job of an earlier try that was interrupted while it submitted."""
    job = None if session.id in context.loop_state.fresh else await platform.find(session.id)
    if not job:
        context.loop_state.fresh.add(session.id)
        return None
    return Step(due=context.now(), event=EventKind.SUBMITTED, detail="found again", changes={"job": job})


async def _end_unwanted(context: LoopContext, session: Session, platform: Platform) -> Step | None:
    """Return the end of a session that is cancelled, revoked, or waits in vain for another session; else None."""
    found = await _find_before_cancel(context, session, platform)
    step = found or await end_waiting(context, session) or await end_in_vain(context, session)
    if step and step.to in OVER:
        context.loop_state.fresh.discard(session.id)  # nothing is staged any more that a cancel could stop
        await leave_cache(context, platform, session.id, session.person)
    return step


async def _find_before_cancel(context: LoopContext, session: Session, platform: Platform) -> Step | None:
    """Before a session ends as cancelled, find a job that an earlier try submitted, and prevent a later one."""
    if not session.cancel_by or session.id in context.loop_state.fresh:
        return None
    with suppress(PlatformUnreachable, LoginNeeded):  # the platform can't be asked; leftovers are swept later
        if step := await _find_earlier_submit(context, session, platform):
            return step
        await platform.cancel([session.id], session.cancel_by)  # another process may be about to start it
    return None


async def _stage_session(
    context: LoopContext, request: Request, platform: Platform, place: Path, session: Session
) -> Step | None:
    """Stage what the session needs; return a step only if that fails."""
    if why := await context.code.find_objection(session, request):
        return fail_early(context, EndKind.NOT_APPROVED, why)
    try:
        for storage in request.storage:
            if pool := session.offer.pools.get(storage.name):
                await platform.make_storage(session.id, storage.name, pool)
        guest = platform.hosts(session.person)
        await remember_sources(context, session, request)
        taken = await stage(
            context, request, platform, session.offer.way, place, session.id, guest=guest, person=session.person
        )
        await tell_roads(context, session, taken)
    except (DataNotThere, PlatformRefused) as error:
        if find_shortage(error):
            raise  # it isn't the session's fault, and is tried again
        kind = EndKind.DISK_FULL if isinstance(error, DiskFull) else EndKind.STAGING_FAILED
        return fail_early(context, kind, error.message)
    except OSError as error:
        if find_shortage(error):
            raise
        kind = EndKind.DISK_FULL if error.errno in (errno.ENOSPC, errno.EDQUOT) else EndKind.STAGING_FAILED
        return fail_early(context, kind, str(error))
    return None


async def _submit(
    context: LoopContext, session: Session, platform: Platform, request: Request, place: Path | None
) -> Step:
    """Submit the session to its platform, once: its id is the key."""
    if why := await context.code.find_objection(session, request):  # its code may have been revoked during staging
        return fail_early(context, EndKind.NOT_APPROVED, why)
    now = context.now()
    try:
        way = await _way(context, session, request.executable)
        job = await _job(context, session, way, request, place)
        context.loop_state.fresh.discard(session.id)
        staged = _find_staged(session, place)
        if place:
            sending = await carry(context, platform, session.id)
            staged = None if staged is None else staged + sending
        if is_clock_set():  # the times in the job are by another setting of the clock
            return Step(due=now)
        point("submit.before")
        id = await platform.submit(job, session.id)
    except PlatformRefused as error:
        if find_shortage(error):
            raise
        kind = EndKind.DISK_FULL if isinstance(error, DiskFull) else EndKind.NOT_STARTED
        return fail_early(context, kind, error.message)
    point("submit.after")
    started = now if session.offer.is_in_calendar else None
    changes = {"job": id, "started": started, "staged": staged, **set_condition()}
    return Step(due=context.now(), event=EventKind.SUBMITTED, detail=f"by way of {way.name}", changes=changes)


def _find_staged(session: Session, place: Path | None) -> timedelta | None:
    """Return how long staging took; None if there was nothing to stage."""
    return find_staging_time(place) if place and session.offer.staging.items else None


async def _job(context: LoopContext, session: Session, way: Way, request: Request, place: Path | None) -> Job:
    platform = context.platforms.of(session)
    directory = await platform.session_directory(session.id)
    setting = Setting(
        work=f"{directory.rstrip('/')}/work" if place else "/",
        directory=directory,
        amounts=session.offer.amounts,
        mounts=mounts_of(request, place),
        tools=(await context.platforms.survey(session.offer.platform)).tools,
        secret=context.secrets.of(session.id) if way.interactive or way.asks else "",
        base_url=f"/connect/{session.id}/",
        callback=await context.callbacks.callback(session.offer.platform) if way.asks else None,
        session=session.id,
        person=session.person,
        platform=session.offer.platform,
        network=platform.choose_network_policy(context.has_strangers or platform.hosts(session.person)),
        places=await context.places.bind(session, platform, request),
        has_files=bool(list_laid_out(request)),
    )
    return Job(
        program=way.program(setting),
        amounts=session.offer.amounts,
        nodes=session.offer.nodes,
        until=session.until or context.now() + session.offer.duration,
        warn=_warning(context, session),
        mounts=setting.mounts,
        places=setting.places,
        kept=find_kept_files(place) if place else {},
        person=session.person,
        name=session.name,
        scheduler=replace(session.offer.scheduler, queue=session.offer.queue),
        begin=session.offer.begin,
        reservation=session.offer.reservation,
        after=await jobs_before(context, session, platform),
    )


async def _judge_queued(context: LoopContext, session: Session, platform: Platform) -> Step:
    """Return the next step of a submitted session: it runs, is queued, is not yet listening, or has ended."""
    state = await ask_state(platform, session)
    refused = await end_with_failed(context, session, platform, state) if session.offer.after else None
    if step := end_given_up(context, session, state) or note_found(context, session, state) or refused:
        return step
    if state.state is State.ENDED:
        return record_end(context, session, state)
    if session.cancel_by:
        return await cancel_job(context, session, platform, state)
    if state.state is State.UNKNOWN:
        return await give_up_lost(context, session, platform, state)
    deadline = deadline_of(session)
    if deadline and state.state is State.QUEUED and context.now() > deadline + GRACE:
        return await give_up_queued(context, session, platform)
    if state.state is State.QUEUED:
        words = state.condition or f"in the queue of {session.offer.platform}"
        if (others := await describe_wait(context, session)) and Mark.PAUSED not in state.marks:
            words = f"{others}; {words}"
        return Step(due=context.now() + RETRY, changes=set_condition(words, state.marks))
    if session.offer.interactive and state.connector is None:
        soon = context.now() + timedelta(milliseconds=300)
        return Step(due=soon, changes=set_condition(state.condition or "starting to listen", state.marks))
    now = context.now()
    connectors = list_connectors(session, state)
    phase = P.AVAILABLE if connectors else P.RUNNING
    started = state.started or now
    changes = {"started": started, "connectors": connectors, **set_condition(state.condition, state.marks)}
    if session.until is None:  # its time runs from when the shared queue started it
        session = replace(session, until=state.until or started + session.offer.duration)
        changes["until"] = session.until
    due = now if connectors else _look_again(context, session)  # at once, to find out when it ends for lack of visitors
    return Step(phase, due, kind_of_move(phase), changes=changes)


async def running(context: LoopContext, session: Session) -> Step:
    """Check a running session; stop it if it was cancelled, is idle, or is still there after its time."""
    platform = context.platforms.of(session)
    state = await ask_state(platform, session)
    point("ended.before")
    if step := note_found(context, session, state):
        return step
    if state.state is State.ENDED:
        return record_end(context, session, state)
    now = context.now()
    if session.cancel_by:
        return await cancel_job(context, session, platform, state)
    if state.state is State.UNKNOWN:
        return await give_up_lost(context, session, platform, state)
    if state.until and state.until != session.until:  # its parts start at different times, and each has the whole time
        session = replace(session, until=state.until, marks=session.marks - WARNED)
    if has_outlived(session, platform, now):
        await platform.cancel([session.job], "sublet, because its time was over")
        return Step(due=now + RETRY, changes=set_condition("its time is over; it is being stopped", session.marks))
    idle_end = await find_idle_end(context, session, state)
    if idle_end and now >= idle_end.at:
        await platform.cancel([session.job], idle_end.reason)
        return Step(due=now + RETRY, changes=set_condition(STOPPING, session.marks))
    if session.until and session.offer.is_in_calendar:
        await platform.extend(session.job, session.until)  # after `extend`; else it changes nothing
    words, marks = await _describe_running(context, session, state, idle_end)
    event = EventKind.WARNED if (marks - session.marks) & (WARNED | UNUSED) else None
    connectors = list_connectors(session, state) or session.connectors
    changes: dict[str, object] = {"connectors": connectors, **set_condition(words, marks)}
    if state.until:  # else it stays as it is: someone may be extending it
        changes["until"] = session.until
    due = look_sooner(_look_again(context, session), idle_end, now)
    return Step(None, due, event, words, changes=changes)


async def _describe_running(
    context: LoopContext, session: Session, state: JobState, idle_end: IdleEnd | None
) -> tuple[str, Marks]:
    """Return the session's condition in words for people, and its marks for programs."""
    now = context.now()
    if not (session.until and now >= session.until - _warning(context, session)):
        unused, mark = describe_idle(idle_end, now)
        return unused or state.condition or await context.code.describe_code(session), state.marks | mark
    words = f"ends soon, at {session.until:%Y-%m-%d %H:%M:%S} UTC"
    if Mark.PAUSED in state.marks:
        words = f"{describe_pause(STOPPED)}; {words}"
    return words, state.marks | WARNED


async def releasing(context: LoopContext, session: Session) -> Step:
    """Send the session's results where requested, and release what it held; its files stay for their keep time."""
    point("final.before")
    if session.offer.interactive:
        await context.visits.forget(session.id)
    end = session.end or End(EndKind.UNKNOWN)
    outputs = await find_outputs(context, session, end)
    if outputs and Mark.SENDING not in session.marks:
        return Step(due=context.now(), release=True, changes=set_condition("sending its results", SENDING))
    unsent = await send_outputs(context, session, outputs) if outputs else ""
    finished = tuple(replace(connector, status="FINISHED") for connector in session.connectors)
    now = context.now()
    marks = UNSENT if unsent else NONE
    changes = {"ended": session.ended or now, "connectors": finished, **set_condition(unsent, marks)}
    detail = end.kind.value if end.code is None else f"{end.kind.value} {end.code}"
    due = now if _leaves_nothing(context, session) else now + context.settings.keep
    return Step(end.phase, due, kind_of_move(end.phase), detail, True, changes)


async def over(context: LoopContext, session: Session) -> Step:
    """Remove an ended session's files after their keep time, or from its platform at once if its kind keeps none."""
    platform = context.platforms.by_name.get(session.offer.platform)
    until = (session.ended or session.modified) + context.settings.keep
    if platform and _leaves_nothing(context, session) and context.now() < until:
        await platform.come_home(session.id)
        return Step(due=until, event=EventKind.FETCHED, changes=set_condition())
    if platform:
        await platform.clean(session.id)
    await forget_sources(context, session)
    return Step(event=EventKind.CLEANED)


STEPS: dict[Phase, Callable[[LoopContext, Session], Awaitable[Step]]] = {
    P.ACCEPTED: begin_waiting,
    P.WAITING: waiting,
    P.PREPARING: preparing,
    P.AVAILABLE: running,
    P.RUNNING: running,
    P.RELEASING: releasing,
    P.COMPLETED: over,
    P.FAILED: over,
    P.CANCELLED: over,
}


def _leaves_nothing(context: LoopContext, session: Session) -> bool:
    kind = context.kinds.by_name.get(session.kind)
    return kind is not None and kind.leaves_nothing


async def _way(context: LoopContext, session: Session, executable: Executable | None) -> Way:
    survey = await context.platforms.survey(session.offer.platform)
    for way in context.kinds.ways(executable, survey.tools) if executable else ():
        if way.name == session.offer.way:
            return way
    raise PlatformRefused(platform=session.offer.platform, why=f"it no longer has {session.offer.way}")


def _prepare_at(session: Session) -> datetime:
    """Return when to prepare: at once for shared queues and other brokers, else in time for the start."""
    if session.start is None or not session.offer.is_in_calendar:
        return session.created
    return session.start - session.offer.prepare


def _warning(context: LoopContext, session: Session) -> timedelta:
    """Return how long before its end a session is warned: at most a quarter of its duration."""
    return min(context.settings.warn, session.offer.duration / 4)


def _look_again(context: LoopContext, session: Session) -> datetime:
    """Return when to look without news: for the warning, or when the session's time is over."""
    until = session.until or context.now() + session.offer.duration
    warn = until - _warning(context, session)
    return warn if context.now() < warn else max(until + GRACE, context.now() + RETRY)
