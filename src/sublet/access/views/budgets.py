"""The views of budgets."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, kw_only=True)
class BudgetView:
    """A budget, and how much of it is left."""

    id: str
    holder: str  # a person's name or a pattern, group:NAME, or project:NAME
    measure: str  # money, core-hours, energy (kWh) or carbon (g of CO2)
    amount: float
    unit: str  # of the amounts: EUR, core-hours, kWh or g
    period: str  # month, quarter, year or total
    platform: str = "*"
    created: datetime
    since: datetime  # when the current period began
    until: datetime | None = None
    spent: float | None = None  # spent or reserved in the current period; null: each person's own, and not the viewer's
    left: float | None = None
    by: str = ""
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class BudgetAsk:
    """A budget to add: an amount with its unit, as in `500 EUR`, `1000 core-hours`, `20 kWh` or `5 kg`."""

    holder: str
    limit: str
    period: str = "month"
    platform: str = "*"
    until: datetime | None = None
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class BudgetList:
    """Budgets, oldest first."""

    items: tuple[BudgetView, ...]
