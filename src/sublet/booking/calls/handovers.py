"""Calls that hand a session over to another person."""

from __future__ import annotations

from dataclasses import asdict

from sublet.booking.views.handovers import HandOverAsk, HandOverList, HandOverView
from sublet.booking.views.sessions import SessionView
from sublet.client.call import Call, as_view, body_of, nothing, path_of


def give(session: str, to: str) -> Call[HandOverView]:
    """Offer a session to someone."""
    body = body_of(asdict(HandOverAsk(session=session, to=to)))
    return Call("POST", path_of("handovers"), as_view(HandOverView), body=body)


def handovers() -> Call[HandOverList]:
    """List the sessions that the caller offers, and those offered to the caller."""
    return Call("GET", path_of("handovers"), as_view(HandOverList))


def take(session: str) -> Call[SessionView]:
    """Take over a session."""
    return Call("POST", path_of("handovers", session, "take"), as_view(SessionView), body=b"{}")


def drop(session: str) -> Call[None]:
    """Withdraw or decline a hand-over."""
    return Call("DELETE", path_of("handovers", session), nothing)
