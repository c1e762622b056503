"""Calls about access rules."""

from __future__ import annotations

from sublet.access.views.access import RuleAsk, RuleChange, RuleList, RuleView
from sublet.client.call import Call, as_view, body_of, path_of
from sublet.kernel.views import plain


def rules() -> Call[RuleList]:
    """List the rules."""
    return Call("GET", path_of("rules"), as_view(RuleList))


def rule(id: str) -> Call[RuleView]:
    """Show a rule, by its id or the beginning of it."""
    return Call("GET", path_of("rules", id), as_view(RuleView))


def add(ask: RuleAsk) -> Call[RuleChange]:
    """Add a rule."""
    return Call("POST", path_of("rules"), as_view(RuleChange), body=body_of(plain(ask)))


def remove(id: str) -> Call[RuleChange]:
    """Remove a rule."""
    return Call("DELETE", path_of("rules", id), as_view(RuleChange))
