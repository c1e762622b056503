"""Recurring bookings: requested as a whole, accepted together, and changed one time at a time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any
from uuid import NAMESPACE_URL, uuid4, uuid5
from weakref import WeakValueDictionary

from sublet.booking.asking import Asking
from sublet.booking.keyed_acts import KeyedAct
from sublet.booking.model.giving_way import Precedence
from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Window
from sublet.booking.model.series import BookedSeat, SeatState, Series, SeriesState, check_size, plan_occurrences
from sublet.booking.model.session import OfferSet, Session
from sublet.booking.model.windows import parse_start
from sublet.booking.offers import Offers
from sublet.booking.sessions import Sessions
from sublet.kernel.clock import Clock
from sublet.kernel.errors import (
    BadRequest,
    IdTooShort,
    NotFound,
    OfferExpired,
    SeriesChanged,
    SeriesHasNoRoom,
    SubletError,
)
from sublet.kernel.settings import Settings
from sublet.kernel.short_ids import SHORTEST
from sublet.people.model.person import Person
from sublet.store.store import Store
from sublet.store.tx import Tx

HELD_TOGETHER = Precedence(keep_offers=True, firm=True)
OWN_WORDS = ("start", "time")  # fields of the short form that a booking sets itself
FITS = ("all", "some")
NOT_BOOKED = "No platform here can keep that time free; a queue that others share only predicts its starts."


@dataclass(frozen=True, slots=True)
class SeriesAsk:
    """A request for a booking."""

    every: str
    request: Mapping[str, Any]  # in the short form
    name: str = ""
    count: int | None = None
    until: datetime | None = None
    without: tuple[date, ...] = ()
    seats: int = 1
    fit: str = "all"
    group: str = ""  # the group whose members may take its seats, one each


@dataclass
class RecurringBookings:
    """A person's recurring bookings."""

    settings: Settings
    store: Store
    now: Clock
    asking: Asking
    offers: Offers
    sessions: Sessions
    key_locks: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    async def propose(self, person: Person, ask: SeriesAsk, *, key: str | None = None) -> Series:
        """Hold a seat for each time; raise SeriesHasNoRoom, with nothing held, if all have to fit and some don't.

        A repeated key returns the booking that was made under it, unless that wasn't accepted in time.
        """
        _check_request(ask)
        if key is None:
            return await self._propose(str(uuid4()), person, ask)

        def find(tx: Tx) -> tuple[Series | None, str]:
            KeyedAct(person.name, "booking", key, repr(ask)).note(tx, self.now())
            return _find_made_under(tx, person, key, self.now())

        async with self.key_locks.setdefault(f"{person.name} {key}", asyncio.Lock()):
            known, id = await self.store.write(find)
            return known or await self._propose(id, person, ask)

    async def _propose(self, id: str, person: Person, ask: SeriesAsk) -> Series:
        now = self.now()
        limits = {"count": ask.count, "until": ask.until, "without": ask.without}
        times = plan_occurrences(ask.every, now, self.settings.horizon, **limits)  # type: ignore[arg-type]
        check_size(times, ask.seats)
        seats, expires = await self._hold(person, ask.request, times, ask.seats, group=ask.group)
        missed = [seat for seat in seats if seat.state is SeatState.MISSED]
        if missed and (ask.fit == "all" or len(missed) == len(seats)):
            await self._give_back(person, seats)
            raise _refuse(missed, len(seats))
        name = ask.name or str(ask.request.get("name") or "booking")
        parts = (id, person.name, name, ask.every, ask.seats, ask.fit, json.dumps(dict(ask.request)))
        proposed = Series(*parts, now, min(expires), SeriesState.OFFERED, tuple(seats), ask.group)
        stored = await self.store.write(lambda tx: _add(tx, proposed))
        if stored is not proposed:
            await self._give_back(person, seats)
        return stored

    async def accept(self, name: str, person: Person) -> Series:
        """Accept everything that is held, in one write; accepting again changes nothing."""
        series = await self.get(name, person)
        if series.state is not SeriesState.OFFERED:
            return series
        if series.expires <= self.now():
            raise OfferExpired(expires=f"{series.expires:%Y-%m-%dT%H:%M:%SZ}")
        taken = tuple(
            replace(seat, state=SeatState.BOOKED) if seat.state is SeatState.OFFERED else seat for seat in series.seats
        )
        return await self._take(person, replace(series, state=SeriesState.BOOKED, seats=taken), series)

    async def skip(self, name: str, person: Person, day: date) -> Series:
        """Cancel the sessions that are booked on a day."""
        series = await self.get(name, person)
        chosen = _require_on(series, day)
        await self.sessions.cancel_all([seat.offer for seat in chosen], person, f"left out of {series.name}")
        return await self._change(series.id, lambda fresh: _mark(fresh, chosen, SeatState.SKIPPED))

    async def move(self, name: str, person: Person, day: date, to: str) -> Series:
        """Move the sessions of a day to another time; if that has no room, nothing changes."""
        series = await self.get(name, person)
        chosen = _require_on(series, day)
        window = parse_start(to, self.now())
        if not isinstance(window, Window) or window.start <= self.now():
            raise BadRequest(detail=f"`to`: {to!r} is no single time to come", hint="Write one, as '2026-12-23 09:00'.")
        length = chosen[0].end - chosen[0].start
        time = Window(window.start, window.start + length)
        seats, _ = await self._hold(
            person, json.loads(series.document), [time], len(chosen), chosen[0].number, group=series.group
        )
        if missed := [seat for seat in seats if seat.state is SeatState.MISSED]:
            await self._give_back(person, seats)
            raise _refuse(missed, len(seats))
        gone = _mark(series, chosen, SeatState.MOVED)
        new = tuple(replace(seat, state=SeatState.BOOKED) for seat in seats)
        changed = await self._take(person, replace(gone, seats=(*gone.seats, *new)), series, new)
        await self.sessions.cancel_all([seat.offer for seat in chosen], person, f"moved to {to}")
        return changed

    async def cancel(self, name: str, person: Person) -> Series:
        """Give back everything that is still to come."""
        series = await self.get(name, person)
        if series.state is SeriesState.OFFERED:
            coming = [seat for seat in series.seats if seat.state is SeatState.OFFERED]
            await self._give_back(person, series.seats)
        else:
            coming = [seat for seat in series.own if seat.end > self.now()]
            await self.sessions.cancel_all([seat.offer for seat in coming], person, f"{series.name} is cancelled")

        def note(fresh: Series) -> Series:
            return replace(_mark(fresh, coming, SeatState.CANCELLED), state=SeriesState.CANCELLED)

        return await self._change(series.id, note)

    async def get(self, name: str, person: Person) -> Series:
        """Return one of a person's bookings, by its id or the beginning of it."""
        matches = await self.store.read(lambda tx: tx.series.find(name, person.name))
        if len(matches) > 1:
            raise IdTooShort(noun="booking", name=name, least=SHORTEST)
        if not matches:
            raise NotFound(noun="booking", name=name, hint="`sublet booking list` lists yours.")
        return matches[0]

    async def list_own(self, person: Person) -> Sequence[Series]:
        """List a person's bookings, newest first."""
        return await self.store.read(lambda tx: tx.series.list(person.name))

    async def _hold(
        self,
        person: Person,
        request: Mapping[str, Any],
        times: Sequence[Window],
        seats: int,
        first: int = 1,
        *,
        group: str = "",
    ) -> tuple[list[BookedSeat], list[datetime]]:
        """Hold an offer for each seat at each time, or note why there is none; if asking fails, nothing stays held.

        Seats for a group must be in this service's own calendars: at another broker they would stay the organiser's.
        """
        held: list[BookedSeat] = []
        expires: list[datetime] = [self.now() + self.settings.hold]
        try:
            for number, time in enumerate(times, first):
                for seat in range(1, seats + 1):
                    offerset = await self._ask(person, request, time)
                    kept = [each for each in offerset.offers if each.offer.is_kept_free]
                    booked = next((each for each in kept if not group or each.offer.is_in_calendar), None)
                    held.append(_seat(number, seat, time, offerset, booked))
                    expires += [booked.expires] if booked else []
        except SubletError:
            await self._give_back(person, held)
            raise
        return held, expires

    async def _ask(self, person: Person, request: Mapping[str, Any], time: Window) -> OfferSet:
        seconds = round((time.end - time.start).total_seconds())
        document = {**request, "time": f"{seconds}s", "start": f"{time.start:%Y-%m-%dT%H:%M:%SZ}/PT0S"}
        asked = await self.asking.read(json.dumps(document).encode(), "application/json", person)
        return await self.asking.ask(person, replace(asked, precedence=HELD_TOGETHER))

    async def _take(
        self, person: Person, changed: Series, before: Series, seats: Sequence[BookedSeat] | None = None
    ) -> Series:
        """Accept these seats and record that, in one write, unless someone changed the booking meanwhile."""
        ids = [seat.offer for seat in (changed.booked if seats is None else seats)]

        def record(tx: Tx, session: Session) -> Session:
            if tx.series.get(changed.id) != before:
                raise SeriesChanged
            tx.series.save(changed)
            return session

        await self.sessions.accept(ids[0], person, others=ids[1:], also=record)
        return changed

    async def _give_back(self, person: Person, seats: Sequence[BookedSeat]) -> None:
        for seat in seats:
            if seat.state is SeatState.OFFERED:
                with suppress(NotFound):  # it has expired, and was removed
                    session = await self.sessions.get(seat.offer, person)
                    await self.offers.reject_set(session.offerset, person)

    async def _change(self, id: str, change: Callable[[Series], Series]) -> Series:
        """Change the booking as it is now, since seats may have been taken meanwhile."""

        def work(tx: Tx) -> Series:
            fresh = tx.series.get(id)
            if fresh is None:
                raise NotFound(noun="booking", name=id[:8])
            changed = change(fresh)
            tx.series.save(changed)
            return changed

        return await self.store.write(work)


def _check_request(ask: SeriesAsk) -> None:
    for word in OWN_WORDS:
        if word in ask.request:
            detail = f"`{word}` is said by the hours of the booking"
            raise BadRequest(detail=detail, hint="Leave it out of the request.")
    if "executable" in ask.request:
        detail = "a booking takes a request in the short form"
        raise BadRequest(detail=detail, hint="Write run, image, app or notebook.")
    if ask.fit not in FITS:
        raise BadRequest(detail=f"`fit` is {ask.fit!r}", hint="Write all, or some to take those that fit.")


def _refuse(missed: Sequence[BookedSeat], count: int) -> SeriesHasNoRoom:
    first = missed[0]
    time = f"{first.start:%Y-%m-%d %H:%M} UTC"
    return SeriesHasNoRoom(missed=len(missed), count=count, first=time, why=first.why)


def _require_on(series: Series, day: date) -> list[BookedSeat]:
    chosen = series.on(day)
    if not chosen:
        days = ", ".join(dict.fromkeys(f"{seat.start:%Y-%m-%d}" for seat in series.booked[:5]))
        raise BadRequest(detail=f"nothing of {series.name} is booked on {day}", hint=f"It is on {days or 'no day'}.")
    return chosen


def _mark(series: Series, chosen: Sequence[BookedSeat], state: SeatState) -> Series:
    offers = {seat.offer for seat in chosen}
    seats = (replace(seat, state=state) if seat.offer in offers else seat for seat in series.seats)
    return replace(series, seats=tuple(seats))


def _seat(number: int, seat: int, time: Window, offerset: OfferSet, booked: Session | None) -> BookedSeat:
    if booked is not None:
        return BookedSeat(number, seat, time.start, time.end, SeatState.OFFERED, booked.id)
    why = NOT_BOOKED if offerset.offers else _first_reason(offerset.reasons)
    return BookedSeat(number, seat, time.start, time.end, SeatState.MISSED, why=why)


def _first_reason(reasons: Sequence[Reason]) -> str:
    return reasons[0].message if reasons else NOT_BOOKED


def _add(tx: Tx, proposed: Series) -> Series:
    """Add a booking, and return it, or the one that another process has made meanwhile under the same key."""
    known = tx.series.get(proposed.id)
    if known is None:
        tx.series.add(proposed)
    return known or proposed


def _find_made_under(tx: Tx, person: Person, key: str, now: datetime) -> tuple[Series | None, str]:
    """Return the booking that was made under a key, unless nobody accepted it in time, and the id of the next."""
    number = 0
    while True:
        id = str(uuid5(NAMESPACE_URL, f"booking {number} {person.name} {key}"))
        known = tx.series.get(id)
        if known is None or known.state is not SeriesState.OFFERED or known.expires > now:
            return known, id
        number += 1
