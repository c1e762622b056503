"""The access point."""

from __future__ import annotations

from sublet.annexes.views.access_point import AccessPointView
from sublet.client.call import Call, as_view, body_of, nothing, path_of


def access_point() -> Call[AccessPointView]:
    """How it is."""
    return Call("GET", path_of("access-point"), as_view(AccessPointView))


def set_up(*, fetch: bool = False, system: str = "") -> Call[AccessPointView]:
    """Make it ready, and bring HTCondor if that is wanted."""
    wish = {"fetch": fetch, "system": system}
    return Call("POST", path_of("access-point"), as_view(AccessPointView), body=body_of(wish))


def stop() -> Call[None]:
    """End it; the queue stays."""
    return Call("DELETE", path_of("access-point"), nothing)
