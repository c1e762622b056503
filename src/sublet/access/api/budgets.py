"""Budgets over HTTP: operators make them, and everyone sees those that apply to them."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from sublet.access.budgets import BudgetState
from sublet.access.model.budget import parse_budget
from sublet.access.views.budgets import BudgetAsk, BudgetList, BudgetView
from sublet.api import described
from sublet.api.bodies import json_response
from sublet.api.instants import require_zone
from sublet.api.people import host_of, person_of, service_of

router = APIRouter(prefix="/v1/budgets", tags=["Access"])


@router.get("", response_model=BudgetList, responses=described.problems(401, 403))
async def budgets(request: Request, person: str = "") -> Response:
    """The budgets that apply to you, with what is left of them; operators see all, or those of `person`."""
    service = service_of(request)
    listed = await service.access.budgets.list(await person_of(request), person)
    return json_response(BudgetList(items=tuple(_view(state, service.settings.prices.currency) for state in listed)))


@router.post("", status_code=201, response_model=BudgetView, responses=described.problems(400, 401, 403))
async def add(request: Request, ask: BudgetAsk) -> Response:
    """Add a budget: it counts what is accepted from now on."""
    service, person = service_of(request), await person_of(request)
    currency = service.settings.prices.currency
    amount, measure = parse_budget(ask.limit, currency)
    period: Any = ask.period
    state = await service.access.budgets.add(
        person,
        holder=ask.holder,
        measure=measure,
        amount=amount,
        period=period,
        platform=ask.platform,
        until=require_zone(ask.until, "until"),
        note=ask.note,
        host=host_of(request),
    )
    return json_response(_view(state, currency), 201)


@router.get("/{id}", response_model=BudgetView, responses=described.problems(401, 404))
async def budget(request: Request, id: str) -> Response:
    """One budget, by its id or the beginning of it."""
    service = service_of(request)
    state = await service.access.budgets.get(id, await person_of(request))
    return json_response(_view(state, service.settings.prices.currency))


@router.delete("/{id}", response_model=BudgetView, responses=described.problems(401, 403, 404))
async def remove(request: Request, id: str) -> Response:
    """Remove a budget; it no longer limits anyone."""
    service = service_of(request)
    budget = await service.access.budgets.remove(id, await person_of(request), host_of(request))
    state = BudgetState(budget, None, budget.created)
    return json_response(_view(state, service.settings.prices.currency))


def _view(state: BudgetState, currency: str) -> BudgetView:
    budget, spent = state.budget, None if state.spent is None else round(state.spent, 6)
    return BudgetView(
        id=budget.id,
        holder=budget.holder,
        measure=budget.measure,
        amount=budget.amount,
        unit={"money": currency, "core-hours": "core-hours", "energy": "kWh", "carbon": "g"}[budget.measure],
        period=budget.period,
        platform=budget.platform,
        created=budget.created,
        since=state.since,
        until=budget.until,
        spent=spent,
        left=None if spent is None else max(round(budget.amount - spent, 6), 0.0),
        by=budget.by,
        note=budget.note,
    )
