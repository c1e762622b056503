"""Recurring bookings."""

from __future__ import annotations

from dataclasses import asdict

from sublet.booking.views.series import BookingAsk, BookingList, BookingMove, BookingView, SeatAsk
from sublet.client.call import Call, as_view, body_of, path_of

READ = as_view(BookingView)


def propose(ask: BookingAsk) -> Call[BookingView]:
    """Hold what a booking needs."""
    return Call("POST", path_of("bookings"), READ, body=body_of(asdict(ask)), patience=600)


def bookings() -> Call[BookingList]:
    """One's own."""
    return Call("GET", path_of("bookings"), as_view(BookingList))


def booking(id: str) -> Call[BookingView]:
    """One of them."""
    return Call("GET", path_of("bookings", id), READ)


def accept(id: str) -> Call[BookingView]:
    """Take all that is held for it."""
    return Call("POST", path_of("bookings", id, "accept"), READ, body=b"{}")


def skip(id: str, day: str) -> Call[BookingView]:
    """Leave out a day."""
    return Call("POST", path_of("bookings", id, "skip"), READ, body=body_of(asdict(BookingMove(day=day))))


def move(id: str, day: str, to: str) -> Call[BookingView]:
    """Have a day's sessions at another time."""
    return Call("POST", path_of("bookings", id, "move"), READ, body=body_of(asdict(BookingMove(day=day, to=to))))


def claim(id: str, day: str = "") -> Call[BookingView]:
    """Take a seat."""
    return Call("POST", path_of("bookings", id, "claim"), READ, body=body_of(asdict(SeatAsk(day=day))))


def release(id: str, day: str = "") -> Call[BookingView]:
    """Give back the seats that nobody took."""
    return Call("POST", path_of("bookings", id, "release"), READ, body=body_of(asdict(SeatAsk(day=day))))


def cancel(id: str) -> Call[BookingView]:
    """Give back all that is to come."""
    return Call("DELETE", path_of("bookings", id), READ)
