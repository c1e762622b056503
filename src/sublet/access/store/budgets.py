"""Budgets and the charges of sessions; charges outlive their sessions, so that nobody deletes what they spent."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Double, case, cast, delete, func, insert, or_, select, update

from sublet.access.model.budget import Budget, BudgetCharge
from sublet.access.store.tables import budgets, charges
from sublet.booking.model.timeline import micros, moment
from sublet.kernel.db.sql import Row, Sql, bind, micros_or_none, moment_or_none, plain

B, C = budgets.c, charges.c
BUDGET = select(B.id, B.holder, B.measure, B.amount, B.period, B.created, B.platform, B.until, B.by, B.note)
ALL = BUDGET.order_by(B.created, B.id)
GET = BUDGET.where(B.id == bind("budget_id"))
BY_PREFIX = ALL.where(B.id >= bind("low"), B.id < bind("high")).limit(6)
ADD = insert(budgets)
REMOVE = delete(budgets).where(B.id == bind("budget_id"))
FORGET = delete(charges).where(C.budget == bind("budget_id"))
CHARGE = insert(charges)
RECHARGE = (
    update(charges)
    .where(C.session == bind("of_session"), C.budget == bind("of_budget"))
    .values(amount=bind("new_amount"), reserved=bind("new_reserved"))
)
OF_SESSION = select(C.session, C.budget, C.person, C.amount).where(C.session == bind("of_session"))
UNDER_WAY = C.ended.is_(None)
PART = case(
    (UNDER_WAY, 1.0),
    (C.started.is_(None), 0.0),
    (C.started < C.ended, cast(C.ended - C.started, Double) / func.nullif(C.reserved, 0)),
    else_=0.0,
)
SPENT = select(func.coalesce(func.sum(C.amount * PART), 0.0)).where(
    C.budget == bind("of_budget"), or_(UNDER_WAY, C.ended >= bind("since"))
)
SPENT_BY = SPENT.where(C.person == bind("of_person"))
END_CHARGE = (
    update(charges).where(C.session == bind("of_session")).values(started=bind("new_started"), ended=bind("new_ended"))
)


class BudgetStore:
    """The budgets, as one transaction sees and changes them."""

    def __init__(self, sql: Sql) -> None:
        """Work in this transaction."""
        self._sql = sql

    def add(self, budget: Budget) -> None:
        """Add a budget."""
        values: dict[str, Any] = {
            "id": budget.id,
            "holder": plain(budget.holder),
            "measure": budget.measure,
            "amount": budget.amount,
            "period": budget.period,
            "created": micros(budget.created),
            "platform": plain(budget.platform),
            "until": micros_or_none(budget.until),
            "by": plain(budget.by),
            "note": plain(budget.note),
        }
        self._sql.change(ADD, values)

    def list(self) -> Sequence[Budget]:
        """List all budgets, oldest first."""
        return [_budget(row) for row in self._sql.recall(ALL, {})]

    def find(self, name: str) -> Sequence[Budget]:
        """Return the budget with this id, or some of those whose ids begin with it."""
        if row := self._sql.row(GET, {"budget_id": plain(name)}):
            return [_budget(row)]
        low = name.lower()
        if not low or not set(low) <= set("0123456789abcdef-"):
            return []
        return [_budget(row) for row in self._sql.rows(BY_PREFIX, {"low": low, "high": low + "g"})]

    def remove(self, id: str) -> None:
        """Remove a budget, and its charges."""
        self._sql.change(FORGET, {"budget_id": id})
        self._sql.change(REMOVE, {"budget_id": id})

    def charge(self, charge: BudgetCharge, time: timedelta) -> None:
        """Reserve an amount of a budget for a session of this duration, replacing its earlier charge."""
        row = {
            "of_session": charge.session,
            "of_budget": charge.budget,
            "new_amount": charge.amount,
            "new_reserved": _length(time),
        }
        if not self._sql.change(RECHARGE, row):
            values = {"session": charge.session, "budget": charge.budget, "person": plain(charge.person)}
            amounts = {"amount": charge.amount, "reserved": _length(time), "started": None, "ended": None}
            self._sql.change(CHARGE, {**values, **amounts})

    def charges_of(self, session: str) -> dict[str, float]:
        """Return what a session takes from each budget."""
        rows = self._sql.rows(OF_SESSION, {"of_session": session})
        return {budget: float(amount) for _, budget, _, amount in rows}

    def sum_spent(self, budget: Budget, person: str, now: datetime) -> float:
        """Sum what is spent and reserved of a budget in its current period; by this person, unless it is shared."""
        given = {"of_budget": budget.id, "since": micros(budget.begin(now))}
        if budget.is_shared:
            return float(self._sql.rows(SPENT, given)[0][0])
        return float(self._sql.rows(SPENT_BY, {**given, "of_person": plain(person)})[0][0])


def _budget(row: Row) -> Budget:
    id, holder, measure, amount, period, created, platform, until, by, note = row
    return Budget(
        id, holder, measure, float(amount), period, moment(created), platform, moment_or_none(until), by, note
    )


def _length(time: timedelta) -> int:
    return time // timedelta(microseconds=1)
