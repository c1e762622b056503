"""Why a session is where it is."""

from __future__ import annotations

from sublet.client.call import Call, as_view, path_of
from sublet.wire.v1.moves import Explanation


def explain(id: str) -> Call[Explanation]:
    """Why a session is where it is, in sentences."""
    return Call("GET", path_of("sessions", id, "explain"), as_view(Explanation))
