"""Maintainers under /v1: the generic images for code without its own."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from sublet.api import described
from sublet.api.bodies import json_response
from sublet.api.people import person_of, service_of
from sublet.apps.views.apps import MaintainerList, MaintainerView

router = APIRouter(prefix="/v1/maintainers", tags=["Apps"])


@router.get("", response_model=MaintainerList, responses=described.problems(401))
async def maintainers(request: Request) -> Response:
    """All maintainers, with those of their apps that you may see."""
    listed = await service_of(request).apps.maintainers.maintainers(await person_of(request))
    views = (
        MaintainerView(
            name=maintainer.name,
            kind=maintainer.kind,
            image=maintainer.image,
            digest=maintainer.digest,
            systems=maintainer.systems,
            apps=dict(maintainer.apps),
        )
        for maintainer in listed
    )
    return json_response(MaintainerList(items=tuple(views)))
