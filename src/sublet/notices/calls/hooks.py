"""Calls about notifications."""

from __future__ import annotations

from collections.abc import Sequence

from sublet.client.call import Call, as_view, body_of, nothing, path_of
from sublet.notices.views.hooks import HookList, HookTestView, HookView


def add(address: str, session: str = "", on: Sequence[str] = (), expires: str = "") -> Call[HookView]:
    """Add a notification; only this answer shows its secret."""
    wish = {"address": address, "session": session, "on": list(on), "expires": expires}
    return Call("POST", path_of("hooks"), as_view(HookView), body=body_of(wish))


def hooks() -> Call[HookList]:
    """List the notifications."""
    return Call("GET", path_of("hooks"), as_view(HookList))


def remove(id: str) -> Call[None]:
    """Remove a notification."""
    return Call("DELETE", path_of("hooks", id), nothing)


def test(id: str) -> Call[HookTestView]:
    """Send a test now."""
    return Call("POST", path_of("hooks", id, "test"), as_view(HookTestView))
