"""Retention: removes sessions, events, audit entries and archive records that are older than the settings keep them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TypeVar

from sublet.booking.loop.context import LoopContext
from sublet.kernel.log import log
from sublet.store.retention import Retention
from sublet.store.tx import Tx

T = TypeVar("T")
BATCH = 200  # rows in one write, so that others don't wait for long
MOST_BATCHES = 50  # for each noun in one run


async def forget_old(context: LoopContext) -> dict[str, int]:
    """Remove old records, up to a bound, and count them by noun; never usage, or sessions that run or have files."""
    keep, now = context.settings.retention, context.now()

    def ago(length: timedelta | None) -> timedelta | None:
        return None if length is None else max(length, context.settings.keep)  # files are found by their sessions

    counts = {"sessions": 0, "events": 0, "audit": 0, "archive": 0, "archive_people": 0}
    if (length := ago(keep.sessions)) is not None:
        before = now - length
        counts["sessions"] = await _in_batches(
            context,
            lambda retention: retention.find_sessions(before, BATCH),
            lambda retention, ids: retention.forget_sessions(ids, before),
        )
    if keep.events is not None:
        since = now - keep.events
        counts["events"] = await _in_batches(
            context, lambda retention: retention.find_events(since, BATCH), Retention.forget_events
        )
    if keep.audit is not None:
        first = now - keep.audit
        counts["audit"] = await _in_batches(
            context, lambda retention: retention.find_audit(first, BATCH), Retention.forget_audit
        )
    if keep.archive is not None:
        oldest = now - keep.archive
        counts["archive"] = await _in_batches(
            context,
            lambda retention: retention.archive.find_old(oldest, BATCH),
            lambda retention, ids: retention.archive.forget(ids),
        )
    if keep.archive_people is not None:
        named = now - keep.archive_people
        counts["archive_people"] = await _in_batches(
            context,
            lambda retention: retention.archive.find_old_details(named, BATCH),
            lambda retention, ids: retention.archive.forget_details(ids),
        )
        await context.store.write(lambda tx: tx.habits.forget(named))
    if any(counts.values()):
        log.info("retention.applied", **counts)
    return counts


async def _in_batches(
    context: LoopContext, find: Callable[[Retention], Sequence[T]], forget: Callable[[Retention, Sequence[T]], int]
) -> int:
    total = 0
    for _ in range(MOST_BATCHES):
        ids = await context.store.read(lambda tx: find(tx.retention))

        def work(tx: Tx, ids: Sequence[T] = ids) -> int:
            return forget(tx.retention, ids)

        gone = await context.store.write(work) if ids else 0
        total += gone
        if len(ids) < BATCH or not gone:
            break
    return total
