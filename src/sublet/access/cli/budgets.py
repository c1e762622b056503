"""`budget`: what people, groups and projects may spend."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from sublet.access.calls import budgets
from sublet.access.model.access_words import parse_expires
from sublet.access.model.budget import PERIODS, period_text
from sublet.access.views.budgets import BudgetAsk, BudgetView
from sublet.cli.command import CommandGroup, Example, command
from sublet.cli.output import Output, pairs, table
from sublet.cli.texts import when

HEAD = ("ID", "WHO", "BUDGET", "SPENT", "LEFT", "WHERE", "UNTIL", "NOTE")


@click.group("budget", cls=CommandGroup, epilog=Example("sublet budget list"))
def budget() -> None:
    """Limit what people, groups and projects spend: money, core-hours, energy or carbon.

    Accepting or extending a session reserves the amount in its offer; when it ends, only what it used is charged.
    """


@command(
    "add",
    "sublet budget add group:lab 500EUR --each quarter",
    "sublet budget add '*@illinois.edu' '1000 core-hours'",
    "sublet budget add project:flood 20kWh --each total --until 2027-06-30",
)
@click.argument("who")
@click.argument("limit")
@click.option("--each", "period", type=click.Choice(PERIODS), default="month", help="The period that it is for.")
@click.option("--platform", default="*", metavar="NAME", help="Counts only there.")
@click.option("--until", metavar="WHEN", help="The last day, 2027-06-30 (UTC); or for how long: 90d.")
@click.option("--note", default="", metavar="TEXT", help="Why.")
def add(out: Output, who: str, limit: str, period: str, platform: str, until: str | None, note: str) -> None:
    """Add a budget of LIMIT for WHO: a person, a pattern of people (each has their own), group:NAME or project:NAME.

    LIMIT is a number with a unit: the currency of the prices, core-hours, kWh, MWh, or g, kg and t of CO2. Access
    rules say who may charge a project: sublet rule add allow group:lab --project flood
    """
    last = parse_expires(until, datetime.now(UTC)) if until else None
    ask = BudgetAsk(holder=who, limit=limit, period=period, platform=platform, until=last, note=note)
    view = out.link().do(budgets.add(ask))
    out.show(
        view, lambda: [f"Budget {view.id[:8]} is added: {view.holder} may spend {_limit(view)}."], lambda: [view.id]
    )


@command("list", "sublet budget list", "sublet budget list --person anna@illinois.edu")
@click.option("--person", default="", metavar="NAME", help="Show the budgets of someone else; for operators.")
def list_(out: Output, person: str) -> None:
    """List the budgets that apply to you, and what is left of them; operators see all."""
    view = out.link().do(budgets.budgets(person))
    rows = [
        (
            each.id[:8],
            each.holder,
            _limit(each),
            _amount(each, each.spent),
            _amount(each, each.left),
            "" if each.platform == "*" else each.platform,
            f"{each.until:%Y-%m-%d}" if each.until else "",
            each.note,
        )
        for each in view.items
    ]
    out.show(view, lambda: table(HEAD, rows, least=("NOTE",)) if rows else [], lambda: (each.id for each in view.items))
    if not rows and out.for_people:
        out.note("There are no budgets.")


@command("show", "sublet budget show 3f2a")
@click.argument("budget")
def show(out: Output, budget: str) -> None:
    """Show a budget."""
    view = out.link().do(budgets.budget(budget))
    out.show(view, lambda: _lines(view), lambda: [view.id])


@command("remove", "sublet budget remove 3f2a")
@click.argument("budget")
def remove(out: Output, budget: str) -> None:
    """Remove a budget. Running sessions continue."""
    view = out.link().do(budgets.remove(budget))
    out.show(view, lambda: [f"Budget {view.id[:8]} of {view.holder} is removed."], lambda: [view.id])


def _lines(view: BudgetView) -> list[str]:
    now = datetime.now(UTC)
    return pairs(
        [
            ("budget", view.id),
            ("who", view.holder),
            ("limit", _limit(view)),
            ("spent", f"{text} since {view.since:%Y-%m-%d}" if (text := _amount(view, view.spent)) else ""),
            ("left", _amount(view, view.left)),
            ("platform", "" if view.platform == "*" else view.platform),
            ("until", f"{view.until:%Y-%m-%d}" if view.until else ""),
            ("note", view.note),
            ("added", f"{when(view.created, now)} by {view.by}"),
        ]
    )


def _limit(view: BudgetView) -> str:
    return f"{_amount(view, view.amount)} {period_text(view.period)}"


def _amount(view: BudgetView, amount: float | None) -> str:
    return "" if amount is None else f"{amount:.2f}".rstrip("0").rstrip(".") + f" {view.unit}"


for each in (add, list_, show, remove):
    budget.add_command(each)
