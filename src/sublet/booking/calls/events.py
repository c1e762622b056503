"""Calls about events."""

from __future__ import annotations

from sublet.booking.views.events import EventPage
from sublet.client.call import Call, as_bytes, as_view, path_of


def events(session: str = "", after: int = 0, limit: int = 100) -> Call[EventPage]:
    """List events, oldest first."""
    return Call("GET", path_of("events"), as_view(EventPage), query=_query(session, after, limit))


def event_stream(session: str = "", after: int = 0) -> Call[bytes]:
    """Stream events as they happen, as Server-Sent Events."""
    return Call("GET", path_of("events"), as_bytes, query=_query(session, after, None), accept="text/event-stream")


def _query(session: str, after: int, limit: int | None) -> dict[str, object]:
    return {"session": session, "after": after, "limit": limit}
