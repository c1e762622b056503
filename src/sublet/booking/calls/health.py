"""The call that asks whether the service is up."""

from __future__ import annotations

from sublet.booking.views.health import HealthView
from sublet.client.call import Call, as_view


def health() -> Call[HealthView]:
    """Ask whether the service is up, and what it serves."""
    return Call("GET", "/health", as_view(HealthView), accepts=frozenset({503}))
