"""A cluster on which an ordinary user can reserve nodes, so that its offers can be booked without a calendar here."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, TypeVar
from uuid import uuid4

from pydantic import BeforeValidator, Field, PrivateAttr

from sublet.booking.model.offer import Booked, Offer, Reason
from sublet.booking.model.request import Request, Window
from sublet.kernel.errors import PlatformUnreachable
from sublet.platforms.batch.planning import SitePlan, round_up, windows_ahead
from sublet.platforms.batch.platform import BatchPlatform
from sublet.platforms.batch.reservations import Reservations
from sublet.platforms.port import Duration

REFUSED = "urn:refused-by-platform"
NAMED = 4  # times as long for a request that names the platform
USUAL = 4  # the default of how many reservations are held at once
W = TypeVar("W")  # what is requested of the scheduler in one queue
AS_NUMBERS = {True: USUAL, False: 0, "yes": USUAL, "true": USUAL, "no": 0, "false": 0}


def _as_number(value: Any) -> Any:
    """Convert `yes` and `no` to a number of reservations; pydantic checks all other values."""
    word = value.strip().lower() if isinstance(value, str) else value
    return AS_NUMBERS.get(word, value) if isinstance(word, bool | str) else value


ReservationCount = Annotated[int, BeforeValidator(_as_number, json_schema_input_type=int | bool | str)]


class ReservingPlatform(BatchPlatform):
    """A batch system behind SSH that also takes reservations."""

    reservations: ReservationCount = Field(
        default=USUAL,
        ge=0,
        description="How many reservations may be held there at once for offers that are not accepted yet (`yes`: "
        "4); 0 or `no`: none, and all starts are predicted.",
    )
    lead: Duration = Field(
        default=timedelta(minutes=5),
        description="The earliest start of a reservation from now, to leave time to accept an offer.",
    )
    reserves_within: Duration = Field(
        default=timedelta(seconds=2),
        gt=timedelta(0),
        description="How long an answer waits for a reservation; a request that names the platform waits four times as "
        "long. What comes later is given up, and the offer is predicted.",
    )
    _reservations: Reservations = PrivateAttr()

    async def open(self, home: Path) -> None:
        """Open the platform as any batch system, with its reservations."""
        await super().open(home)
        self._reservations = Reservations(self.scheduler, self.failures, self.reach, self._guest)

    async def close(self) -> None:
        """Close the platform; reservations stay."""
        self._reservations.close()
        await super().close()

    async def list_reservations(self) -> Mapping[str, datetime]:
        """Return the reservations that weren't given up, and when each was made."""
        return await self._reservations.list_made() if self.reservations or self._reservations.made else {}

    async def give_up(self, keys: Sequence[str]) -> None:
        """Cancel these reservations on the system."""
        await self._reservations.give_up(keys)
        self._watch.stir()

    async def reserve(self, offer: Offer, words: Sequence[str], is_named: bool = False) -> Offer | Reason | None:
        """Reserve an offer's nodes and return the booked offer, or the scheduler's reason for refusing.

        Return None if enough is reserved already or it takes too long. `is_named`: the request names this platform, so
        that no other offers wait for it.
        """
        if self._reservations.open >= self.reservations:
            return None
        key, limit = str(uuid4()), self._find_limit(is_named)
        try:
            answer = await self._reservations.make_within(key, words, limit)
        except PlatformUnreachable:
            return None
        if answer is None:
            return None
        if answer.refusal:
            message = f"{self.scheduler.title} reserves nothing for it: {answer.refusal}"
            return Reason(REFUSED, "schedule", message, platform=self.name)
        return replace(offer, latest_start=offer.start, terms=Booked(reservation=key))

    def _find_limit(self, is_named: bool) -> timedelta:
        return self.reserves_within * (NAMED if is_named else 1)

    async def reserve_by_plan(
        self,
        plan: SitePlan,
        reserve: Callable[[SitePlan], Awaitable[Offer | Reason | None]],
        replan: Callable[[], Awaitable[SitePlan | None]],
    ) -> Offer | Reason | None:
        """Reserve by a plan; if that is refused because someone else was faster, once more by a newer plan."""
        answer = await reserve(plan)
        if not isinstance(answer, Reason) or answer.kind != REFUSED:
            return answer
        newer = await replan()
        if newer is None or newer == plan:
            return answer
        return await reserve(newer) or answer

    async def reserve_in_first(
        self, wishes: Iterable[W], reserve: Callable[[W], Awaitable[Offer | Reason | None]], is_named: bool = False
    ) -> Offer | Reason | None:
        """Return the reservation in the first of these queues that has room, or the first queue's reason."""
        deadline = time.monotonic() + self._find_limit(is_named).total_seconds()
        first: Reason | None = None
        for wish in wishes:
            answer = await reserve(wish)
            if not isinstance(answer, Reason):
                return answer
            first = first or answer
            if time.monotonic() > deadline:
                break
        return first

    async def reserve_ahead(
        self, request: Request, now: datetime, reserve: Callable[[Window], Awaitable[Offer | Reason | None]]
    ) -> list[Offer | Reason]:
        """Reserve in the windows of a request, from the earliest time that can be reserved."""
        soonest = round_up(max(now + self.lead, request.not_before or now))
        return await self.reserve_windows(windows_ahead(request, soonest), reserve)

    async def reserve_windows(
        self, windows: Sequence[Window], reserve: Callable[[Window], Awaitable[Offer | Reason | None]]
    ) -> list[Offer | Reason]:
        """Reserve in each of these windows; if the caller is cancelled, mark the reservations as unwanted."""
        answers: list[Offer | Reason | None] = []
        try:
            for window in windows:
                answers += [await reserve(window)]
        except asyncio.CancelledError:
            self._reservations.forsake([each.reservation for each in answers if isinstance(each, Offer)])
            raise
        return [answer for answer in answers if answer]

    def take_reservation(self, key: str) -> None:
        """Record that a session was submitted into its reservation, which ends with the session."""
        self._reservations.taken.add(key)
