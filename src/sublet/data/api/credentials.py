"""Credentials under /v1, for the storage that a person's data is in."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from sublet.api import described
from sublet.api.bodies import json_response
from sublet.api.people import host_of, person_of, service_of
from sublet.data.globus_sign_in import GlobusVisit
from sublet.data.model.credentials import Credential, CredentialKind, SealedCredential
from sublet.data.views.credentials import (
    CredentialAsk,
    CredentialList,
    CredentialView,
    GlobusAsk,
    GlobusCodeAsk,
    GlobusVisitView,
)

router = APIRouter(prefix="/v1/credentials", tags=["Credentials"])


@router.post("", status_code=201, response_model=CredentialView, responses=described.problems(400, 401, 403, 409))
async def add(request: Request, ask: CredentialAsk) -> Response:
    """Keep a credential for the addresses that begin with `place`; its secret is never shown again."""
    person = await person_of(request)
    new = Credential(ask.place, CredentialKind(ask.kind), ask.user, ask.secret, ask.endpoint, ask.region)
    kept = await service_of(request).credentials.add(person, new, host_of(request), ask.passphrase, ask.session_token)
    return json_response(_view(kept), 201)


@router.post("/globus", response_model=GlobusVisitView, responses=described.problems(400, 401, 403))
async def begin_globus(request: Request, ask: GlobusAsk) -> Response:
    """Begin a sign-in to Globus; the answer has the address at which you sign in and get a code."""
    visit = service_of(request).globus_sign_in.begin(await person_of(request), ask.place, ask.client_id)
    return json_response(GlobusVisitView(address=visit.address, client_id=visit.client, verifier=visit.verifier))


@router.post(
    "/globus/code", status_code=201, response_model=CredentialView, responses=described.problems(400, 401, 403, 409)
)
async def finish_globus(request: Request, ask: GlobusCodeAsk) -> Response:
    """Finish it with the code: a refresh token of Globus is kept, sealed."""
    person, visit = await person_of(request), GlobusVisit("", ask.client_id, ask.verifier)
    kept = await service_of(request).globus_sign_in.finish(person, ask.place, visit, ask.code, host_of(request))
    return json_response(_view(kept), 201)


@router.get("", response_model=CredentialList, responses=described.problems(401))
async def credentials(request: Request) -> Response:
    """Your credentials, without their secrets."""
    kept = await service_of(request).credentials.list(await person_of(request))
    return json_response(CredentialList(items=tuple(map(_view, kept))))


@router.delete("", status_code=204, responses=described.problems(401, 404))
async def remove(request: Request, place: str = "") -> Response:
    """Delete the credential for an address."""
    await service_of(request).credentials.remove(await person_of(request), place, host_of(request))
    return Response(status_code=204)


def _view(sealed: SealedCredential) -> CredentialView:
    known = sealed.credential
    return CredentialView(
        place=known.place,
        kind=known.kind.value,
        user=known.user,
        endpoint=known.endpoint,
        region=known.region,
        created=sealed.created,
    )
