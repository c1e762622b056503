"""A person's second factor over HTTP: turn it on, confirm it, turn it off."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from sublet.api import described
from sublet.api.bodies import json_response
from sublet.api.people import host_of, person_of, service_of
from sublet.people.views.factors import EnrolmentView, FactorCodeAsk, FactorView, RecoveryView

router = APIRouter(prefix="/v1", tags=["People"])
CHANGE = described.problems(400, 401, 403, 404, 409)


@router.get("/factor", response_model=FactorView, responses=described.problems(401, 403, 409))
async def show(request: Request) -> Response:
    """Whether you have a second factor."""
    factor = await service_of(request).people.factors.factor(await person_of(request))
    return json_response(
        FactorView(on=True, since=factor.confirmed, recovery=len(factor.recovery)) if factor else FactorView(on=False)
    )


@router.post("/factor", status_code=201, response_model=EnrolmentView, responses=CHANGE)
async def begin(request: Request) -> Response:
    """A new secret for an authenticator (TOTP); it counts once a code of it is shown."""
    begun = await service_of(request).people.factors.begin_factor(await person_of(request))
    return json_response(EnrolmentView(secret=begun.secret, uri=begun.uri), 201)


@router.post("/factor/confirm", response_model=RecoveryView, responses=CHANGE)
async def confirm(request: Request, ask: FactorCodeAsk) -> Response:
    """Turn the second factor on. Only this answer has the recovery codes."""
    person = await person_of(request)
    codes = await service_of(request).people.factors.confirm_factor(person, ask.code, host_of(request))
    return json_response(RecoveryView(codes=codes))


@router.post("/factor/remove", status_code=204, responses=CHANGE)
async def remove(request: Request, ask: FactorCodeAsk) -> Response:
    """Come in without it from now on; a code of it, or a recovery code, is needed."""
    person = await person_of(request)
    await service_of(request).people.factors.remove_factor(person, ask.code, host=host_of(request))
    return Response(status_code=204)


@router.delete("/people/{name}/factor", status_code=204, responses=CHANGE)
async def reset(request: Request, name: str) -> Response:
    """Let someone in without the second factor that they have lost; operators can."""
    person = await person_of(request)
    await service_of(request).people.factors.reset_factor(person, name, host=host_of(request))
    return Response(status_code=204)
