"""Retention: offer sets that expired, drafts, idempotency keys and old statistics are deleted after a while."""

from __future__ import annotations

from collections import deque
from datetime import datetime, timedelta

from sublet.booking.loop.clock_watch import doubts_clock
from sublet.booking.loop.context import LoopContext
from sublet.booking.model.estimate import RECENT
from sublet.booking.store.offersets import Cursor
from sublet.kernel.log import log
from sublet.kernel.settings import Settings

KEPT = timedelta(hours=1)  # how long an offer set can be read after it expired unaccepted
SUBMITTED = timedelta(days=365)  # how long an old client's job is listed after it was submitted
EVERY = timedelta(minutes=1)  # how often to look for something to delete
DAY = timedelta(days=1)
KEYS_KEPT = 7 * DAY  # how long an idempotency key stays bound to its request
PAGES = 2000  # of the database file that are freed in one transaction
LEAST, MOST = 200, 3200  # offer sets that are checked in one transaction: more while there is a backlog


class Forgetting:
    """The deletion of old records, in batches so small that other writers never wait long."""

    def __init__(self, context: LoopContext) -> None:
        """Start with the oldest offer set; those that were checked and kept are not checked again on the same day."""
        self._context = context
        self._seen: Cursor | None = None
        self._batch = LEAST
        self._began = self._due = context.now()
        self._going_on: deque[str] = deque()  # offer sets with an active session, which are checked in turn

    async def forget(self, now: datetime) -> bool:
        """Delete a batch if one is due; return whether there is a backlog, so that the next batch is due at once."""
        if self._due - EVERY <= now < self._due:
            return False
        if abs(now - self._began) >= DAY:
            self._began, self._seen = now, None
            self._going_on.clear()
        settings, seen, batch = self._context.settings, self._seen, self._batch
        before = now - KEPT - settings.hold
        forgotten = await self._context.store.write(lambda tx: tx.offersets.forget(before, batch, seen))
        self._seen = forgotten.seen or seen
        self._going_on.extend(forgotten.going_on)
        if forgotten.looked_at == batch:
            self._batch = min(2 * batch, MOST)
            return forgotten.removed > batch // 2
        await self._forget_untaken()
        if not await doubts_clock(self._context):
            await self._forget_records(now, settings)
        if await self._context.store.write(lambda tx: tx.space.give_back(PAGES)):
            return True  # the rest in the next turn: others write in between
        self._batch, self._due = LEAST, now + EVERY
        if forgotten.removed:
            log.debug("offersets.forgotten", removed=forgotten.removed)
        return False

    async def _forget_records(self, now: datetime, settings: Settings) -> None:
        """Delete old statistics, drafts and idempotency keys."""
        await self._context.store.write(
            lambda tx: (
                tx.starts.forget(now - RECENT),
                tx.transfers.forget(now - RECENT),
                tx.drafts.forget(now - SUBMITTED, now - settings.keep_drafts),
                tx.keys.forget(now - KEYS_KEPT),
            )
        )

    async def _forget_untaken(self) -> None:
        """Delete the unaccepted offers of some sets whose session was active when last checked and is over now."""
        some = [self._going_on.popleft() for _ in range(min(LEAST, len(self._going_on)))]
        if some:
            self._going_on.extend(await self._context.store.write(lambda tx: tx.offersets.forget_untaken(some)))
