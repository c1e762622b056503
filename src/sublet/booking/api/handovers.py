"""Hand-overs under /v1: a session that has not begun becomes a colleague's."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import APIRouter, Request
from starlette.responses import Response

from sublet.api import described
from sublet.api.bodies import json_response
from sublet.api.people import base_of, person_of, service_of
from sublet.booking.views.convert import session_view
from sublet.booking.views.handovers import HandOverAsk, HandOverList, HandOverView
from sublet.booking.views.sessions import SessionView

router = APIRouter(prefix="/v1/handovers", tags=["Sessions"])


@router.post("", status_code=201, response_model=HandOverView, responses=described.problems(400, 401, 403, 404, 409))
async def give(request: Request, ask: HandOverAsk) -> Response:
    """Offer a session of yours to someone; nothing changes until they take it."""
    offered = await service_of(request).handovers.give(ask.session, await person_of(request), ask.to)
    return json_response(HandOverView(**asdict(offered)), 201)


@router.get("", response_model=HandOverList, responses=described.problems(401))
async def handovers(request: Request) -> Response:
    """What you want to give, and what you could take."""
    listed = await service_of(request).handovers.list_own(await person_of(request))
    return json_response(HandOverList(items=tuple(HandOverView(**asdict(each)) for each in listed)))


@router.post("/{id}/take", response_model=SessionView, responses=described.problems(401, 403, 404, 409))
async def take(request: Request, id: str) -> Response:
    """Make it yours: what you may use, and your quotas and budgets, are checked."""
    session = await service_of(request).handovers.take(id, await person_of(request))
    return json_response(session_view(session, base_of(request)))


@router.delete("/{id}", status_code=204, responses=described.problems(401, 404))
async def drop(request: Request, id: str) -> Response:
    """Withdraw it, or decline."""
    await service_of(request).handovers.drop(id, await person_of(request))
    return Response(status_code=204)
