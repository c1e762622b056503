"""The endpoints of notifications under /v1/hooks."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter, Request
from starlette.responses import Response

from sublet.api import described
from sublet.api.bodies import json_response
from sublet.api.people import host_of, person_of, service_of
from sublet.booking.model.amounts import parse_duration
from sublet.notices.model.hooks import STATES, Delivery, Hook
from sublet.notices.views.hooks import HookAsk, HookList, HookTestView, HookView, ToldView

router = APIRouter(prefix="/v1/hooks", tags=["Hooks"])


@router.post("", status_code=201, response_model=HookView, responses=described.problems(400, 401, 403, 404, 409))
async def add(request: Request, ask: HookAsk) -> Response:
    """Add a webhook or a mail notification; webhooks are signed with `secret`, which is shown in this answer only."""
    person = await person_of(request)
    lasts = parse_duration(ask.expires) if ask.expires else None
    made, secret = await service_of(request).notices.hooks.add_hook(
        person, ask.address, session=ask.session, events=ask.on, lasts=lasts, host=host_of(request)
    )
    return json_response(_view(made, secret=secret), 201)


@router.get("", response_model=HookList, responses=described.problems(401))
async def hooks(request: Request) -> Response:
    """The asker's hooks, and what each was told last."""
    listed = await service_of(request).notices.hooks.hooks(await person_of(request))
    return json_response(HookList(items=tuple(_view(hook, deliveries) for hook, deliveries in listed)))


@router.delete("/{id}", status_code=204, responses=described.problems(401, 404, 409))
async def remove(request: Request, id: str) -> Response:
    """Remove a notification."""
    await service_of(request).notices.hooks.remove_hook(await person_of(request), id, host_of(request))
    return Response(status_code=204)


@router.post("/{id}/test", response_model=HookTestView, responses=described.problems(401, 404, 409, 502))
async def test(request: Request, id: str) -> Response:
    """Send a test now; a webhook that was given up works again from now on, if it accepts this."""
    return json_response(
        HookTestView(answer=await service_of(request).notices.hooks.test_hook(await person_of(request), id))
    )


def _view(hook: Hook, deliveries: Sequence[Delivery] = (), secret: str = "") -> HookView:
    return HookView(
        id=hook.id,
        session=hook.session,
        address=hook.address,
        on=hook.events or STATES,
        created=hook.created,
        expires=hook.expires,
        trouble=hook.trouble,
        told=tuple(
            ToldView(
                event=delivery.event,
                tries=delivery.tries,
                tried=delivery.tried,
                next=delivery.due,
                answer=delivery.answer,
            )
            for delivery in deliveries
        ),
        secret=secret,
    )
