"""The loop: expires offers, takes news from platforms, and takes every session that is due one step further.

Work is claimed in the database, with a token and a lease, so several processes can share it; a step is only applied if
its claim still holds. A turn costs what changed, not what exists.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from time import monotonic

import structlog

from sublet.booking.dependencies import settle
from sublet.booking.forgetting import Forgetting
from sublet.booking.holds import list_held_platforms
from sublet.booking.loop.clock_watch import ClockWatch
from sublet.booking.loop.context import LoopContext
from sublet.booking.loop.fair_share import end_turn
from sublet.booking.loop.moving_up import move_up, start_once_ready
from sublet.booking.loop.owner import Owner
from sublet.booking.loop.polling import JobPolling
from sublet.booking.loop.step import Step
from sublet.booking.loop.steps import STEPS
from sublet.booking.model.events import EventKind
from sublet.booking.model.marks import describe_trouble, mark_trouble, set_condition
from sublet.booking.model.phases import ENDING, OVER, STARTED, Phase
from sublet.booking.model.session import Session
from sublet.booking.platforms.start_history import record as record_start
from sublet.booking.ports import Caretaker
from sublet.booking.recorded_clock import read_recorded_now
from sublet.booking.store.claims import Claim
from sublet.kernel import metrics
from sublet.kernel.backoff import Backoff
from sublet.kernel.clock import fix_clock
from sublet.kernel.errors import BrokenStore, LoginNeeded, PlatformUnreachable, SubletError
from sublet.kernel.faults import point
from sublet.kernel.shortage import find_shortage
from sublet.store.tx import Tx

log = structlog.get_logger()

AT_ONCE = 64  # sessions that are worked on at the same time
BATCH = 500
IDLE = 1.0  # seconds between two looks at the database, where another process may have written
AGAIN = timedelta(seconds=10)  # after a step that failed temporarily
FAULT = "a fault of the service keeps it from going on ({name}), and its log says more; it is tried again"


class Loop:
    """The loop, which runs until it is stopped; another process, or the next one, takes up unfinished work."""

    def __init__(
        self, context: LoopContext, refresh: Callable[[], Awaitable[None]], caretakers: Sequence[Caretaker]
    ) -> None:
        """Prepare the loop; `refresh` checks whether the platforms have changed."""
        self.context, self.refresh, self.caretakers = context, refresh, caretakers
        self.owner = Owner.here()
        self.hearing = JobPolling(context)
        self.tasks: dict[str, tuple[asyncio.Task[None], str]] = {}  # session → its task and the claim's token
        self.due: datetime | None = None  # when the next session is due, as the last turn saw it
        self.dropped: list[tuple[str, str]] = []  # sessions whose task failed, and the tokens of their claims
        self.faults: dict[str, str] = {}  # sessions whose task failed in a way that would recur, and how, in words
        self.renewed = context.now()
        self.named: dict[str, set[str]] = {}  # by platform, waiting sessions that asked for their time
        self.forgetting = Forgetting(context)
        self.backoff = Backoff()
        self.clock_watch = ClockWatch(context)

    async def run(self) -> None:
        """Run turn after turn, whatever happens in one."""
        began = False
        while True:
            self.context.signals.nudged.clear()
            self.context.loop_state.turned = monotonic()
            try:
                if not began:
                    await self._take_over()
                    began = True
                with metrics.turn.time():
                    busy = await self.turn()
                if self.context.loop_state.trouble:
                    await self.context.store.check()  # a turn with nothing to write doesn't notice a full disk
                self.context.loop_state.trouble = ""
                if not busy:
                    await self._rest()
            except Exception as error:  # one turn of the loop is one of the two places where any exception is caught
                self._fail(error)
                await asyncio.sleep(1)

    def _fail(self, error: Exception) -> None:
        """Count and log a failed turn; repeated trouble is logged without its traceback."""
        metrics.turn_failures.inc()
        trouble = f"a fault that its log tells of ({type(error).__name__})"  # anyone may see this, so it has no details
        if short := find_shortage(error):
            trouble = f"this machine is short of something ({short})"
        elif isinstance(error, BrokenStore):
            trouble = f"the database can't be used ({error.values.get('why')})"
        log.error("turn.failed", why=str(error), exc_info=error if trouble != self.context.loop_state.trouble else None)
        self.context.loop_state.trouble = trouble
        self.hearing.swept.clear()  # news of this turn may be lost: poll everything

    async def stop(self) -> None:
        """Stop all tasks and release their claims; platforms keep running the jobs."""
        tasks = [*(task for task, _ in self.tasks.values()), *self.hearing.sweeps.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.context.store.write(lambda tx: tx.sessions.release_all(str(self.owner)))

    async def turn(self) -> bool:
        """Run one turn; return whether there was anything to do."""
        await self.clock_watch.look()
        now = self.context.now()
        await self.refresh()
        await self._give_back()
        heard = await self.hearing.hear(now)
        await self._renew(now)
        await self._heed(now)
        behind = await self.forgetting.forget(now)
        await self._move_up(now)
        for caretaker in self.caretakers:
            await caretaker.look_after(now)
        self.due = await self.context.store.read(lambda tx: tx.sessions.next_due())
        if self.due is None or self.due > now:
            return heard or behind
        expired, claimed = await self.context.store.write(lambda tx: self._claim(tx, now))
        for work in claimed:
            task = asyncio.create_task(self._work(work), name=f"session {work.session.id}")
            self.tasks[work.session.id] = task, work.token
            task.add_done_callback(partial(self._end_step, work.session.id, work.token))
        if expired:
            await self.context.signals.announce()
        return heard or behind or bool(expired) or bool(claimed)

    async def _move_up(self, now: datetime) -> None:
        """Move waiting sessions up on platforms where room came free."""
        while self.context.signals.freed:
            platform = self.context.signals.freed.pop()
            named = self.named.setdefault(platform, set())
            if await self.context.store.write(partial(move_up, platform=platform, now=now, named=named)):
                await self.context.signals.announce()

    def _claim(self, tx: Tx, now: datetime) -> tuple[int, Sequence[Claim]]:
        if not self.clock_watch.agrees(tx):
            return 0, []
        expired = tx.sessions.expire(now, BATCH)
        for session in expired:
            tx.events.add(now, session.id, session.person, EventKind.EXPIRED, "", session.phase)
        self.context.signals.freed |= list_held_platforms(expired)
        room = AT_ONCE - len(self.tasks)
        if room <= 0:
            return len(expired), []
        names = tuple(self.context.platforms.by_name)
        return len(expired), tx.sessions.claim(now, str(self.owner), self.context.settings.claim, room, names)

    def _end_step(self, id: str, token: str, task: asyncio.Task[None]) -> None:
        if self.tasks.get(id) == (task, token):  # it may have been claimed again before this callback
            del self.tasks[id]
        self.context.signals.nudged.set()
        if not task.cancelled() and (error := task.exception()):
            log.error("step.crashed", session=id, why=repr(error))
            if isinstance(error, BrokenStore):  # other faults would recur, and wait for the end of their claim
                self.dropped.append((id, token))
            else:
                self.faults[id] = FAULT.format(name=type(error).__name__)

    async def _give_back(self) -> None:
        """Release the claims of tasks that the database failed, and record the other faults in their sessions."""
        if self.faults:
            faults, now = dict(self.faults), self.context.now()
            await self.context.store.write(lambda tx: _tell_faults(tx, faults, now))
            self.faults.clear()
            await self.context.signals.announce()
        if self.dropped:
            some = list(self.dropped)
            await self.context.store.write(lambda tx: [tx.sessions.release_claim(id, token) for id, token in some])
            del self.dropped[: len(some)]

    async def _work(self, work: Claim) -> None:
        """Take a session as many steps further as is possible now."""
        session: Session | None = work.session
        while session is not None:
            followed = self.clock_watch.followed
            with fix_clock(self.clock_watch.offset):
                step = None if self.clock_watch.is_behind else await self._take_step(session)
            if step is None or followed != self.clock_watch.followed:  # it was decided by times that have moved since
                await self._hand_back(session.id, work.token)
                return
            session = await self._apply(session, work.token, step)

    async def _take_step(self, session: Session) -> Step:
        """Take one step; if that fails temporarily, return a step that tries again later."""
        try:
            step = await STEPS[session.phase](self.context, session)
        except (SubletError, OSError, MemoryError) as error:
            return self._try_later(session, error)
        self.backoff.forget(session.id)
        return step

    async def _hand_back(self, id: str, token: str) -> None:
        """Release a claim, and make the session due at once."""

        def release(tx: Tx) -> None:
            now = read_recorded_now(tx, self.context.now())
            if tx.sessions.release_claim(id, token):
                tx.sessions.change(id, now=now, due=now)

        await self.context.store.write(release)

    def _try_later(self, session: Session, error: SubletError | OSError | MemoryError) -> Step:
        """Return a step that tries again later, with backoff if this machine is short of something."""
        if short := find_shortage(error):
            wait = self.backoff.lengthen(session.id)
            words = f"this machine is short of something ({short}); it is tried again"
            log.warning("step.short", session=session.id, phase=session.phase, why=short, wait=wait.total_seconds())
            return Step(due=self.context.now() + wait, changes=set_condition(words, session.marks))
        words = str(error)
        if isinstance(error, PlatformUnreachable | LoginNeeded):
            metrics.platform_errors.labels(session.offer.platform, error.code).inc()
            words = describe_trouble(error)
        else:
            log.warning("step.failed", session=session.id, phase=session.phase, why=words)
        changes = set_condition(words, mark_trouble(session.marks, error))
        return Step(due=self.context.now() + AGAIN, changes=changes)

    async def _apply(self, old: Session, token: str, step: Step) -> Session | None:
        """Record a step, if the claim still holds; return the session if it can continue at once."""
        now = self.context.now()
        more = step.due is not None and step.due <= now

        platform = self.context.platforms.by_name.get(old.offer.platform)
        if platform and (own_id := platform.find_own_id(old.id)) and own_id != old.own_id:
            step = replace(step, changes={**step.changes, "own_id": own_id})
        site = platform.site if platform else ""

        def record(tx: Tx) -> tuple[Session | None, bool]:
            is_agreed = self.clock_watch.agrees(tx)
            new = _record(tx, old, token, step, now, more and is_agreed, site)
            if new and not is_agreed and new.phase not in OVER:  # the step's times are by another setting of the clock
                tx.sessions.change(old.id, now=now, due=read_recorded_now(tx, now))
            return new, more and is_agreed

        new, goes_on = await self.context.store.write(record)
        if new is None:
            log.warning("claim.lost", session=old.id)
            self.context.loop_state.fresh.discard(old.id)  # the process that has it now may submit it
            return None
        self._note(new, step)
        if step.event:
            log.info(step.event, session=old.id, phase=new.phase, platform=old.offer.platform, detail=step.detail)
            await self.context.signals.announce()
        return new if goes_on else None

    def _note(self, new: Session, step: Step) -> None:
        """Count a step, and watch the session's job while it has one."""
        if new.job and new.phase not in OVER:
            self.hearing.running[new.id] = new.offer.platform
        else:
            self.hearing.running.pop(new.id, None)
        if new.phase in OVER:
            self.context.loop_state.fresh.discard(new.id)
        if step.release or step.to is Phase.WAITING:
            self.context.signals.freed |= list_held_platforms([new])
        if step.to:
            metrics.moves.labels(step.to).inc()
            if step.to in OVER and new.end:
                metrics.ends.labels(new.end.kind).inc()
            point("final.after" if step.to in OVER else f"{step.to.lower()}.after")

    async def _renew(self, now: datetime) -> None:
        lease = self.context.settings.claim
        if self.tasks and abs(now - self.renewed) > lease / 3:
            self.renewed = now
            tokens = {token for _, token in self.tasks.values()}
            await self.context.store.write(lambda tx: [tx.sessions.renew_claim(token, now + lease) for token in tokens])

    async def _heed(self, now: datetime) -> None:
        """Stop staging for sessions that were cancelled meanwhile; their next step does the rest."""
        for id, (task, token) in list(self.tasks.items()):
            session = await self.context.store.read(lambda tx, i=id: tx.sessions.get(i))  # type: ignore[misc]
            is_staging = (
                id in self.context.loop_state.fresh
            )  # once it is being submitted, the job has to be found at its platform and stopped
            if session and session.cancel_by and session.phase is Phase.PREPARING and is_staging:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                await self._hand_back(id, token)

    async def _take_over(self) -> None:
        """Release the claims of processes that died on this host."""
        for owner in await self.context.store.read(lambda tx: tx.sessions.owners()):
            if not Owner.read(owner).lives():
                await self.context.store.write(lambda tx, s=owner: tx.sessions.release_all(s))  # type: ignore[misc]

    async def _rest(self) -> None:
        """Wait until there is something to do: a nudge, news, or a session that is due."""
        now = self.context.now()
        wait = IDLE if self.due is None else min(IDLE, max(0.01, (self.due - now).total_seconds()))
        for platform in set(self.hearing.running.values()):
            wait = min(wait, self.hearing.listens_in(platform, now))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait):  # not wait_for, which can swallow a cancellation
                await self.context.signals.nudged.wait()


def _tell_faults(tx: Tx, faults: Mapping[str, str], now: datetime) -> None:
    """Record in each session why it doesn't continue."""
    for id, words in faults.items():
        if (session := tx.sessions.get(id)) and session.phase not in OVER:
            tx.sessions.change(id, now=now, **set_condition(words, session.marks))


def _record(tx: Tx, old: Session, token: str, step: Step, now: datetime, more: bool, site: str) -> Session | None:
    """Write the session as the step left it, its booking and its event; None if the claim was lost."""
    changes = {**step.changes, "due": step.due}
    if step.to:
        new = tx.sessions.move(old.id, step.to, when=(old.phase,), now=now, token=token, **changes)
    else:
        new = tx.sessions.change(old.id, when=(old.phase,), now=now, token=token, **changes)
    if new is None:
        return None
    if not more:
        tx.sessions.release_claim(old.id, token)
    if new.phase not in OVER and was_changed_meanwhile(old, new, step):
        tx.sessions.change(old.id, now=now, due=now)
    if step.to in STARTED:
        record_start(tx, new, site)
    _change_booking(tx, new, step, now)
    if step.to in OVER:
        settle(tx, new, now)
    if step.to in ENDING:
        end_turn(tx, new, now)
    if step.event:
        tx.events.add(now, old.id, old.person, step.event, step.detail, new.phase)
    return new


def _change_booking(tx: Tx, session: Session, step: Step, now: datetime) -> None:
    """Release a booking that is no longer needed, or let a session that is ready start sooner."""
    if step.release and session.offer.is_in_calendar:
        tx.books.release(session.offer.platform, session.id)
    if step.is_ready:
        start_once_ready(tx, session, now)


def was_changed_meanwhile(old: Session, new: Session, step: Step) -> bool:
    """Whether someone cancelled, extended or moved the session during the step, which did not see that."""
    moved = "until" not in step.changes and (new.start, new.until) != (old.start, old.until)
    return moved or new.cancel_by != old.cancel_by
