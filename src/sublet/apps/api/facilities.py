"""What platforms offer to apps, under /v1: used by `sublet app check`, which sends none of the code."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from sublet.api import described
from sublet.api.bodies import json_response
from sublet.api.people import person_of, service_of
from sublet.apps.views.apps import FacilitiesView

router = APIRouter(prefix="/v1/facilities", tags=["Apps"])


@router.get("", response_model=FacilitiesView, responses=described.problems(401))
async def facilities(request: Request) -> Response:
    """Which needs of apps the platforms that you may use can meet, and the images that manifests may name."""
    service = service_of(request)
    offered = await service.apps.proposing.facilities(await service.usable_platforms.usable(await person_of(request)))
    return json_response(
        FacilitiesView(
            images=dict(offered.images),
            mpi=offered.mpi,
            gpus=dict(offered.gpus),
            nodes=dict(offered.nodes),
            online=offered.online,
            offline=offered.offline,
            unknown=offered.unknown,
            data=offered.data,
            places=dict(offered.places),
            largest=offered.largest,
        )
    )
