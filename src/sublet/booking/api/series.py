"""Recurring bookings under /v1: one request at recurring times."""

from __future__ import annotations

from datetime import date, datetime

from fastapi import APIRouter, Request
from starlette.responses import Response

from sublet.api import described
from sublet.api.bodies import json_response
from sublet.api.idempotency import Key
from sublet.api.people import person_of, service_of
from sublet.booking.model.series import Series
from sublet.booking.series import SeriesAsk
from sublet.booking.views.series import BookingAsk, BookingList, BookingMove, BookingView, SeatAsk, SeatView
from sublet.kernel.errors import BadRequest
from sublet.kernel.views import read_instant

router = APIRouter(prefix="/v1/bookings", tags=["Bookings"])


@router.post(
    "",
    status_code=201,
    response_model=BookingView,
    **described.describe_keyed(described.problems(400, 401, 403, 409, 429)),
)
async def propose(request: Request, ask: BookingAsk, key: Key) -> Response:
    """Hold a session for each time of a booking; if all have to fit and some don't, nothing is held (409)."""
    wanted = SeriesAsk(
        every=ask.every,
        request=ask.request,
        name=ask.name,
        count=ask.count,
        until=_instant(ask.until),
        without=tuple(_day(day) for day in ask.without),
        seats=ask.seats,
        fit=ask.fit,
        group=ask.group,
    )
    proposed = await service_of(request).group_seats.propose(await person_of(request), wanted, key=key)
    return json_response(booking_view(proposed), 201)


@router.get("", response_model=BookingList, responses=described.problems(401))
async def bookings(request: Request) -> Response:
    """Your bookings, the newest first, and those of others of which members of your groups take seats."""
    service, person = service_of(request), await person_of(request)
    own, others = await service.bookings.list_own(person), await service.group_seats.list_open(person)
    views = (tuple(booking_view(series) for series in listed) for listed in (own, others))
    return json_response(BookingList(items=next(views), open=next(views)))


@router.get("/{id}", response_model=BookingView, responses=described.problems(401, 404))
async def booking(request: Request, id: str) -> Response:
    """One of your bookings, or one for a group of yours, with its free seats and your own."""
    return json_response(booking_view(await service_of(request).group_seats.get(id, await person_of(request))))


@router.post("/{id}/accept", response_model=BookingView, responses=described.problems(401, 403, 404, 409))
async def accept(request: Request, id: str) -> Response:
    """Take all that is held for it, at once or not at all; accepting twice is once."""
    return json_response(booking_view(await service_of(request).bookings.accept(id, await person_of(request))))


@router.post("/{id}/skip", response_model=BookingView, responses=described.problems(400, 401, 404))
async def skip(request: Request, id: str, move: BookingMove) -> Response:
    """Leave out what is booked on a day."""
    person, bookings = await person_of(request), service_of(request).bookings
    await bookings.get(id, person)  # so that a missing booking is reported before a wrong day
    return json_response(booking_view(await bookings.skip(id, person, _day(move.day))))


@router.post("/{id}/move", response_model=BookingView, responses=described.problems(400, 401, 403, 404, 409))
async def move(request: Request, id: str, move: BookingMove) -> Response:
    """Have what is booked on a day at another time; without room there, everything stays as it is (409)."""
    person, bookings = await person_of(request), service_of(request).bookings
    await bookings.get(id, person)
    return json_response(booking_view(await bookings.move(id, person, _day(move.day), move.to)))


@router.post("/{id}/claim", response_model=BookingView, responses=described.problems(400, 401, 403, 404, 409))
async def claim(request: Request, id: str, ask: SeatAsk) -> Response:
    """Take a free seat at each time to come, or on a day: it is a session of your own, by your own rules."""
    seats, person = service_of(request).group_seats, await person_of(request)
    return json_response(booking_view(await seats.claim(id, person, _day(ask.day) if ask.day else None)))


@router.post("/{id}/release", response_model=BookingView, responses=described.problems(400, 401, 404, 409))
async def release(request: Request, id: str, ask: SeatAsk) -> Response:
    """Release the seats of your booking that nobody has taken, at all future times or on one day."""
    seats, person = service_of(request).group_seats, await person_of(request)
    return json_response(booking_view(await seats.release(id, person, _day(ask.day) if ask.day else None)))


@router.delete("/{id}", response_model=BookingView, responses=described.problems(401, 404))
async def cancel(request: Request, id: str) -> Response:
    """Give back all of it that is still to come."""
    return json_response(booking_view(await service_of(request).bookings.cancel(id, await person_of(request))))


def booking_view(series: Series) -> BookingView:
    """Convert a booking to its view."""
    seats = tuple(
        SeatView(
            number=seat.number,
            seat=seat.seat,
            start=seat.start,
            end=seat.end,
            state=seat.state.value,
            session=seat.offer,
            why=seat.why,
            taker=seat.taker,
        )
        for seat in series.seats
    )
    return BookingView(
        id=series.id,
        short=series.id[:8],
        name=series.name,
        every=series.every,
        state=series.state.value,
        fit=series.fit,
        seats_each=series.seats_each,
        created=series.created,
        expires=series.expires,
        seats=seats,
        organiser=series.person,
        group=series.group,
    )


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise BadRequest(detail=f"{text!r} is no day", hint="Write it as 2026-12-24.") from error


def _instant(text: str) -> datetime | None:
    try:
        return read_instant(text) if text else None
    except (ValueError, OverflowError) as error:
        raise BadRequest(detail=f"`until`: {text!r} is no instant", hint="Write it as 2027-02-28T00:00:00Z.") from error
