"""Pledges, and what is open."""

from __future__ import annotations

from sublet.access.views.pledges import AddedPledgeView, PledgeAsk, PledgeEdit, PledgeList
from sublet.client.call import Call, as_view, body_of, path_of
from sublet.kernel.views import plain


def pledges() -> Call[PledgeList]:
    """The parts of all platforms."""
    return Call("GET", path_of("pledges"), as_view(PledgeList))


def pledge(name: str) -> Call[PledgeList]:
    """One, on each platform that has it."""
    return Call("GET", path_of("pledges", name), as_view(PledgeList))


def add(ask: PledgeAsk) -> Call[AddedPledgeView]:
    """Add one."""
    return Call("POST", path_of("pledges"), as_view(AddedPledgeView), body=body_of(plain(ask)))


def edit(name: str, changes: PledgeEdit, platform: str = "") -> Call[AddedPledgeView]:
    """Change one that was added; `platform` says which, where several have one of this name."""
    path, body = path_of("pledges", name), body_of(plain(changes))
    return Call("PATCH", path, as_view(AddedPledgeView), query={"platform": platform}, body=body)


def remove(name: str, platform: str = "") -> Call[AddedPledgeView]:
    """Remove one that was added."""
    return Call("DELETE", path_of("pledges", name), as_view(AddedPledgeView), query={"platform": platform})
