"""Calls about access: what the caller may use, and requests for access."""

from __future__ import annotations

from sublet.access.views.access import AccessAnswer, AccessAsked, AccessList, AccessRequestList
from sublet.client.call import Call, as_view, body_of, path_of
from sublet.kernel.views import plain


def access(person: str = "") -> Call[AccessList]:
    """Show what a person may use, and why not; operators may ask for others."""
    return Call("GET", path_of("access"), as_view(AccessList), query={"person": person})


def requests(state: str = "") -> Call[AccessRequestList]:
    """List requests for access, newest first."""
    return Call("GET", path_of("access", "requests"), as_view(AccessRequestList), query={"state": state})


def ask(name: str, why: str, noun: str = "") -> Call[AccessAsked]:
    """Request access."""
    wish = {"name": name, "why": why, "noun": noun}
    return Call("POST", path_of("access", "requests"), as_view(AccessAsked), body=body_of(wish))


def grant(id: str, answer: AccessAnswer) -> Call[AccessAsked]:
    """Grant a request for access."""
    body = body_of(plain(answer))
    return Call("POST", path_of("access", "requests", id, "grant"), as_view(AccessAsked), body=body)


def refuse(id: str, answer: str) -> Call[AccessAsked]:
    """Refuse a request for access."""
    body = body_of({"answer": answer})
    return Call("POST", path_of("access", "requests", id, "refuse"), as_view(AccessAsked), body=body)
