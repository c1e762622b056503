"""Calls about budgets."""

from __future__ import annotations

from sublet.access.views.budgets import BudgetAsk, BudgetList, BudgetView
from sublet.client.call import Call, as_view, body_of, path_of
from sublet.kernel.views import plain


def budgets(person: str = "") -> Call[BudgetList]:
    """List the budgets that the caller may see; operators may ask for another person's."""
    return Call("GET", path_of("budgets"), as_view(BudgetList), query={"person": person})


def budget(id: str) -> Call[BudgetView]:
    """Show a budget, by its id or the beginning of it."""
    return Call("GET", path_of("budgets", id), as_view(BudgetView))


def add(ask: BudgetAsk) -> Call[BudgetView]:
    """Add a budget."""
    return Call("POST", path_of("budgets"), as_view(BudgetView), body=body_of(plain(ask)))


def remove(id: str) -> Call[BudgetView]:
    """Remove a budget."""
    return Call("DELETE", path_of("budgets", id), as_view(BudgetView))
