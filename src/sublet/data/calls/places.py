"""Calls about places: declare, list and remove them, and manage one's own scratch in them."""

from __future__ import annotations

from sublet.client.call import Call, as_view, body_of, nothing, path_of
from sublet.data.views.places import PlaceAsk, PlaceList, PlaceView, ScratchKeep, ScratchView
from sublet.kernel.views import plain


def add(ask: PlaceAsk) -> Call[PlaceView]:
    """Declare a place, replacing one of the same name on its platform."""
    return Call("POST", path_of("places"), as_view(PlaceView), body=body_of(plain(ask)))


def places() -> Call[PlaceList]:
    """List the places that the caller may use, and until when their scratch is kept."""
    return Call("GET", path_of("places"), as_view(PlaceList))


def remove(platform: str, name: str) -> Call[None]:
    """Remove a place."""
    return Call("DELETE", path_of("places", platform, name), nothing)


def keep(platform: str, name: str, seconds: float) -> Call[ScratchView]:
    """Keep one's own scratch for this many seconds from now on."""
    body = body_of(plain(ScratchKeep(seconds=seconds)))
    return Call("PUT", path_of("places", platform, name, "scratch"), as_view(ScratchView), body=body)


def clear(platform: str, name: str) -> Call[None]:
    """Remove one's own scratch and its content."""
    return Call("DELETE", path_of("places", platform, name, "scratch"), nothing)
