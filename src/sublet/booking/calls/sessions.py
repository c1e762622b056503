"""Calls that list, show and change sessions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sublet.booking.model.phases import Phase
from sublet.booking.views.sessions import SessionPage, SessionView
from sublet.client.call import Call, HttpAnswer, as_view, body_of, nothing, path_of, under
from sublet.kernel.errors import BadRequest
from sublet.kernel.views import instant_text

if TYPE_CHECKING:
    from sublet.booking.views.moves import CancelView

PHASES = [str(phase) for phase in Phase]
READ_SESSION = as_view(SessionView)


def sessions(
    *,
    active: bool = False,
    phase: str | Sequence[str] = "",
    kind: str = "",
    platform: str = "",
    name: str = "",
    person: str = "",
    app: str = "",
    annex: str = "",
    since: str | datetime = "",
    until: str | datetime = "",
    limit: int = 100,
    after: str = "",
) -> Call[SessionPage]:
    """List sessions, newest first; operators can name another person, or `everyone`."""
    filters: dict[str, object] = {
        "phase": [_check_phase(name) for name in ((phase,) if isinstance(phase, str) else phase) if name],
        "kind": kind,
        "platform": platform,
        "name": name,
        "active": active,
    }
    filters |= {"person": person, "app": app, "annex": annex, "since": _instant(since), "until": _instant(until)}
    return Call("GET", path_of("sessions"), as_view(SessionPage), query={**filters, "limit": limit, "after": after})


def _check_phase(phase: str) -> str:
    """Return a phase in upper case; raise BadRequest, with the nearest phase, if there is no such phase."""
    name = phase.upper()
    if name not in PHASES:
        from difflib import get_close_matches  # only needed for a mistake

        near = get_close_matches(name, PHASES, 1)
        hint = f"Did you mean {near[0]}?" if near else f"They are {', '.join(PHASES)}."
        raise BadRequest(f"There is no phase {phase}.", hint=hint)
    return name


def _instant(time: str | datetime) -> str:
    return instant_text(time) if isinstance(time, datetime) else time


def session(id: str) -> Call[SessionView]:
    """Return one session, by its id or the beginning of it."""
    return Call("GET", path_of("sessions", id), READ_SESSION)


def accept(id: str, key: str | None = None) -> Call[SessionView]:
    """Accept an offer; a `key` stays with the offer that was accepted under it."""
    return Call("POST", path_of("sessions", id, "accept"), READ_SESSION, more=under(key))


def reject(id: str) -> Call[SessionView]:
    """Decline an offer."""
    return Call("POST", path_of("sessions", id, "reject"), READ_SESSION)


def cancel(id: str, reason: str = "") -> Call[SessionView]:
    """Cancel a session; its owner sees the reason."""
    body = body_of({"reason": reason}) if reason else None
    return Call("POST", path_of("sessions", id, "cancel"), READ_SESSION, body=body)


def cancel_all(ids: Sequence[str], reason: str = "", *, dry_run: bool = False) -> Call[CancelView]:
    """Cancel several sessions at once, without waiting until they have stopped."""
    wish = {"sessions": list(ids), "reason": reason, "dry_run": dry_run}
    from sublet.booking.views.moves import CancelView  # `ps` doesn't need it

    return Call("POST", path_of("sessions", "cancel"), as_view(CancelView), body=body_of(wish))


def extend(
    id: str, by: str | timedelta = "", until: datetime | None = None, key: str | None = None
) -> Call[SessionView]:
    """Move the end of a session's time; sent again with the same `key`, only once."""
    wish = {"until": instant_text(until)} if until else {"by": by}
    return Call("POST", path_of("sessions", id, "extend"), READ_SESSION, body=body_of(wish), more=under(key))


def delete(id: str) -> Call[None]:
    """Remove a session that is over, with its files."""
    return Call("DELETE", path_of("sessions", id), nothing)


def logs(
    id: str, stream: str = "stdout", offset: int = 0, limit: int | None = None, tail: str | None = None
) -> Call[HttpAnswer]:
    """Return a part of a session's output, or its end; the headers say where it is, and whether more can come."""
    query = {"stream": stream, "offset": offset, "limit": limit, "tail": tail}
    return Call("GET", path_of("sessions", id, "logs"), _whole, query=query, accept="*/*")


def follow(id: str, stream: str = "stdout", offset: int = 0) -> Call[HttpAnswer]:
    """Stream a session's output until the session ends."""
    query = {"stream": stream, "offset": offset, "follow": True}
    return Call("GET", path_of("sessions", id, "logs"), _whole, query=query, accept="*/*")


def _whole(answer: HttpAnswer) -> HttpAnswer:
    return answer
