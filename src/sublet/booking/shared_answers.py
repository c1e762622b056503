"""Answers of platforms whose calendars aren't kept here, corrected by their start records and priced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from sublet.booking.candidate import Candidate
from sublet.booking.dependencies import later
from sublet.booking.model.answers import delay_starts
from sublet.booking.model.estimate import Sample
from sublet.booking.model.offer import Answer
from sublet.booking.model.request import Request
from sublet.booking.platforms.known import KnownPlatforms
from sublet.booking.platforms.start_history import correct_starts, is_queued, recall
from sublet.booking.price_book import PriceBook
from sublet.store.store import Store

StartRecords = Mapping[str, Sequence[Sample]]  # by platform whose starts are predicted


async def recall_starts(
    store: Store, platforms: KnownPlatforms, candidates: Sequence[Candidate], now: datetime
) -> StartRecords:
    """Return the start record of each platform whose starts are predicted."""
    queued = [each.platform for each in candidates if each.answer and is_queued(each.answer)]
    known = [platform for name in queued if (platform := platforms.by_name.get(name))]
    return await store.read(lambda tx: {each.name: recall(tx, each, now) for each in known}) if known else {}


def read_shared(
    request: Request, candidates: Sequence[Candidate], starts: StartRecords, prices: PriceBook, now: datetime
) -> dict[str, Answer]:
    """Return the corrected and priced answer of each platform that gave one."""
    answers: dict[str, Answer] = {}
    for candidate in candidates:
        if candidate.answer is not None:
            name = candidate.platform
            likely = correct_starts(candidate.answer, starts[name], now) if name in starts else candidate.answer
            ready = delay_starts(likely, candidate.staging, now)
            answers[name] = prices.price_shared(later(ready, request.not_before), request, name)
    return answers
