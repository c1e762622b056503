"""Whether the service is there, and what Prometheus can scrape."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from sublet.api import described
from sublet.api.bodies import json_response
from sublet.api.people import service_of
from sublet.wire.views import HealthView

router = APIRouter(tags=["Operation"])


@router.get("/health", response_model=HealthView)
async def health(request: Request) -> Response:
    """That it is there, what it serves, and whether it can carry sessions on; needs no token."""
    service = service_of(request)
    view = HealthView(
        status="failing" if service.trouble else "ok",
        version=service.version,
        mode=service.mode,
        platforms=tuple(service.platforms_by_name),
        problem=service.trouble,
    )
    return json_response(view)


@router.get("/metrics", response_class=Response, **described.METRICS)
async def metrics(request: Request) -> Response:
    """Counts and times in Prometheus' text form; needs no token and names nobody."""
    return Response(await service_of(request).scrape(), media_type="text/plain; version=0.0.4; charset=utf-8")
