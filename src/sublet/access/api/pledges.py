"""The parts of platforms: what is pledged and what is open, and who may draw on it."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from sublet.access.model.access import Use
from sublet.access.pledges import PledgeState
from sublet.access.views.convert import access_view, rule_view
from sublet.access.views.pledges import PledgeList, PledgeView
from sublet.api import described
from sublet.api.bodies import json_response
from sublet.api.people import person_of, service_of

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
        allowed=stands.allowed,
        why=stands.why,
        how=stands.how,
        limits=stands.limits,
        rules=tuple(map(rule_view, state.rules)),
    )
