"""Whether the service is there."""

from __future__ import annotations

from sublet.booking.views.health import HealthView
from sublet.client.call import Call, as_view


def health() -> Call[HealthView]:
    """That it is there, and what it serves."""
    return Call("GET", "/health", as_view(HealthView), accepts=frozenset({503}))
