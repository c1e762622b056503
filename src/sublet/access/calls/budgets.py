"""Budgets."""

from __future__ import annotations

from sublet.access.views.budgets import BudgetAsk, BudgetList, BudgetView
from sublet.client.call import Call, as_view, body_of, path_of
from sublet.kernel.views import plain


def budgets(person: str = "") -> Call[BudgetList]:
    """Those that the caller sees; an operator asks for another's too."""
    return Call("GET", path_of("budgets"), as_view(BudgetList), query={"person": person})


def budget(id: str) -> Call[BudgetView]:
    """One of them, by its id or the beginning of it."""
    return Call("GET", path_of("budgets", id), as_view(BudgetView))


def add(ask: BudgetAsk) -> Call[BudgetView]:
    """Add one."""
    return Call("POST", path_of("budgets"), as_view(BudgetView), body=body_of(plain(ask)))


def remove(id: str) -> Call[BudgetView]:
    """Remove one."""
    return Call("DELETE", path_of("budgets", id), as_view(BudgetView))
