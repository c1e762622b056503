"""Who asks, and by which tokens."""

from __future__ import annotations

import json
from collections.abc import Sequence

from sublet.client.call import Call, HttpAnswer, as_view, body_of, nothing, path_of
from sublet.people.views.people import TokenList, TokenView, WhoView


def new_token(person: str = "", expires: str = "", note: str = "", scope: Sequence[str] = ()) -> Call[TokenView]:
    """Make a token; the answer is the only place where its text is shown."""
    wish = {"person": person, "expires": expires, "note": note, "scope": list(scope)}
    return Call("POST", path_of("tokens"), as_view(TokenView), body=body_of(wish))


def session_token(session: str) -> Call[TokenView]:
    """Make a token that is for one session only."""
    wish = {"session": session}
    return Call("POST", path_of("tokens"), as_view(TokenView), body=body_of(wish))


def tokens() -> Call[TokenList]:
    """The tokens that there are, without their texts."""
    return Call("GET", path_of("tokens"), as_view(TokenList))


def revoke(id: str) -> Call[None]:
    """Revoke a token."""
    return Call("DELETE", path_of("tokens", id), nothing)


def entry() -> Call[str]:
    """A link to the pages that lets its owner in once; only the service's own socket gives it."""
    return Call("POST", "/web/code", _url)


def _url(answer: HttpAnswer) -> str:
    return str(json.loads(answer.body)["url"])


def whoami() -> Call[WhoView]:
    """Who the service takes the caller for."""
    return Call("GET", path_of("whoami"), as_view(WhoView))
