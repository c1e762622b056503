"""Places: declare, list and remove them, and one's own scratch in them."""

from __future__ import annotations

from sublet.client.call import Call, as_view, body_of, nothing, path_of
from sublet.data.views.places import PlaceAsk, PlaceList, PlaceView, ScratchKeep, ScratchView
from sublet.kernel.views import plain


def add(ask: PlaceAsk) -> Call[PlaceView]:
    """Declare a place, in place of the one that there was of this name on its platform."""
    return Call("POST", path_of("places"), as_view(PlaceView), body=body_of(plain(ask)))


def places() -> Call[PlaceList]:
    """The places that the asker may use, and until when their scratch is kept."""
    return Call("GET", path_of("places"), as_view(PlaceList))


def remove(platform: str, name: str) -> Call[None]:
    """Forget a place."""
    return Call("DELETE", path_of("places", platform, name), nothing)


def keep(platform: str, name: str, seconds: float) -> Call[ScratchView]:
    """Keep one's own scratch for so long from now on."""
    body = body_of(plain(ScratchKeep(seconds=seconds)))
    return Call("PUT", path_of("places", platform, name, "scratch"), as_view(ScratchView), body=body)


def clear(platform: str, name: str) -> Call[None]:
    """Remove one's own scratch with all that is in it."""
    return Call("DELETE", path_of("places", platform, name, "scratch"), nothing)
