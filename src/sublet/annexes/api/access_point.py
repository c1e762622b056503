"""The access point over HTTP: show, set up, stop."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from sublet.annexes.access_point import AccessPointState
from sublet.annexes.views.access_point import AccessPointView, SetUpAsk
from sublet.api import described
from sublet.api.bodies import json_response
from sublet.api.people import require_operated

router = APIRouter(prefix="/v1/access-point", tags=["Annexes"])


@router.get("", response_model=AccessPointView, responses=described.problems(401, 403))
async def access_point(request: Request) -> Response:
    """How it is: whether there is HTCondor, whether it runs, and where nodes find it."""
    service = await require_operated(request)
    return json_response(_view(await service.annexes.access_points.access_point_state()))


@router.post("", response_model=AccessPointView, responses=described.problems(400, 401, 403, 404, 409, 503))
async def set_up(request: Request, ask: SetUpAsk) -> Response:
    """Make it ready. Where there is no HTCondor, `fetch` brings it: ask how it is until that is done."""
    service = await require_operated(request)
    return json_response(_view(await service.annexes.access_points.set_up(fetch=ask.fetch, system=ask.system)))


@router.delete("", status_code=204, responses=described.problems(401, 403))
async def stop(request: Request) -> Response:
    """End it, until it is wanted again; the queue stays."""
    service = await require_operated(request)
    await service.annexes.access_points.stop_access_point()
    return Response(status_code=204)


def _view(state: AccessPointState) -> AccessPointView:
    contact = state.contact
    return AccessPointView(
        stage=state.stage,
        kind=state.kind,
        version=state.version,
        release=state.release,
        collector=contact.collector if contact else "",
        schedd=contact.schedd if contact else "",
        owner=contact.owner if contact else "",
        configuration=state.configuration,
        job_lease=state.lease,
        package=state.package,
        url=state.url,
        progress=state.progress,
        note=state.note,
        problem=state.failure.message if state.failure else "",
        hint=state.failure.advice if state.failure else "",
    )
