"""The caller's templates over HTTP: details for leases, saved under a name."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from sublet.annexes.views.annexes import DetailsView, TemplateList, TemplateView
from sublet.annexes.views.convert import details_of, template_view
from sublet.api import described
from sublet.api.bodies import json_response
from sublet.api.people import person_of, service_of

router = APIRouter(prefix="/v1/templates", tags=["Annexes"])


@router.get("", response_model=TemplateList, responses=described.problems(401))
async def templates(request: Request) -> Response:
    """The asker's templates."""
    listed = await service_of(request).annexes.templates.templates(await person_of(request))
    return json_response(TemplateList(items=tuple(map(template_view, listed))))


@router.get("/{name}", response_model=TemplateView, responses=described.problems(401, 404))
async def template(request: Request, name: str) -> Response:
    """One of them."""
    return json_response(
        template_view(await service_of(request).annexes.templates.template(name, await person_of(request)))
    )


@router.put("/{name}", response_model=TemplateView, responses=described.problems(400, 401, 409))
async def save(request: Request, name: str, details: DetailsView) -> Response:
    """Keep details under a name, in place of what was there."""
    person = await person_of(request)
    return json_response(
        template_view(await service_of(request).annexes.templates.save_template(name, details_of(details), person))
    )


@router.delete("/{name}", status_code=204, responses=described.problems(401, 404))
async def remove(request: Request, name: str) -> Response:
    """Forget one."""
    await service_of(request).annexes.templates.remove_template(name, await person_of(request))
    return Response(status_code=204)
