"""What the caller may use, and requests to be let in."""

from __future__ import annotations

from sublet.access.views.access import AccessAnswer, AccessAsked, AccessList, AccessRequestList
from sublet.client.call import Call, as_view, body_of, path_of
from sublet.kernel.views import plain


def access(person: str = "") -> Call[AccessList]:
    """What someone may use, and why not; an operator asks for others too."""
    return Call("GET", path_of("access"), as_view(AccessList), query={"person": person})


def requests(state: str = "") -> Call[AccessRequestList]:
    """Requests to be let in, newest first."""
    return Call("GET", path_of("access", "requests"), as_view(AccessRequestList), query={"state": state})


def ask(name: str, why: str, noun: str = "") -> Call[AccessAsked]:
    """Ask to be let in."""
    wish = {"name": name, "why": why, "noun": noun}
    return Call("POST", path_of("access", "requests"), as_view(AccessAsked), body=body_of(wish))


def grant(id: str, answer: AccessAnswer) -> Call[AccessAsked]:
    """Let someone in."""
    body = body_of(plain(answer))
    return Call("POST", path_of("access", "requests", id, "grant"), as_view(AccessAsked), body=body)


def refuse(id: str, answer: str) -> Call[AccessAsked]:
    """Don't let someone in."""
    body = body_of({"answer": answer})
    return Call("POST", path_of("access", "requests", id, "refuse"), as_view(AccessAsked), body=body)
