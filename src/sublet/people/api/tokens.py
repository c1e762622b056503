"""Tokens over HTTP, and who the service takes the caller for."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from sublet.api import described
from sublet.api.bodies import json_response
from sublet.api.people import host_of, person_of, service_of
from sublet.booking.model.amounts import parse_duration
from sublet.kernel.errors import BadRequest
from sublet.people.tokens import Token
from sublet.people.views.people import TokenAsk, TokenList, TokenView, WhoView

router = APIRouter(prefix="/v1", tags=["People"])


@router.get("/whoami", response_model=WhoView, responses=described.problems(401))
async def whoami(request: Request) -> Response:
    """Who the service takes the caller for."""
    person = await person_of(request)
    role = "operator" if person.operator else "reviewer" if person.reviewer else "person"
    mode = service_of(request).mode_word
    return json_response(
        WhoView(
            person=person.name,
            mode=mode,
            operator=person.operator,
            role=role,
            pending_role=person.pending_role,
            scope=person.scope,
        )
    )


MAKE = described.problems(400, 401, 403, 404, 409)


@router.post("/tokens", status_code=201, response_model=TokenView, responses=MAKE)
async def make(request: Request, ask: TokenAsk) -> Response:
    """A new token; its text is in this answer and nowhere else."""
    person = await person_of(request)
    service, host = service_of(request), host_of(request)
    if ask.session:
        if ask.person or ask.expires or ask.scope:
            raise BadRequest(detail="a session's token is for its owner, as long as the session: say nothing else.")
        return json_response(
            token_view(*await service.people.tokens.make_session_token(person, ask.session, host=host)), 201
        )
    lasts = parse_duration(ask.expires) if ask.expires else None
    made = await service.people.tokens.make_token(
        person, ask.note, lasts, ask.person or None, scope=ask.scope, host=host
    )
    return json_response(token_view(*made), 201)


@router.get("/tokens", response_model=TokenList, responses=described.problems(401))
async def tokens(request: Request) -> Response:
    """Your tokens, without their secrets."""
    listed = await service_of(request).people.tokens.tokens(await person_of(request))
    return json_response(TokenList(items=tuple(token_view(token) for token in listed)))


@router.delete("/tokens/{id}", status_code=204, responses=described.problems(401, 404))
async def revoke(request: Request, id: str) -> Response:
    """Make a token worthless: at once here, within seconds in every other process of the service."""
    await service_of(request).people.tokens.revoke_token(await person_of(request), id, host=host_of(request))
    request.app.state.remembered.clear()
    return Response(status_code=204)


def token_view(token: Token, secret: str = "") -> TokenView:
    """Return a token as its view."""
    return TokenView(
        id=token.id,
        person=token.person,
        note=token.name,
        created=token.created,
        expires=token.expires,
        scope=token.scope,
        use=token.use,
        session=token.session,
        used=token.used,
        token=secret,
    )
