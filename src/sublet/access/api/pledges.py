"""Pledges over HTTP: what is pledged and what is open, and who may use it."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from sublet.access.model.access import Use
from sublet.access.pledges import PledgeState
from sublet.access.views.convert import access_view, rule_view
from sublet.access.views.pledges import AddedPledgeView, PledgeAsk, PledgeEdit, PledgeList, PledgeView
from sublet.api import described
from sublet.api.bodies import json_response
from sublet.api.people import host_of, person_of, service_of
from sublet.booking.model.pledged import AddedPledge
from sublet.kernel.views import plain

router = APIRouter(prefix="/v1/pledges", tags=["Platforms"])


@router.get("", response_model=PledgeList, responses=described.problems(401))
async def pledges(request: Request) -> Response:
    """The parts of the platforms that the asker may use: how large, how much is taken, whether they may draw on it."""
    listed = await service_of(request).access.pledges.pledges(await person_of(request))
    return json_response(PledgeList(items=tuple(map(_view, listed))))


@router.get("/{name}", response_model=PledgeList, responses=described.problems(401, 404))
async def pledge(request: Request, name: str) -> Response:
    """One pledge, on each of the platforms that have it; operators see the rules about it too."""
    parts = await service_of(request).access.pledges.pledges(await person_of(request), name)
    return json_response(PledgeList(items=tuple(map(_view, parts))))


@router.post("", status_code=201, response_model=AddedPledgeView, responses=described.problems(400, 401, 403, 404))
async def add(request: Request, ask: PledgeAsk) -> Response:
    """Pledge a part of a platform, beside what its settings pledge; it counts at once."""
    pledge_changes, person = service_of(request).access.pledge_changes, await person_of(request)
    platform, name, amounts = ask.platform.strip(), ask.name.strip(), _read_amounts(ask)
    added = await pledge_changes.add(person, platform, name, amounts, host_of(request))
    return json_response(_make_view(added), 201)


@router.patch("/{name}", response_model=AddedPledgeView, responses=described.problems(400, 401, 403, 404))
async def edit(request: Request, name: str, changes: PledgeEdit, platform: str = "") -> Response:
    """Change a pledge that was added with `pledge add`. Existing bookings stay."""
    person, amounts = await person_of(request), _read_amounts(changes)
    pledge = await service_of(request).access.pledge_changes.edit(person, platform, name, amounts, host_of(request))
    return json_response(_make_view(pledge))


@router.delete("/{name}", response_model=AddedPledgeView, responses=described.problems(400, 401, 403, 404))
async def remove(request: Request, name: str, platform: str = "") -> Response:
    """Remove a pledge that was added: it becomes open, and what is booked under it stays booked."""
    person = await person_of(request)
    return json_response(
        _make_view(await service_of(request).access.pledge_changes.remove(person, platform, name, host_of(request)))
    )


def _read_amounts(given: PledgeEdit) -> dict[str, Any]:
    return {field: value for field, value in plain(given).items() if value is not None}


def _make_view(pledge: AddedPledge) -> AddedPledgeView:
    settings: dict[str, Any] = dict(pledge.settings)
    return AddedPledgeView(platform=pledge.platform, name=pledge.name, **settings)


def _view(state: PledgeState) -> PledgeView:
    stands = access_view(state.decision, Use())
    return PledgeView(
        platform=state.platform,
        name=state.name,
        title=state.title,
        cores=state.cores,
        taken=state.taken,
        free=state.free,
        memory=state.pledged.memory,
        gpus=state.pledged.gpus,
        storage=state.pledged.storage,
        when=state.when,
        added=state.is_added,
        allowed=stands.allowed,
        why=stands.why,
        how=stands.how,
        limits=stands.limits,
        rules=tuple(map(rule_view, state.rules)),
    )
