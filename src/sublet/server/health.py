"""Endpoints for health checks and for Prometheus."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from sublet.api import described
from sublet.api.bodies import json_response
from sublet.api.people import person_of, service_of
from sublet.booking.health import find_trouble
from sublet.booking.loop.clock_watch import describe_step
from sublet.booking.views.health import HealthView
from sublet.kernel.errors import OperatorsOnly, SubletError
from sublet.people.model.person import Person
from sublet.service import Service

router = APIRouter(tags=["Operation"])


LATELY = timedelta(days=1)  # how long a step of the clock is reported
WHY = "It is there, and can't carry sessions on: `problem` says why."
FAILING: Any = {503: {"model": HealthView, "description": WHY}}


@router.get("/health", response_model=HealthView, responses=FAILING)
async def health(request: Request) -> Response:
    """That it is there, and whether it can carry sessions on (else 503); needs no token.

    The names of platforms are told only to who shows a token, and may use them.
    """
    service = service_of(request)
    trouble = await find_trouble(service.loop_state, service.store)
    view = HealthView(
        status="failing" if trouble else "ok",
        version=service.version,
        mode=service.mode_word,
        platforms=await _platforms(request, service),
        database=await _database(request, service),
        problem=trouble,
        clock=await _clock(request, service),
    )
    return json_response(view, 503 if trouble else 200)


@router.get("/metrics", response_class=Response, **described.METRICS)
async def metrics(request: Request) -> Response:
    """Counts and times in Prometheus' text form; a gateway's names nobody, and needs no token.

    What names platforms is told to an operator's token alone, and a personal service's to its owner's.
    """
    service = service_of(request)
    person = await person_of(request) if service.authority.has_owner else await _asker(request)
    whole = person is not None and person.operator
    if service.authority.has_owner and not whole:
        raise OperatorsOnly
    return Response(await service.scrape(whole), media_type="text/plain; version=0.0.4; charset=utf-8")


async def _platforms(request: Request, service: Service) -> tuple[str, ...]:
    person = await _asker(request)
    if service.authority.has_owner:
        return tuple(service.platforms.by_name) if person else ()
    return tuple(await service.usable_platforms.usable(person)) if person else ()


async def _database(request: Request, service: Service) -> str:
    """Return the database's kind and address, for operators only."""
    person = await _asker(request)
    return service.store.where if person is not None and person.operator else ""


async def _clock(request: Request, service: Service) -> str:
    """Describe the last step of the machine's clock, for operators only."""
    person = await _asker(request)
    step = service.loop_state.clock_step
    if step is None or person is None or not person.operator or service.now() - step.at > LATELY:
        return ""
    return f"{describe_step(step.by)}, noticed at {step.at:%Y-%m-%dT%H:%M:%SZ}"


async def _asker(request: Request) -> Person | None:
    """Return the person who sent the request, or None if it isn't authenticated."""
    try:
        return await person_of(request)
    except SubletError:
        return None
