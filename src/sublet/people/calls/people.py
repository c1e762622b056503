"""Calls about tokens, and who the caller is."""

from __future__ import annotations

import json
from collections.abc import Sequence

from sublet.client.call import Call, HttpAnswer, as_view, body_of, nothing, path_of
from sublet.kernel.empty_names import refuse_empty
from sublet.people.views.people import TokenList, TokenView, WhoView


def new_token(person: str = "", expires: str = "", note: str = "", scope: Sequence[str] = ()) -> Call[TokenView]:
    """Make a token; only this answer holds its text."""
    wish = {"person": person, "expires": expires, "note": note, "scope": list(scope)}
    return Call("POST", path_of("tokens"), as_view(TokenView), body=body_of(wish))


def session_token(session: str) -> Call[TokenView]:
    """Make a token for one session only."""
    refuse_empty(session)  # which would be a token for everything
    wish = {"session": session}
    return Call("POST", path_of("tokens"), as_view(TokenView), body=body_of(wish))


def tokens() -> Call[TokenList]:
    """List the tokens, without their texts."""
    return Call("GET", path_of("tokens"), as_view(TokenList))


def revoke(id: str) -> Call[None]:
    """Revoke a token."""
    return Call("DELETE", path_of("tokens", id), nothing)


def entry() -> Call[str]:
    """Get a single-use sign-in link to the web pages; only the service's own socket provides it."""
    return Call("POST", "/web/code", _url)


def _url(answer: HttpAnswer) -> str:
    return str(json.loads(answer.body)["url"])


def whoami() -> Call[WhoView]:
    """Show who the service takes the caller for."""
    return Call("GET", path_of("whoami"), as_view(WhoView))
