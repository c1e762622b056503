"""Access rules over HTTP, for operators."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from sublet.access.rules import ChangedRules
from sublet.access.views.access import RuleAsk, RuleChange, RuleList, RuleView, RunningView
from sublet.access.views.convert import limits_of, rule_view
from sublet.api import described
from sublet.api.bodies import json_response
from sublet.api.instants import require_zone
from sublet.api.people import host_of, person_of, service_of

router = APIRouter(prefix="/v1/rules", tags=["Access"])


@router.get("", response_model=RuleList, responses=described.problems(401, 403, 409))
async def rules(request: Request) -> Response:
    """All access rules, oldest first."""
    listed = await service_of(request).access.rules.rules(await person_of(request))
    return json_response(RuleList(items=tuple(map(rule_view, listed))))


@router.post("", status_code=201, response_model=RuleChange, responses=described.problems(400, 401, 403, 409))
async def add(request: Request, ask: RuleAsk) -> Response:
    """Add a rule: it counts at once. The answer names sessions that go on although their owners lose access."""
    person = await person_of(request)
    changed = await service_of(request).access.rules.add_rule(
        person,
        effect=ask.effect,
        who=ask.who,
        noun=ask.noun,
        name=ask.name,
        limits=limits_of(ask.limits),
        expires=require_zone(ask.expires, "expires"),
        note=ask.note,
        host=host_of(request),
    )
    return json_response(_view(changed), 201)


@router.get("/{id}", response_model=RuleView, responses=described.problems(401, 403, 404, 409))
async def rule(request: Request, id: str) -> Response:
    """One rule, by its id or the beginning of it."""
    return json_response(rule_view(await service_of(request).access.rules.rule(id, await person_of(request))))


@router.delete("/{id}", response_model=RuleChange, responses=described.problems(401, 403, 404, 409))
async def remove(request: Request, id: str) -> Response:
    """Remove a rule: that counts at once. The answer names sessions that go on although their owners lose access."""
    person = await person_of(request)
    return json_response(_view(await service_of(request).access.rules.remove_rule(id, person, host_of(request))))


def _view(changed: ChangedRules) -> RuleChange:
    running = tuple(
        RunningView(
            session=session.id,
            name=session.name,
            person=session.person,
            platform=session.offer.platform,
            phase=session.phase,
        )
        for session in changed.running
    )
    return RuleChange(rule=rule_view(changed.rule), notes=changed.notes, running=running)
