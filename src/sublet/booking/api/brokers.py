"""Other brokers that requests are forwarded to; for operators."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from sublet.api import described
from sublet.api.bodies import json_response
from sublet.api.people import host_of, person_of, service_of
from sublet.api.private import check_private
from sublet.booking.brokers.registry import BrokerState
from sublet.booking.views.brokers import BrokerAddition, BrokerList, BrokerToken, BrokerView

router = APIRouter(prefix="/v1/brokers", tags=["Platforms"])


@router.get("", response_model=BrokerList, responses=described.problems(401, 403))
async def brokers(request: Request) -> Response:
    """All brokers, each as it was when it was last looked at."""
    states = await service_of(request).brokers.list(await person_of(request))
    return json_response(BrokerList(items=tuple(map(_view, states))))


@router.post("", status_code=201, response_model=BrokerView, responses=described.problems(400, 401, 403, 409, 503))
async def add(request: Request, ask: BrokerAddition) -> Response:
    """Add a broker; it is a platform at once. On the service's own machine, or by https."""
    person = await person_of(request)
    check_private(request)
    state = await service_of(request).brokers.add(
        person, ask.name, ask.url, ask.token, is_older=ask.older, host=host_of(request)
    )
    return json_response(_view(state), 201)


@router.post("/{name}/token", response_model=BrokerView, responses=described.problems(400, 401, 403, 404, 503))
async def set_token(request: Request, name: str, ask: BrokerToken) -> Response:
    """Show it another token from now on."""
    person = await person_of(request)
    check_private(request)
    return json_response(
        _view(await service_of(request).brokers.set_token(person, name, ask.token, host=host_of(request)))
    )


@router.post("/{name}/check", response_model=BrokerView, responses=described.problems(401, 403, 404))
async def check(request: Request, name: str) -> Response:
    """Ask it now whether it answers and takes the token: `problem` says what is wrong."""
    return json_response(_view(await service_of(request).brokers.check(await person_of(request), name)))


@router.delete("/{name}", status_code=204, responses=described.problems(400, 401, 403, 404))
async def remove(request: Request, name: str) -> Response:
    """Pass nothing on to it any more, and forget its token; what it ran stays recorded."""
    await service_of(request).brokers.remove(await person_of(request), name, host=host_of(request))
    return Response(status_code=204)


def _view(state: BrokerState) -> BrokerView:
    broker = state.broker
    return BrokerView(
        name=broker.name,
        url=broker.url,
        has_token=bool(broker.token),
        older=broker.is_older,
        problem=state.trouble,
        notes=state.notes,
        created=broker.created,
        by=broker.by,
    )
