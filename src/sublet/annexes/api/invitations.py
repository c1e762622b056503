"""Invitations over HTTP: let a site fetch requests for leases, or withdraw that."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from sublet.annexes.views.invitations import InvitationView, InviteAsk
from sublet.api import described
from sublet.api.bodies import json_response
from sublet.api.people import require_operated

router = APIRouter(prefix="/v1/invitations", tags=["Annexes"])


@router.post("/{site}", response_model=InvitationView, responses=described.problems(400, 401, 403, 409, 503))
async def invite(request: Request, site: str, ask: InviteAsk) -> Response:
    """Invite a site: its name is a system for `annex create` from now on, and what is asked of it waits to be taken."""
    service = await require_operated(request)
    made = await service.annexes.invitations.invite(site, anew=ask.anew)
    return json_response(InvitationView(site=made.site, urls=made.urls, pin=made.pin, token=made.token))


@router.delete("/{site}", status_code=204, responses=described.problems(401, 403, 404))
async def withdraw(request: Request, site: str) -> Response:
    """Invite it no longer."""
    service = await require_operated(request)
    await service.annexes.invitations.withdraw(site)
    return Response(status_code=204)
