"""Places under /v1: directories of platforms that sessions share, and a person's own scratch in them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from fastapi import APIRouter, Request
from starlette.responses import Response

from sublet.api import described
from sublet.api.bodies import json_response
from sublet.api.people import host_of, person_of, service_of
from sublet.data.model.places import USUAL_KEEP, DeclaredPlace, PlaceKind
from sublet.data.views.places import PlaceAsk, PlaceList, PlaceView, ScratchKeep, ScratchView
from sublet.kernel.errors import BadRequest

router = APIRouter(prefix="/v1/places", tags=["Places"])
LONGEST = timedelta.max.total_seconds() / 1000


@router.post("", status_code=201, response_model=PlaceView, responses=described.problems(400, 401, 403, 404, 409))
async def add(request: Request, ask: PlaceAsk) -> Response:
    """Declare a place of a platform, in place of the one that there was of this name; for operators."""
    person, service = await person_of(request), service_of(request)
    kind = PlaceKind(ask.kind)
    place = DeclaredPlace(
        name=ask.name,
        platform=ask.platform,
        kind=kind,
        path=ask.path if ask.path == "/" else ask.path.rstrip("/"),
        target=(ask.target or f"/{ask.name}").rstrip("/"),
        writable=ask.writable or kind is PlaceKind.SCRATCH,
        keep=_read_seconds(ask.keep) or USUAL_KEEP,
        apps=ask.apps,
        note=ask.note[:500],
        created=service.now(),
        by=person.name,
        quota=ask.quota,
    )
    return json_response(_view(await service.places.add(person, place, host_of(request)), {}), 201)


@router.get("", response_model=PlaceList, responses=described.problems(401))
async def places(request: Request) -> Response:
    """The places that you may use, and until when your own scratch is kept."""
    person, service = await person_of(request), service_of(request)
    kept = {(use.platform, use.place): use.until for use in await service.scratch.list(person)}
    items = [_view(place, kept) for place in await service.places.list(person)]
    return json_response(PlaceList(items=tuple(items)))


@router.delete("/{platform}/{name}", status_code=204, responses=described.problems(401, 403, 404))
async def remove(request: Request, platform: str, name: str) -> Response:
    """Delete a place; for operators. Reference and shared data stay as they are, scratch is removed."""
    await service_of(request).places.remove(await person_of(request), platform, name, host_of(request))
    return Response(status_code=204)


@router.put("/{platform}/{name}/scratch", response_model=ScratchView, responses=described.problems(400, 401, 404))
async def keep(request: Request, platform: str, name: str, ask: ScratchKeep) -> Response:
    """Keep your own scratch for so long from now on."""
    time = _read_seconds(ask.seconds)
    use = await service_of(request).scratch.keep(await person_of(request), platform, name, time)
    return json_response(ScratchView(place=use.place, platform=use.platform, until=use.until))


@router.delete("/{platform}/{name}/scratch", status_code=204, responses=described.problems(401, 404, 409))
async def clear(request: Request, platform: str, name: str) -> Response:
    """Remove your own scratch with everything in it, unless a session uses it."""
    await service_of(request).scratch.clear(await person_of(request), platform, name)
    return Response(status_code=204)


def _read_seconds(seconds: float) -> timedelta:
    if not 0 <= seconds <= LONGEST:
        raise BadRequest(detail="a time is a number of seconds, from 0 on", hint="Write 1209600 for two weeks.")
    return timedelta(seconds=seconds)


def _view(place: DeclaredPlace, kept: Mapping[tuple[str, str], datetime]) -> PlaceView:
    is_scratch = place.kind is PlaceKind.SCRATCH
    return PlaceView(
        name=place.name,
        platform=place.platform,
        kind=place.kind.value,
        path=place.path,
        target=place.target,
        writable=place.writable,
        keep=place.keep.total_seconds() if is_scratch else 0,
        quota=place.quota,
        apps=place.apps,
        note=place.note,
        created=place.created,
        by=place.by,
        until=kept.get((place.platform, place.name)),
    )
