"""Seats of a booking for the members of a group: each takes one as their own session; the rest can be released."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

from sublet.booking.model.series import BookedSeat, SeatState, Series
from sublet.booking.ports import AcceptReview, Admission
from sublet.booking.series import RecurringBookings, SeriesAsk
from sublet.booking.session_endings import require_session
from sublet.booking.signals import Signals
from sublet.booking.transfer import transfer
from sublet.kernel.authority import Authority
from sublet.kernel.clock import Clock
from sublet.kernel.errors import BadRequest, NoSeatLeft, NotAllowed, NotFound, NotHandable
from sublet.people.model.person import Person
from sublet.store.store import Store
from sublet.store.tx import Tx


@dataclass
class GroupSeats:
    """Bookings that are made for a group."""

    store: Store
    now: Clock
    authority: Authority
    signals: Signals
    bookings: RecurringBookings
    admissions: Sequence[Admission]
    reviews: Sequence[AcceptReview]

    async def propose(self, person: Person, ask: SeriesAsk, *, key: str | None = None) -> Series:
        """Hold a booking; one for a group can't use the organiser's own data, outputs or places."""
        if ask.group:
            self.authority.require_gateway()
            await self.store.read(lambda tx: _require_group(tx, ask.group))
            if own := [name for name in ("data", "outputs", "places") if ask.request.get(name)]:
                raise NotHandable(session=ask.name or "each seat", what=", ".join(own))
        return await self.bookings.propose(person, ask, key=key)

    async def list_open(self, person: Person) -> list[Series]:
        """List other people's bookings in which a person can take a seat or has one, with the seats they may see."""
        now = self.now()

        def look(tx: Tx) -> list[Series]:
            shared = tx.series.list_shared(tx.groups.everywhere(person.name, now))
            return [_show_to(series, person.name) for series in shared if series.person != person.name]

        return [series for series in await self.store.read(look) if any(seat.end > now for seat in series.seats)]

    async def get(self, name: str, person: Person) -> Series:
        """Return a booking of the person or of their groups, by its id or a prefix of it."""
        try:
            return await self.bookings.get(name, person)
        except NotFound:
            named = [series for series in await self.list_open(person) if name and series.id.startswith(name.lower())]
            if len(named) != 1:
                raise
            return named[0]

    async def claim(self, name: str, person: Person, day: date | None = None) -> Series:
        """Take a seat at each future time, or on one day, as the person's own sessions: all of them or none."""
        series = await self._find_shared(name, person)
        try:
            for seat in series.choose_for(person.name, self.now(), day):
                await self._review(seat, person)
            await self.store.write(lambda tx: self._claim(tx, series.id, person, day))
        except NotAllowed as error:
            for admission in self.admissions:
                await admission.note_refusal("take", person, error, booking=series.id)
            raise
        await self.signals.announce()
        return await self.get(series.id, person)

    async def release(self, name: str, person: Person, day: date | None = None) -> Series:
        """Cancel the seats that nobody took, at all future times or on one day; only the organiser can."""
        series, now = await self.bookings.get(name, person), self.now()
        free = [seat for seat in (series.on(day) if day else series.own) if seat.end > now]
        if not free:
            raise NoSeatLeft(name=series.name, hint=f"`sublet booking show {series.id[:8]}` shows who took which.")
        await self.bookings.sessions.cancel_all([seat.offer for seat in free], person, f"a seat of {series.name}")
        gone = {seat.offer for seat in free}
        return await self.store.write(lambda tx: _release(tx, series.id, gone))

    def _claim(self, tx: Tx, id: str, person: Person, day: date | None) -> None:
        now = self.now()
        series = tx.series.get(id)
        if series is None or series.group not in tx.groups.everywhere(person.name, now):
            raise NotFound(noun="booking", name=id[:8], hint="`sublet booking list` lists yours.")
        chosen = series.choose_for(person.name, now, day)
        if not chosen and not any(seat.taker == person.name for seat in series.booked):
            raise NoSeatLeft(name=series.name)
        for seat in chosen:
            transfer(tx, seat.offer, person.name, self.admissions, now)

    async def _review(self, seat: BookedSeat, person: Person) -> None:
        session = await self.store.read(lambda tx: require_session(tx, seat.offer))
        for review in self.reviews:
            await review.review("accept", person, replace(session, person=person.name), session.offer)

    async def _find_shared(self, name: str, person: Person) -> Series:
        series = await self.get(name, person)
        if series.person == person.name:
            raise BadRequest(detail="its free seats are yours already", hint="Members of its group take them.")
        whole = await self.store.read(lambda tx: tx.series.get(series.id))
        return whole or series


def _require_group(tx: Tx, name: str) -> None:
    """Raise NotFound if a group doesn't exist; an issuer's group, with `:` in its name, can't be checked."""
    if ":" not in name and tx.groups.get(name) is None:
        known = ", ".join(group.name for group in tx.groups.list()[:10]) or "none"
        raise NotFound(noun="group", name=name, hint=f"There are: {known}.")


def _show_to(series: Series, person: str) -> Series:
    """Return a booking as a member of its group sees it: with the free seats and their own."""
    seats = [
        seat if seat.taker == person else replace(seat, offer="")
        for seat in series.booked
        if seat.taker in ("", person)
    ]
    return replace(series, seats=tuple(seats), document="")


def _release(tx: Tx, id: str, sessions: set[str]) -> Series:
    series = tx.series.get(id)
    if series is None:
        raise NotFound(noun="booking", name=id[:8], hint="`sublet booking list` lists yours.")
    released = replace(
        series,
        seats=tuple(
            replace(seat, state=SeatState.RELEASED) if seat.offer in sessions and not seat.taker else seat
            for seat in series.seats
        ),
    )
    tx.series.save(released)
    return released
