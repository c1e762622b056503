"""Runs of apps under /v1: request offers, or start at once in the form of CyberGIS' roadmap."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Body, Request
from starlette.responses import Response

from sublet.api import described
from sublet.api.bodies import json_response
from sublet.api.idempotency import Key
from sublet.api.people import base_of, host_of, person_of, service_of
from sublet.apps.run_requests import AppWish
from sublet.apps.views.runs import AppAsk, StartedView
from sublet.booking.api.precedence import Said
from sublet.booking.views.convert import offerset_view, session_view
from sublet.booking.views.offers import OfferSetView
from sublet.doors.cybergis.roadmap import read_seed

router = APIRouter(prefix="/v1", tags=["Apps"])
ANSWERS = described.problems(400, 401, 403, 404, 409, 503)
EXAMPLE = {
    "maintainer": "python-cybergisx",
    "hpc": "keeling",
    "file": "github://zimo-xiao/project-a",
    "data_file": {"": "https://example.org/input.tar.gz"},
    "app": {"a": "value", "b": 0},
}


@router.post("/offersets/apps/{app}", status_code=201, response_model=OfferSetView, **described.describe_keyed(ANSWERS))
async def ask(request: Request, app: str, ask: AppAsk, precedence: Said, key: Key) -> Response:
    """Ask for an app: its parameters are checked by its schema, its resources by its manifest, its use by the rules."""
    service = service_of(request)
    offerset = await service.apps.runs.ask_app(
        await person_of(request), AppWish(app=app, **vars(ask)), precedence, key=key
    )
    base = base_of(request)
    response = json_response(
        offerset_view(offerset, base, service.annexes.platforms.could_lease(offerset), service.settings.prefer), 201
    )
    response.headers["location"] = f"{base}/v1/offersets/{offerset.id}"
    return response


@router.post("/sessions", status_code=201, response_model=StartedView, **described.describe_keyed(ANSWERS))
async def start(request: Request, key: Key, document: dict[str, Any] = Body(examples=[EXAMPLE])) -> Response:  # noqa: B008
    """Run an app at once, in the form of CyberGIS' roadmap: `maintainer`, `hpc`, `file`, `data_file`, `app`, `slurm`.

    `file` is an app that was approved, by its repository or its name. The answer has a token for this session alone.
    """
    person = await person_of(request)
    session, token = await service_of(request).apps.runs.start_app(
        person, read_seed(document), host_of(request), key=key
    )
    return json_response(StartedView(session=session_view(session, base_of(request)), token=token), 201)
