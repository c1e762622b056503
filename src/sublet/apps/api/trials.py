"""Trials under /v1: an author's own app, on their own service."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from sublet.api import described
from sublet.api.bodies import json_response, read_body
from sublet.api.people import person_of, service_of
from sublet.apps.model.manifest import to_json
from sublet.apps.model.tree import MOST_BYTES
from sublet.apps.views.trials import TrialView

router = APIRouter(prefix="/v1/trials", tags=["Apps"])


TAR = {"requestBody": {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}}


@router.post(
    "",
    status_code=201,
    response_model=TrialView,
    responses=described.problems(400, 401, 409, 413),
    openapi_extra=TAR,
)
async def make(request: Request, name: str = "app", image: str = "", kind: str = "") -> Response:
    """Pin the app in a tar (the body) as it is, to ask for it by the name in the answer; personal services only."""
    await person_of(request)
    service_of(request).apps.trials.require_allowed()  # before the large body is read
    body = await read_body(request, MOST_BYTES)
    trial = await service_of(request).apps.trials.try_app(body, name=name, image=image, kind=kind)
    findings = tuple(str(finding) for finding in trial.reading.findings)
    return json_response(TrialView(name=trial.name, manifest=to_json(trial.manifest), findings=findings), 201)
