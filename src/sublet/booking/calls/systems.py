"""Calls about the systems behind platforms."""

from __future__ import annotations

from sublet.booking.views.systems import ProbeView, RecordView
from sublet.client.call import Call, as_view, path_of


def probe(name: str) -> Call[ProbeView]:
    """Probe the live system, and compare it with what was known."""
    return Call("POST", path_of("systems", name, "probe"), as_view(ProbeView))


def record(name: str) -> Call[RecordView]:
    """Return how a system's predicted starts came true."""
    return Call("GET", path_of("systems", name, "record"), as_view(RecordView))
