"""Offer sets under /v1: ask in the short form or with the full document."""

from __future__ import annotations

from dataclasses import replace

from fastapi import APIRouter, Request
from starlette.responses import Response

from sublet.api import described
from sublet.api.bodies import json_response, read_body
from sublet.api.hearing import has_gone
from sublet.api.idempotency import Key
from sublet.api.people import base_of, person_of, service_of
from sublet.booking.api.precedence import Said
from sublet.booking.model.session import OfferSet
from sublet.booking.views.convert import offerset_view
from sublet.booking.views.offers import (
    OfferSetPage,
    OfferSetView,
    PendingList,
    PendingView,
    RejectedView,
    RunWayList,
    RunWayView,
)
from sublet.people.model.person import Person
from sublet.service import Service

router = APIRouter(prefix="/v1/offersets", tags=["Offers"])


@router.post("", status_code=201, response_model=OfferSetView, **described.ASK_SHORT)
async def ask(request: Request, precedence: Said, key: Key) -> Response:
    """Ask: *when, and where, can I run this?* A NO is an answer too, with its reasons.

    Earlier offers of yours that you have not accepted give way where they leave no room for these. With an
    `Idempotency-Key` a request that is sent again gets the same offers; another request under that key is refused.
    """
    person = await person_of(request)
    service = service_of(request)
    asked = await service.asking.read(await read_body(request), request.headers.get("content-type", ""), person)
    asked = replace(asked, precedence=precedence)
    offerset = await service.asking.ask(person, asked, key=key)
    await _give_back_unheard(request, service, person, offerset)
    notes = (*asked.notes, *service.annexes.platforms.could_lease(offerset))
    response = json_response(offerset_view(offerset, base_of(request), notes, service.settings.prefer), 201)
    response.headers["location"] = f"{base_of(request)}/v1/offersets/{offerset.id}"
    return response


@router.post("/ways", response_model=RunWayList, **described.ASK_WAYS)
async def explain_ways(request: Request) -> Response:
    """In which ways what is asked for can run, on which platforms, and why not in others. Nothing is held."""
    person = await person_of(request)
    service = service_of(request)
    asked = await service.asking.read(await read_body(request), request.headers.get("content-type", ""), person)
    findings = await service.ways.explain(person, asked)
    items = tuple(
        RunWayView(platform=each.platform, way=each.way, possible=each.is_possible, why=each.why) for each in findings
    )
    return json_response(RunWayList(items=items))


@router.get("", response_model=OfferSetPage, responses=described.problems(401))
async def offersets(request: Request) -> Response:
    """Your offers that can still be accepted, by their sets, the newest first."""
    service = service_of(request)
    listed = await service.offers.open_offers(await person_of(request))
    base, prefer = base_of(request), service.settings.prefer
    return json_response(OfferSetPage(items=tuple(offerset_view(offerset, base, prefer=prefer) for offerset in listed)))


@router.get("/pending", response_model=PendingList, responses=described.problems(401))
async def pending(request: Request) -> Response:
    """Your requests that are being answered now, and which platforms each of them still waits for."""
    person = await person_of(request)
    items = tuple(
        PendingView(since=ask.since, waiting=tuple(sorted(ask.waiting)))
        for ask in service_of(request).candidates.pending.of(person.name)
    )
    return json_response(PendingList(items=items))


@router.delete("", response_model=RejectedView, responses=described.problems(401))
async def reject_all(request: Request) -> Response:
    """Reject all of your open offers: what they held is free again."""
    return json_response(RejectedView(offers=await service_of(request).offers.reject_all(await person_of(request))))


@router.delete("/{id}", response_model=RejectedView, responses=described.problems(401, 403, 404))
async def reject_set(request: Request, id: str) -> Response:
    """Reject the open offers of a set: what they held is free again."""
    return json_response(RejectedView(offers=await service_of(request).offers.reject_set(id, await person_of(request))))


@router.get("/{id}", response_model=OfferSetView, responses=described.problems(401, 403, 404))
async def offerset(request: Request, id: str) -> Response:
    """An offer set, with its offers as they are now."""
    service = service_of(request)
    stored = await service.asking.offerset(id, await person_of(request))
    return json_response(
        offerset_view(stored, base_of(request), service.annexes.platforms.could_lease(stored), service.settings.prefer)
    )


async def _give_back_unheard(request: Request, service: Service, person: Person, offerset: OfferSet) -> None:
    """Reject the offers if the client disconnected before the answer, unless it can ask for them again by its key."""
    if offerset.offers and offerset.key is None and has_gone(request):
        await service.offers.reject_set(offerset.id, person)
