"""Offer sets under /v1: ask in the short form or with the full document."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from sublet.api import described
from sublet.api.bodies import json_response, read_body
from sublet.api.people import base_of, person_of, service_of
from sublet.wire.shown import offerset_view
from sublet.wire.v1.offers import OfferSetView

router = APIRouter(prefix="/v1/offersets", tags=["Offers"])


@router.post("", status_code=201, response_model=OfferSetView, **described.ASK_SHORT)
async def ask(request: Request) -> Response:
    """Ask: *when, and where, can I run this?* A NO is an answer too, with its reasons."""
    person = await person_of(request)
    service = service_of(request)
    asked = await service.read(await read_body(request), request.headers.get("content-type", ""), person)
    found = await service.ask(person, asked, key=request.headers.get("idempotency-key"))
    notes = (*asked.notes, *service.could_lease(found))
    response = json_response(offerset_view(found, base_of(request), notes), 201)
    response.headers["location"] = f"{base_of(request)}/v1/offersets/{found.id}"
    return response


@router.get("/{id}", response_model=OfferSetView, responses=described.problems(401, 403, 404))
async def offerset(request: Request, id: str) -> Response:
    """An offer set, with its offers as they are now."""
    service = service_of(request)
    found = await service.offerset(id, await person_of(request))
    return json_response(offerset_view(found, base_of(request), service.could_lease(found)))
