"""Budgets: the most money, core-hours, energy or carbon that may be spent in a period."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

from sublet.access.model.access import EVERYONE, GROUP, LONGEST_NAME, Who, matches_person
from sublet.booking.model.amounts import quote_value
from sublet.booking.model.offer import Offer
from sublet.booking.model.prices import CARBON, ENERGY, MONETARY
from sublet.kernel.errors import BadAmount, BadRequest

Measure = Literal["money", "core-hours", "energy", "carbon"]
Period = Literal["month", "quarter", "year", "total"]
MEASURES: tuple[Measure, ...] = get_args(Measure)
PERIODS: tuple[Period, ...] = get_args(Period)
PROJECT = "project:"
MOST = 1e15
QUOTED = {"money": MONETARY, "energy": ENERGY, "carbon": CARBON}
# Unit that is typed → measure, and the factor to its own unit; a currency is money.
UNITS: dict[str, tuple[Measure, float]] = {
    "core-hour": ("core-hours", 1),
    "core-hours": ("core-hours", 1),
    "kwh": ("energy", 1),
    "mwh": ("energy", 1000),
    "g": ("carbon", 1),
    "kg": ("carbon", 1000),
    "t": ("carbon", 1_000_000),
}
MONTHS = {"month": 1, "quarter": 3, "year": 12}
_TYPED = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z][A-Za-z-]*)")


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that may be spent in a period: by each person it is for, or by a group or project together."""

    id: str
    holder: str  # a person's name or pattern, group:NAME, or project:NAME
    measure: Measure
    amount: float
    period: Period
    created: datetime
    platform: str = EVERYONE  # or the only one on which it counts
    until: datetime | None = None  # it no longer applies from then on
    by: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        """Raise an error if the budget's fields are invalid."""
        for name, value, known in (("measure", self.measure, MEASURES), ("period", self.period, PERIODS)):
            if value not in known:
                raise BadRequest(detail=f"a budget's {name} is one of {', '.join(known)}, not {quote_value(value)}")
        if not (math.isfinite(self.amount) and 0 <= self.amount < MOST):
            raise BadAmount(text=quote_value(self.amount), what="a budget", example="a number from 0 on")
        named = self.holder.removeprefix(GROUP).removeprefix(PROJECT)
        for name in (named, self.platform):
            if not name or len(name) > LONGEST_NAME or not name.isprintable() or name != "".join(name.split()):
                hint = "Name a person, a pattern such as *@illinois.edu, group:NAME or project:NAME."
                raise BadRequest(detail=f"{quote_value(name)} can't have a budget", hint=hint)

    @property
    def is_shared(self) -> bool:
        """Whether a group or project shares the budget; otherwise each person has the full amount."""
        return self.holder.startswith((GROUP, PROJECT))

    @property
    def project(self) -> str:
        """The budget's project; empty if it is for people."""
        return self.holder.removeprefix(PROJECT) if self.holder.startswith(PROJECT) else ""

    def is_about(self, who: Who, project: str, platform: str, now: datetime) -> bool:
        """Whether the budget applies to a session of this person and project, on this platform, now."""
        if self.platform not in (EVERYONE, platform) or (self.until and self.until <= now):
            return False
        if self.holder.startswith(PROJECT):
            return bool(project) and self.project == project
        if self.holder.startswith(GROUP):
            return self.holder.removeprefix(GROUP) in who.groups
        return any(matches_person(self.holder, name) for name in who.names)

    def begin(self, now: datetime) -> datetime:
        """Return when the current period began; a total period began with the budget."""
        months = MONTHS.get(self.period)
        if months is None:
            return self.created
        month = (now.month - 1) // months * months + 1
        return now.replace(month=month, day=1, hour=0, minute=0, second=0, microsecond=0)

    def charge_of(self, offer: Offer) -> float | None:
        """Return what an offer costs this budget; None if the offer doesn't state it. Without a price it is free."""
        if self.measure == "core-hours":
            return offer.amounts.total.hours
        quotes = [quote.max for quote in offer.costs if quote.type == QUOTED[self.measure]]
        return sum(quotes) if quotes else 0.0 if self.measure == "money" else None


@dataclass(frozen=True, slots=True)
class BudgetCharge:
    """What one session takes from one budget: reserved while it is active, then what it used."""

    session: str
    budget: str
    person: str
    amount: float


def parse_budget(text: str, currency: str) -> tuple[float, Measure]:
    """Parse an amount: `500 EUR`, `1000 core-hours`, `20 kWh`, `5 kg`; raise BadAmount if it is none."""
    match = _TYPED.fullmatch(text.strip())
    unit = match[2] if match else ""
    money: dict[str, tuple[Measure, float]] = {currency: ("money", 1)}
    known = money.get(unit) or UNITS.get(unit.lower())
    if match is None or known is None:
        example = f"a number and one of {currency}, core-hours, kWh, MWh, g, kg or t (of CO2), as in 500{currency}"
        raise BadAmount(text=quote_value(text), what="a budget here", example=example)
    measure, factor = known
    return float(match[1]) * factor, measure


def budget_text(amount: float, measure: str, currency: str) -> str:
    """Describe an amount: `500 EUR`, `1000 core-hours`, `20 kWh`, `5000 g of CO2`."""
    number = f"{amount:.2f}".rstrip("0").rstrip(".")
    unit = {"money": currency, "core-hours": "core-hours", "energy": "kWh", "carbon": "g of CO2"}[measure]
    return f"{number} {'core-hour' if (number, measure) == ('1', 'core-hours') else unit}"


def period_text(period: str) -> str:
    """Describe a period: `a month`, `in total`."""
    return "in total" if period == "total" else f"a {period}"
