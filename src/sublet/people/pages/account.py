"""The page of one's account at a gateway: identity, tokens and browser sessions."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sublet.api.people import host_of, service_of
from sublet.kernel.errors import NotFound, SubletError
from sublet.web.confirming import Confirmation, confirm_page, is_confirmed
from sublet.web.drawing import page
from sublet.web.reading import read_form, visitor

PAGE = "/web/account"


async def look(request: Request) -> Response:
    """Show the visitor's account."""
    who = await visitor(request)
    service = service_of(request)
    service.authority.require_gateway()
    try:
        profile = await service.people.directory.profile(who.person, who.person.name)
    except SubletError:  # users of the Unix socket aren't people of the gateway
        profile = None
    now = service.now()
    tokens = [
        token for token in await service.people.tokens.tokens(who.person) if not token.expires or token.expires > now
    ]
    return page(
        request,
        "account.html",
        who,
        profile=profile,
        factor=await service.people.factors.factor(who.person),
        role="operator" if who.person.operator else "reviewer" if who.person.reviewer else "person",
        browsers=[token for token in tokens if token.use == "browser"],
        tokens=[token for token in tokens if token.use == "api"],
    )


async def revoke(request: Request) -> Response:
    """Revoke one of the visitor's tokens or browser sessions, after confirmation."""
    who, form = await read_form(request)
    service = service_of(request)
    service.authority.require_gateway()
    id = form.get("id", "")
    token = next((token for token in await service.people.tokens.tokens(who.person) if token.id == id), None)
    if token is None:
        raise NotFound(noun="token", name=id, hint="It may be revoked already.")
    if not is_confirmed(form):
        return confirm_page(request, who, _question(token.name or id[:8], token.use, is_this_one=id == who.token), form)
    await service.people.tokens.revoke_token(who.person, id, host=host_of(request))
    request.app.state.remembered.clear()
    return RedirectResponse("/web/login" if id == who.token else PAGE, 303)


def _question(name: str, use: str, *, is_this_one: bool) -> Confirmation:
    if use == "browser":
        effect = "This is the browser that you are using now." if is_this_one else "It has to sign in again."
        return Confirmation(f"Sign out {name}?", (effect,), "Sign out", PAGE)
    effect = "Programs that use this token are refused from then on. A revoked token can't be restored."
    return Confirmation(f"Revoke the token {name}?", (effect,), "Revoke", PAGE)
