"""Platforms: what they have, conformance checks, sweeping and draining."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from sublet.api import described
from sublet.api.bodies import json_response
from sublet.api.instants import require_zone
from sublet.api.people import host_of, person_of, service_of
from sublet.booking.api.calendar import in_utc
from sublet.booking.model.amounts import parse_duration
from sublet.booking.model.drain import Drain
from sublet.booking.platforms.drains import USUAL_GRACE
from sublet.booking.platforms.platforms import PlatformState
from sublet.booking.views.convert import node_views, quote_views
from sublet.booking.views.platforms import (
    CheckList,
    CheckView,
    DrainAsk,
    DrainView,
    PlatformList,
    PlatformView,
    SweptView,
)
from sublet.kernel.errors import BadRequest, NotFound, OperatorsOnly

router = APIRouter(prefix="/v1/platforms", tags=["Platforms"])


@router.get("", response_model=PlatformList, responses=described.problems(400, 401))
async def platforms(
    request: Request,
    anew: Annotated[bool, Query(description="Look at each now; for operators, others see what was seen last.")] = False,
) -> Response:
    """The platforms that you may use, including broken ones, and the names of those that you can request access to.

    Operators see all; a guest sees those that are shared with them. Each has a few seconds to answer.
    """
    states = await service_of(request).usable_platforms.states(await person_of(request), anew=anew)
    return json_response(PlatformList(items=tuple(map(_view, states))))


@router.get("/{name}", response_model=PlatformView, responses=described.problems(401, 403, 404))
async def platform(request: Request, name: str) -> Response:
    """One platform that you may use."""
    person = await person_of(request)
    return json_response(_view(await service_of(request).usable_platforms.platform(name, person)))


@router.post("/{name}/check", response_model=CheckList, responses=described.problems(401, 403, 404, 503))
async def check(request: Request, name: str) -> Response:
    """Try every promise of a platform on the live thing; for operators, because it runs small jobs there."""
    if not (await person_of(request)).operator:
        raise OperatorsOnly
    findings = await service_of(request).usable_platforms.check(name)
    return json_response(CheckList(items=tuple(CheckView(rule=f.rule, ok=f.ok, detail=f.detail) for f in findings)))


@router.post("/{name}/sweep", response_model=SweptView, responses=described.problems(400, 401, 403, 404, 409, 503))
async def sweep(
    request: Request, name: str, all: Annotated[bool, Query(description="Also files that were needed lately.")] = False
) -> Response:
    """Remove what is left on a platform and no session needs; for operators. It is also done by itself, every hour.

    Files that sessions shared, such as images, stay for a while after the last one; with `all` they go too.
    """
    if not (await person_of(request)).operator:
        raise OperatorsOnly
    swept = await service_of(request).usable_platforms.sweep(name, timedelta(0) if all else None)
    return json_response(SweptView(sessions=swept.sessions, files=swept.files))


@router.post("/{name}/drain", response_model=PlatformView, responses=described.problems(400, 401, 403, 404))
async def drain(request: Request, name: str, ask: DrainAsk) -> Response:
    """Drain a platform: start nothing new on it; for operators. Running sessions finish; queued ones start later."""
    person, service = await person_of(request), service_of(request)
    if ask.grace and not ask.now:
        raise BadRequest(detail="`grace` is for `now` alone.", hint="Without `now`, running sessions may finish.")
    grace = (parse_duration(ask.grace) if ask.grace else USUAL_GRACE) if ask.now else None
    until, host = in_utc(require_zone(ask.until, "until")), host_of(request)
    await service.drains.drain(person, name, until=until, reason=ask.reason, grace=grace, host=host)
    return json_response(_view(await service.usable_platforms.platform(name, person)))


@router.post("/{name}/undrain", response_model=PlatformView, responses=described.problems(400, 401, 403, 404, 409))
async def undrain(request: Request, name: str) -> Response:
    """Let a platform be used again; for operators."""
    person, service = await person_of(request), service_of(request)
    await service.drains.undrain(person, name, host_of(request))
    try:
        return json_response(_view(await service.usable_platforms.platform(name, person)))
    except NotFound as error:  # it was removed meanwhile, as annexes and accounts can be
        return json_response(PlatformView(name=name, kind="", terms="", working=False, problem=error.message))


def _drain(drain: Drain | None) -> DrainView | None:
    if drain is None:
        return None
    words = f"{drain.sentence}."
    return DrainView(since=drain.created, until=drain.until, reason=drain.reason, ends=drain.ends, sentence=words)


def _view(state: PlatformState) -> PlatformView:
    survey = state.survey
    if survey is None:
        return PlatformView(
            name=state.name,
            kind=state.kind,
            terms=state.terms,
            working=False,
            problem=state.trouble,
            needs_login=state.needs_login,
            ask=state.ask,
            drain=_drain(state.drain),
        )
    return PlatformView(
        name=state.name,
        kind=state.kind,
        terms=state.terms,
        needs_login=state.needs_login,
        trouble=survey.trouble,
        as_of=survey.as_of,
        nodes=node_views(survey.nodes),
        pools=dict(survey.pools),
        tools=dict(survey.tools),
        metrics=quote_views(survey.metrics),
        notes=survey.notes,
        contained_only=survey.contained_only,
        drain=_drain(state.drain),
    )
