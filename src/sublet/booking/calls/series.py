"""Calls about recurring bookings."""

from __future__ import annotations

from dataclasses import asdict

from sublet.booking.views.series import BookingAsk, BookingList, BookingMove, BookingView, SeatAsk
from sublet.client.call import Call, as_view, body_of, path_of, under

READ = as_view(BookingView)


def propose(ask: BookingAsk, key: str | None = None) -> Call[BookingView]:
    """Hold the sessions of a booking; asking again with the same `key` returns the same booking."""
    return Call("POST", path_of("bookings"), READ, body=body_of(asdict(ask)), more=under(key), patience=600)


def bookings() -> Call[BookingList]:
    """List the caller's bookings."""
    return Call("GET", path_of("bookings"), as_view(BookingList))


def booking(id: str) -> Call[BookingView]:
    """Return one booking."""
    return Call("GET", path_of("bookings", id), READ)


def accept(id: str) -> Call[BookingView]:
    """Accept all sessions that a booking holds."""
    return Call("POST", path_of("bookings", id, "accept"), READ, body=b"{}")


def skip(id: str, day: str) -> Call[BookingView]:
    """Skip a booking's sessions on a day."""
    return Call("POST", path_of("bookings", id, "skip"), READ, body=body_of(asdict(BookingMove(day=day))))


def move(id: str, day: str, to: str) -> Call[BookingView]:
    """Move a day's sessions to another time."""
    return Call("POST", path_of("bookings", id, "move"), READ, body=body_of(asdict(BookingMove(day=day, to=to))))


def claim(id: str, day: str = "") -> Call[BookingView]:
    """Take a seat of a group's booking."""
    return Call("POST", path_of("bookings", id, "claim"), READ, body=body_of(asdict(SeatAsk(day=day))))


def release(id: str, day: str = "") -> Call[BookingView]:
    """Release the seats that nobody took."""
    return Call("POST", path_of("bookings", id, "release"), READ, body=body_of(asdict(SeatAsk(day=day))))


def cancel(id: str) -> Call[BookingView]:
    """Cancel all future sessions of a booking."""
    return Call("DELETE", path_of("bookings", id), READ)
