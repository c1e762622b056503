"""Calls for signing in to a gateway, and out."""

from __future__ import annotations

from sublet.client.call import Call, as_view, body_of, nothing, path_of
from sublet.people.views.people import SignInView, TokenView


def ask(address: str) -> Call[SignInView]:
    """Have a code mailed to an address."""
    return Call("POST", path_of("sign-in"), as_view(SignInView), body=body_of({"address": address}))


def sign_in(address: str, code: str, client: str = "") -> Call[TokenView]:
    """Exchange a code for a token; only this answer holds its text."""
    wish = {"address": address, "code": code, "client": client}
    return Call("POST", path_of("sign-in", "code"), as_view(TokenView), body=body_of(wish))


def sign_out() -> Call[None]:
    """Revoke the token that this call uses."""
    return Call("POST", path_of("sign-out"), nothing)
