"""Calls about the access point."""

from __future__ import annotations

from sublet.annexes.views.access_point import AccessPointView
from sublet.client.call import Call, as_view, body_of, nothing, path_of


def access_point() -> Call[AccessPointView]:
    """Show the state of the access point."""
    return Call("GET", path_of("access-point"), as_view(AccessPointView))


def set_up(*, fetch: bool = False, system: str = "") -> Call[AccessPointView]:
    """Set up the access point; with `fetch`, download HTCondor if it is missing."""
    wish = {"fetch": fetch, "system": system}
    return Call("POST", path_of("access-point"), as_view(AccessPointView), body=body_of(wish))


def stop() -> Call[None]:
    """Stop the access point; its queue is kept."""
    return Call("DELETE", path_of("access-point"), nothing)
