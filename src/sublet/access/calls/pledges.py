"""Pledges, and what is open."""

from __future__ import annotations

from sublet.access.views.pledges import PledgeList
from sublet.client.call import Call, as_view, path_of


def pledges() -> Call[PledgeList]:
    """The parts of all platforms."""
    return Call("GET", path_of("pledges"), as_view(PledgeList))


def pledge(name: str) -> Call[PledgeList]:
    """One, on each platform that has it."""
    return Call("GET", path_of("pledges", name), as_view(PledgeList))
