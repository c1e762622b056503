"""Calls about second factors, and ways to sign in other than by mail."""

from __future__ import annotations

from sublet.client.call import Call, as_view, body_of, nothing, path_of
from sublet.people.views.factors import EnrolmentView, FactorView, RecoveryView, WayList
from sublet.people.views.people import TokenView


def ways() -> Call[WayList]:
    """List the ways to sign in."""
    return Call("GET", path_of("sign-in", "ways"), as_view(WayList))


def second(token: str, code: str) -> Call[TokenView]:
    """Exchange a half token and a code for a whole token."""
    return Call("POST", path_of("sign-in", "second"), as_view(TokenView), body=body_of({"token": token, "code": code}))


def once(code: str, verifier: str, client: str) -> Call[TokenView]:
    """Sign in by a code that a page showed."""
    wish = {"code": code, "verifier": verifier, "client": client}
    return Call("POST", path_of("sign-in", "once"), as_view(TokenView), body=body_of(wish))


def factor() -> Call[FactorView]:
    """Show whether the caller has a second factor."""
    return Call("GET", path_of("factor"), as_view(FactorView))


def begin() -> Call[EnrolmentView]:
    """Make a new secret for an authenticator app."""
    return Call("POST", path_of("factor"), as_view(EnrolmentView))


def confirm(code: str) -> Call[RecoveryView]:
    """Turn the second factor on, with one of its codes."""
    return Call("POST", path_of("factor", "confirm"), as_view(RecoveryView), body=body_of({"code": code}))


def remove(code: str) -> Call[None]:
    """Turn the second factor off, with one of its codes."""
    return Call("POST", path_of("factor", "remove"), nothing, body=body_of({"code": code}))


def reset(name: str) -> Call[None]:
    """Remove someone's lost second factor."""
    return Call("DELETE", path_of("people", name, "factor"), nothing)
