"""Budgets in words: why a session doesn't fit a budget."""

from __future__ import annotations

from sublet.access.model.access import GROUP
from sublet.access.model.access_words import ROUNDING
from sublet.access.model.budget import PROJECT, Budget, budget_text, period_text
from sublet.booking.model.offer import Reason

OVER_BUDGET = "urn:over-budget"


def holder_text(budget: Budget) -> str:
    """Return the owner of a budget, as a possessive: `the group lab's`, `the project flood's`, `your`."""
    for prefix, noun in ((GROUP, "group"), (PROJECT, "project")):
        if budget.holder.startswith(prefix):
            return f"the {noun} {budget.holder.removeprefix(prefix)}'s"
    return "your"


def find_excess(budget: Budget, charge: float | None, spent: float, platform: str, currency: str) -> Reason | None:
    """Return why a session with this charge doesn't fit a budget of which so much is spent; None if it does."""
    whose = holder_text(budget)
    limit = f"{budget_text(budget.amount, budget.measure, currency)} {period_text(budget.period)}"
    if charge is None:
        states = f"price in {currency}" if budget.measure == "money" else budget.measure
        message = f"{platform} doesn't state its {states}, so {whose} budget of {limit} can't be kept there."
        return Reason(OVER_BUDGET, "costs", message, limit=limit, nearest="another platform", platform=platform)
    left = max(budget.amount - spent, 0.0)
    if charge <= left + ROUNDING:
        return None
    needs, rest = (budget_text(amount, budget.measure, currency) for amount in (charge, left))
    begin = f"{whose[:1].upper()}{whose[1:]}"
    message = (
        f"{begin} budget is {limit}; {rest} {'is' if rest.startswith('1 ') else 'are'} left, and this needs {needs}."
    )
    nearest = f"what takes at most {rest}; an operator can change a budget"
    return Reason(OVER_BUDGET, "costs", message, needs, rest, nearest, platform)
