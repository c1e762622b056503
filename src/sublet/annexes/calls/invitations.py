"""Invitations of sites."""

from __future__ import annotations

from sublet.annexes.views.invitations import InvitationView
from sublet.client.call import Call, as_view, body_of, nothing, path_of


def invite(site: str, *, anew: bool = False) -> Call[InvitationView]:
    """Let a site fetch requests for leases."""
    return Call("POST", path_of("invitations", site), as_view(InvitationView), body=body_of({"anew": anew}))


def withdraw(site: str) -> Call[None]:
    """Let it no longer."""
    return Call("DELETE", path_of("invitations", site), nothing)
