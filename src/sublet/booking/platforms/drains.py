"""Draining a platform: nothing new starts, running sessions finish, and waiting ones continue afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sublet.booking.loop.held_back import go_on, holds_back, is_held
from sublet.booking.model.drain import Drain
from sublet.booking.model.events import EventKind
from sublet.booking.model.phases import ACTIVE, ENDING
from sublet.booking.platforms.drains_seen import DrainsSeen
from sublet.booking.platforms.known import KnownPlatforms
from sublet.booking.recorded_clock import read_recorded_now
from sublet.booking.session_endings import SessionEndings
from sublet.booking.sessions import check_reason
from sublet.booking.signals import Signals
from sublet.kernel.clock import Clock
from sublet.kernel.db.audit import AuditEntry
from sublet.kernel.errors import BadRequest, NotDraining, OperatorsOnly
from sublet.kernel.log import log
from sublet.kernel.settings import Settings
from sublet.people.model.person import Person
from sublet.store.store import Store
from sublet.store.tx import Tx

USUAL_GRACE = timedelta(minutes=10)
MOST = 1000  # sessions that are notified, or cancelled, in one write


@dataclass
class Drains:
    """Drains and undrains platforms; for operators."""

    settings: Settings
    store: Store
    now: Clock
    platforms: KnownPlatforms
    signals: Signals
    drains_seen: DrainsSeen
    endings: SessionEndings

    async def drain(
        self,
        person: Person,
        platform: str,
        *,
        until: datetime | None = None,
        reason: str = "",
        grace: timedelta | None = None,
        host: str = "",
    ) -> Drain:
        """Let nothing new start on a platform; with a grace, sessions that still run after it are cancelled."""
        if not person.operator:
            raise OperatorsOnly
        self.platforms.get(platform)
        now = self.now()
        if until is not None and until <= now:
            raise BadRequest(detail="`until` is in the past", hint="Name a time to come, or none.")
        ends = None if grace is None else now + grace
        made = Drain(platform, person.name, now, check_reason(reason), until, ends)
        await self.store.write(lambda tx: self._begin_drain(tx, made, host))
        self.drains_seen.forget()
        log.info("platform.drained", platform=platform, person=person.name)
        await self.signals.announce()
        return made

    def _begin_drain(self, tx: Tx, drain: Drain, host: str) -> None:
        tx.drains.put(drain)
        detail = {"reason": drain.reason, "until": _text(drain.until), "ends": _text(drain.ends)}
        facts = {key: value for key, value in detail.items() if value}
        now = read_recorded_now(tx, drain.created)
        tx.audit.add(AuditEntry(drain.created, drain.by, "platform.drain", "platform", drain.platform, facts, host))
        for session in tx.sessions.list(platform=drain.platform, active=True, limit=MOST).items:
            if holds_back(drain, session):
                words = f"{drain.sentence}; it waits until that is over"
                tx.sessions.change(session.id, now=now, due=now)
            elif drain.ends and not is_held(session) and session.phase not in ENDING:
                words = f"{drain.sentence}; it is cancelled at {_text(drain.ends)} if it has not ended by then"
            else:
                continue
            tx.events.add(now, session.id, session.person, EventKind.DRAINING, words, session.phase)

    async def undrain(self, person: Person, platform: str, host: str = "") -> None:
        """End a platform's drain, at once."""
        if not person.operator:
            raise OperatorsOnly

        def work(tx: Tx) -> None:
            now = read_recorded_now(tx, self.now())
            if not tx.drains.remove(platform):
                raise NotDraining(platform=platform)
            tx.audit.add(AuditEntry(now, person.name, "platform.undrain", "platform", platform, {}, host))
            go_on(tx, platform, now, self.settings.horizon)

        await self.store.write(work)
        self.drains_seen.forget()
        log.info("platform.undrained", platform=platform, person=person.name)
        await self.signals.announce()

    async def look_after(self, now: datetime) -> None:
        """End drains whose time is over, and cancel running sessions where the grace has passed."""
        if await self.store.read(lambda tx: tx.drains.due(now)):
            await self.store.write(lambda tx: self._carry_out_all(tx, now))
            await self.signals.announce()

    def _carry_out_all(self, tx: Tx, now: datetime) -> None:
        for drain in tx.drains.due(now):
            self._carry_out(tx, drain, now)

    def _carry_out(self, tx: Tx, drain: Drain, now: datetime) -> None:
        if not drain.is_active(now):
            tx.drains.remove(drain.platform)
            tx.audit.add(
                AuditEntry(now, "", "platform.undrain", "platform", drain.platform, {"why": "its time is over"})
            )
            go_on(tx, drain.platform, now, self.settings.horizon)
            return
        page = tx.sessions.list(platform=drain.platform, active=True, limit=MOST)
        for session in page.items:
            if not is_held(session) and session.phase in ACTIVE and not session.cancel_by:
                self.endings.cancel(tx, session.id, Person(drain.by, operator=True), drain.sentence)
        if page.next is None:
            tx.drains.clear_ends(drain.platform)


def _text(time: datetime | None) -> str:
    return f"{time:%Y-%m-%dT%H:%M:%SZ}" if time else ""
