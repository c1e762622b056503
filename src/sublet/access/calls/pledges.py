"""Calls about pledges."""

from __future__ import annotations

from sublet.access.views.pledges import AddedPledgeView, PledgeAsk, PledgeEdit, PledgeList
from sublet.client.call import Call, as_view, body_of, path_of
from sublet.kernel.views import plain


def pledges() -> Call[PledgeList]:
    """List the parts of all platforms."""
    return Call("GET", path_of("pledges"), as_view(PledgeList))


def pledge(name: str) -> Call[PledgeList]:
    """Show a pledge, on each platform that has it."""
    return Call("GET", path_of("pledges", name), as_view(PledgeList))


def add(ask: PledgeAsk) -> Call[AddedPledgeView]:
    """Add a pledge."""
    return Call("POST", path_of("pledges"), as_view(AddedPledgeView), body=body_of(plain(ask)))


def edit(name: str, changes: PledgeEdit, platform: str = "") -> Call[AddedPledgeView]:
    """Change a pledge that was added; `platform` says which, if several have one of this name."""
    path, body = path_of("pledges", name), body_of(plain(changes))
    return Call("PATCH", path, as_view(AddedPledgeView), query={"platform": platform}, body=body)


def remove(name: str, platform: str = "") -> Call[AddedPledgeView]:
    """Remove a pledge that was added."""
    return Call("DELETE", path_of("pledges", name), as_view(AddedPledgeView), query={"platform": platform})
