"""Sign-in to a gateway and sign-out over HTTP."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from sublet.api import described
from sublet.api.bodies import json_response
from sublet.api.people import base_of, host_of, secret_of, service_of
from sublet.kernel.errors import NotSignedIn
from sublet.people.api.tokens import token_view
from sublet.people.model.person import Person
from sublet.people.views.factors import IssuerWayView, OnceAsk, SecondAsk, WayList, WayView
from sublet.people.views.people import CodeAsk, SignInAsk, SignInView, TokenView

router = APIRouter(prefix="/v1", tags=["People"])
SENT = "If this address may sign in, a code is on its way to it. It counts for ten minutes."


@router.post("/sign-in", status_code=202, response_model=SignInView, responses=described.problems(400, 409, 429, 503))
async def ask(request: Request, ask: SignInAsk) -> Response:
    """Have a code sent to an address; the answer is the same whether its owner may sign in or not."""
    await service_of(request).people.signing_in.ask_code(ask.address, host_of(request))
    return json_response(SignInView(message=SENT), 202)


@router.post(
    "/sign-in/code", status_code=201, response_model=TokenView, responses=described.problems(400, 403, 409, 429)
)
async def sign_in(request: Request, ask: CodeAsk) -> Response:
    """A token for the code that came by mail; its text is in this answer and nowhere else."""
    made = await service_of(request).people.signing_in.sign_in_by_code(
        ask.address, ask.code, host_of(request), note=ask.client
    )
    return json_response(token_view(*made), 201)


@router.get("/sign-in/ways", response_model=WayList)
async def ways(request: Request) -> Response:
    """How people can sign in to this service; this needs no token."""
    service, base = service_of(request), base_of(request)
    items = tuple(
        WayView(name=name, title=title, page=f"{base}/web/sign-in/oidc/{name}")
        for name, title in service.people.oidc.providers.items()
    )
    issuers = tuple(
        IssuerWayView(
            name=name,
            title=issuer.title or name,
            issuer=issuer.issuer,
            client_id=issuer.client_id,
            scopes=issuer.login_scopes,
            device_endpoint=issuer.device_endpoint,
            audience=audience,
            audience_parameter=issuer.audience_parameter,
        )
        for name, issuer, audience in service.people.issuers.list_for_terminals()
    )
    return json_response(WayList(mail=service.people.signing_in.sends_codes, items=items, issuers=issuers))


@router.post(
    "/sign-in/second", status_code=201, response_model=TokenView, responses=described.problems(400, 403, 409, 429)
)
async def second(request: Request, ask: SecondAsk) -> Response:
    """A whole token for half a one: whoever has a second factor gets only that (`use` begins with `half-`)."""
    made = await service_of(request).people.factors.second(ask.token, ask.code, host_of(request))
    return json_response(token_view(*made), 201)


@router.post(
    "/sign-in/once", status_code=201, response_model=TokenView, responses=described.problems(400, 403, 409, 429)
)
async def once(request: Request, ask: OnceAsk) -> Response:
    """A token for the code that a page showed after a sign-in by an OpenID provider, for the terminal that began it."""
    service = service_of(request)
    made = await service.people.oidc.sign_in_once(ask.code, ask.verifier, host_of(request), ask.client)
    return json_response(token_view(*made), 201)


@router.post("/sign-out", status_code=204, responses=described.problems(401))
async def sign_out(request: Request) -> Response:
    """Make the token worthless that this request shows."""
    service = service_of(request)
    secret = secret_of(request.headers)
    token = await service.people.tokens.token_of(secret) if secret else None
    if token is None:
        raise NotSignedIn
    await service.people.signing_in.end_visit(Person(token.person), token.id, host_of(request))
    return Response(status_code=204)
