"""Access over HTTP: what a person may use, and requests for access."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from sublet.access.access import RequestedAccess
from sublet.access.views.access import (
    AccessAnswer,
    AccessAsk,
    AccessAsked,
    AccessList,
    AccessRequestList,
    AccessRequestView,
)
from sublet.access.views.convert import access_view, limits_of, request_view
from sublet.api import described
from sublet.api.bodies import json_response
from sublet.api.instants import require_zone
from sublet.api.people import host_of, person_of, service_of

router = APIRouter(prefix="/v1/access", tags=["Access"])
DECIDE = described.problems(400, 401, 403, 404, 409)


@router.get("", response_model=AccessList, responses=described.problems(401, 403))
async def access(
    request: Request, person: Annotated[str, Query(description="Someone else; for operators.")] = ""
) -> Response:
    """What you may use, within which limits, what you used this month, and why other things are denied."""
    asker = await person_of(request)
    standings = await service_of(request).access.rules.standing(asker, person)
    items = tuple(access_view(standing.decision, standing.use, standing.asked) for standing in standings)
    return json_response(AccessList(person=person or asker.name, items=items))


@router.get("/requests", response_model=AccessRequestList, responses=described.problems(400, 401))
async def requests(
    request: Request,
    state: Annotated[Literal["open", "granted", "refused"] | None, Query(description="Only those.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
    """Your requests for access, newest first; operators see everyone's."""
    listed = await service_of(request).access.requests.access_requests(await person_of(request), state or "", limit)
    return json_response(AccessRequestList(items=tuple(map(request_view, listed))))


@router.post("/requests", status_code=201, response_model=AccessAsked, responses=DECIDE)
async def ask(request: Request, ask: AccessAsk) -> Response:
    """Ask to be let in; operators get a mail. Asking twice is asking once."""
    person = await person_of(request)
    asked = await service_of(request).access.requests.ask_access(person, ask.noun, ask.name, ask.why, host_of(request))
    return _view(asked, 201)


@router.get("/requests/{id}", response_model=AccessRequestView, responses=described.problems(401, 404, 409))
async def one(request: Request, id: str) -> Response:
    """One request for access."""
    return json_response(
        request_view(await service_of(request).access.requests.access_request(id, await person_of(request)))
    )


@router.post("/requests/{id}/grant", response_model=AccessAsked, responses=DECIDE)
async def grant(request: Request, id: str, answer: AccessAnswer) -> Response:
    """Grant a request with a rule for that person; for operators."""
    person = await person_of(request)
    granted = await service_of(request).access.requests.grant_access(
        id,
        person,
        limits=limits_of(answer.limits),
        expires=require_zone(answer.expires, "expires"),
        answer=answer.answer,
        host=host_of(request),
    )
    return _view(granted)


@router.post("/requests/{id}/refuse", response_model=AccessAsked, responses=DECIDE)
async def refuse(request: Request, id: str, answer: AccessAnswer) -> Response:
    """Refuse a request, and say why; for operators."""
    person = await person_of(request)
    return _view(await service_of(request).access.requests.refuse_access(id, person, answer.answer, host_of(request)))


def _view(asked: RequestedAccess, status: int = 200) -> Response:
    return json_response(AccessAsked(request=request_view(asked.request), notes=asked.notes), status)
