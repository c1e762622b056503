"""Calls that explain, pause, resume and repeat a session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sublet.booking.calls.offers import precedence
from sublet.booking.views.moves import Explanation, PauseView
from sublet.booking.views.offers import OfferSetView
from sublet.client.call import Call, as_view, body_of, path_of, under
from sublet.client.documents import with_local_starts


def explain(id: str) -> Call[Explanation]:
    """Explain in sentences why a session is in its phase."""
    return Call("GET", path_of("sessions", id, "explain"), as_view(Explanation))


def pause(id: str) -> Call[PauseView]:
    """Pause a session."""
    return Call("POST", path_of("sessions", id, "pause"), as_view(PauseView))


def resume(id: str) -> Call[PauseView]:
    """Resume a paused session."""
    return Call("POST", path_of("sessions", id, "resume"), as_view(PauseView))


def again(id: str, changes: Mapping[str, Any], *, firm: bool = False, key: str | None = None) -> Call[OfferSetView]:
    """Ask again for what a session ran, with changes; the answer's notes say which."""
    path, query = path_of("sessions", id, "again"), precedence(firm=firm)
    body = body_of(with_local_starts(dict(changes)))
    return Call("POST", path, as_view(OfferSetView), query=query, body=body, more=under(key))
