"""Sessions: list them, look at one, move it on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sublet.client.call import Answer, Call, as_view, body_of, nothing, path_of
from sublet.wire.reader import instant_text
from sublet.wire.v1.sessions import SessionPage, SessionView

READ_SESSION = as_view(SessionView)


def sessions(
    *,
    active: bool = False,
    phase: str | Sequence[str] = "",
    kind: str = "",
    platform: str = "",
    name: str = "",
    limit: int = 100,
    after: str = "",
) -> Call[SessionPage]:
    """Some of the sessions, newest first."""
    filters = {"phase": phase, "kind": kind, "platform": platform, "name": name, "active": active}
    return Call("GET", path_of("sessions"), as_view(SessionPage), query={**filters, "limit": limit, "after": after})


def session(id: str) -> Call[SessionView]:
    """One session, by its id or the beginning of it."""
    return Call("GET", path_of("sessions", id), READ_SESSION)


def accept(id: str) -> Call[SessionView]:
    """Take an offer."""
    return Call("POST", path_of("sessions", id, "accept"), READ_SESSION)


def reject(id: str) -> Call[SessionView]:
    """Decline an offer."""
    return Call("POST", path_of("sessions", id, "reject"), READ_SESSION)


def cancel(id: str) -> Call[SessionView]:
    """Stop a session, whatever it is doing."""
    return Call("POST", path_of("sessions", id, "cancel"), READ_SESSION)


def extend(id: str, by: str = "", until: datetime | None = None) -> Call[SessionView]:
    """Move the end of a session's time."""
    wish = {"until": instant_text(until)} if until else {"by": by}
    return Call("POST", path_of("sessions", id, "extend"), READ_SESSION, body=body_of(wish))


def delete(id: str) -> Call[None]:
    """Remove a session that is over, with its files."""
    return Call("DELETE", path_of("sessions", id), nothing)


def logs(
    id: str, stream: str = "stdout", offset: int = 0, limit: int | None = None, tail: str | None = None
) -> Call[Answer]:
    """A part of what a session printed, or its end; the headers say where that is, and whether more can come."""
    query = {"stream": stream, "offset": offset, "limit": limit, "tail": tail}
    return Call("GET", path_of("sessions", id, "logs"), _whole, query=query, accept="*/*")


def follow(id: str, stream: str = "stdout", offset: int = 0) -> Call[Answer]:
    """What a session prints, until it is over."""
    query = {"stream": stream, "offset": offset, "follow": True}
    return Call("GET", path_of("sessions", id, "logs"), _whole, query=query, accept="*/*")


def _whole(answer: Answer) -> Answer:
    return answer
