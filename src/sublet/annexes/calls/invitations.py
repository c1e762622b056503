"""Calls about invitations of sites."""

from __future__ import annotations

from sublet.annexes.views.invitations import InvitationView
from sublet.client.call import Call, as_view, body_of, nothing, path_of


def invite(site: str, *, anew: bool = False) -> Call[InvitationView]:
    """Invite a site to fetch requests for leases."""
    return Call("POST", path_of("invitations", site), as_view(InvitationView), body=body_of({"anew": anew}))


def withdraw(site: str) -> Call[None]:
    """Withdraw the invitation of a site."""
    return Call("DELETE", path_of("invitations", site), nothing)
