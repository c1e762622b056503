"""Notices that the machine's clock was set, and moves the times of sessions that run here.

Sessions here last as long as they were given, by the steady clock. When someone sets the machine's clock, their
recorded times are moved by the same amount, so that they mean the same moments as before. A time that was requested
stays.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sublet.booking.loop.context import LoopContext
from sublet.booking.model.events import EventKind
from sublet.booking.model.session import Session
from sublet.booking.recorded_clock import LEAST_STEP, is_clock_doubted
from sublet.kernel.log import log
from sublet.kernel.texts import describe_duration
from sublet.platforms.local.shim import clocks
from sublet.platforms.local.shim.processes import boot_id
from sublet.store.tx import Tx

ALL = 1_000_000
TIMES = ("start", "until", "started", "ended")


class ClockWatch:
    """Checks the clock at each turn of the loop; the database remembers how it was set."""

    def __init__(self, context: LoopContext) -> None:
        """Start with nothing seen."""
        self._context = context
        self._recorded: float | None = None  # the offset in the database
        self._is_doubted = False  # whether the records were seen to follow another setting of the clock
        self.followed = 0  # times that the offset was recorded since this process began

    @property
    def offset(self) -> float | None:
        """Return how far the clock was ahead of the steady one at the last look; None before the first."""
        return self._recorded

    @property
    def is_behind(self) -> bool:
        """Whether the clock was set since the last look, so that recorded times can't be compared with it."""
        return self._recorded is not None and abs(clocks.offset() - self._recorded) >= LEAST_STEP.total_seconds() / 2

    def agrees(self, tx: Tx) -> bool:
        """Whether recorded times follow the clock as this process saw it last; if not, the next look compares again.

        Another process may have followed a step that was undone before this one looked.
        """
        recorded = tx.clocks.offset(boot_id())
        seen = self._recorded
        if recorded is None or seen is None or abs(recorded.total_seconds() - seen) < LEAST_STEP.total_seconds() / 2:
            return True
        self._is_doubted = True
        return False

    async def look(self) -> None:
        """Follow a step of the clock, if there was one since the last look, or while no service ran."""
        offset, before = clocks.offset(), self._recorded
        if before is not None and not self.is_behind and not self._is_doubted:
            return
        self._is_doubted = False
        here = [name for name, platform in self._context.platforms.by_name.items() if platform.is_here]
        step = await self._context.store.write(lambda tx: follow_clock(tx, here, offset, self._context.now()))
        self._recorded = offset
        self.followed += 1
        boot = boot_id()
        self._context.loop_state.clock_step = await self._context.store.read(lambda tx: tx.clocks.last_step(boot))
        step = step or timedelta(seconds=offset - (offset if before is None else before))  # another process followed
        if abs(step) >= LEAST_STEP:
            log.warning("clock.stepped", how=describe_step(step))
            await self._look_anew()

    async def _look_anew(self) -> None:
        """Discard all surveys, whose age is unknown now, and look for free room again."""
        for platform in self._context.platforms.by_name.values():
            platform.expire_survey()
        self._context.platforms.surveys.clear()
        self._context.signals.freed.update(self._context.platforms.by_name)
        await self._context.signals.announce()


async def doubts_clock(context: LoopContext) -> bool:
    """Whether the clock was set forward lately, maybe by mistake: nothing is deleted for its age then."""
    return await context.store.read(lambda tx: is_clock_doubted(tx, context.now()))


def describe_step(step: timedelta) -> str:
    """Describe a step in whole seconds: `set forward by 1h`."""
    length = describe_duration(timedelta(seconds=round(abs(step).total_seconds())))
    return f"set {'forward' if step > timedelta(0) else 'back'} by {length}"


def follow_clock(tx: Tx, platforms: list[str], offset: float, now: datetime) -> timedelta:
    """Record how the clock is set, move the times of sessions on these platforms by its step, and return the step."""
    step = tx.clocks.follow(boot_id(), timedelta(seconds=offset), now, least=LEAST_STEP)
    if not step:
        return step
    tx.clocks.move_claims(step, now)
    for name in platforms:
        for session in tx.sessions.list(platform=name, active=True, limit=ALL).items:
            if session.job or not _has_named_its_time(tx, session):
                _move(tx, session, step, now)
    return step


def _has_named_its_time(tx: Tx, session: Session) -> bool:
    asked = tx.offersets.get(session.offerset)
    return asked is not None and bool(asked.request.windows or asked.request.recurring)


def _move(tx: Tx, session: Session, step: timedelta, now: datetime) -> None:
    offer = session.offer
    times = {name: getattr(session, name) for name in TIMES}
    changes: dict[str, Any] = {name: time + step for name, time in times.items() if time}
    changes["offer"] = replace(offer, start=offer.start + step, latest_start=offer.latest_start + step)
    tx.sessions.change(session.id, now=now, due=now, **changes)
    if taken := tx.books.release(offer.platform, session.id):
        moved = [replace(take, start=take.start + step, end=take.end + step) for take in taken]
        tx.books.keep(offer.platform, session.id, moved)
    words = f"the clock of this machine was {describe_step(step)}; its times moved with it"
    tx.events.add(now, session.id, session.person, EventKind.CLOCK_STEPPED, words, session.phase)
