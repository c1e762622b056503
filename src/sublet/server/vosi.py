"""VOSI: the service's self-description for IVOA registries and clients, which needs no token."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from sublet.api.people import base_of, service_of
from sublet.booking.health import find_trouble
from sublet.doors.ivoa.vosi import write_availability, write_capabilities

router = APIRouter(tags=["Operation"])
TOLD: dict[int | str, dict[str, object]] = {200: {"content": {"text/xml": {}}, "description": "A document of VOSI."}}


@router.get("/capabilities", response_class=Response, responses=TOLD)
async def capabilities(request: Request) -> Response:
    """What this service speaks and where, as VOSI has it; needs no token."""
    return Response(write_capabilities(base_of(request)), media_type="text/xml")


@router.get("/availability", response_class=Response, responses=TOLD)
async def availability(request: Request) -> Response:
    """Whether it can carry sessions on, as VOSI has it; needs no token. It is told in words, with status 200."""
    service = service_of(request)
    trouble = await find_trouble(service.loop_state, service.store)
    return Response(write_availability(trouble, request.app.state.started), media_type="text/xml")
