"""The pages to sign in with a token or link, and to sign out."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from sublet.api.people import VALID_COUNTS, base_of, host_of, on_socket, service_of
from sublet.kernel.errors import NotFound
from sublet.kernel.throttle import neighbours
from sublet.people.model.person import Person
from sublet.people.pages import signing_in
from sublet.web.drawing import page
from sublet.web.entry import STAY, Sealed, check_post, delete_cookie, issue_code, let_in, next_of, unseal
from sublet.web.reading import fields, read_form, visitor

LONGEST_TOKEN = 500


async def look(request: Request) -> Response:
    """Show the sign-in page; a valid `code` in its address signs its person in, once."""
    if on_socket(request.scope):
        return RedirectResponse("/web/", 303)
    code = request.query_params.get("code", "")
    if code:
        service = service_of(request)
        sealed = unseal(service, "code", code)
        if sealed and request.app.state.used_codes.first_use(code, service.now()):
            if service.people.signing_in.knows_people:
                token = await service.people.signing_in.visiting(
                    sealed.person, signing_in.browser_of(request), host_of(request)
                )
                sealed = Sealed(sealed.person, token.id)
            return let_in(request, sealed, STAY, "/web/")
        wrong = "This link has been used, or is more than five minutes old."
        return page(request, "login.html", status=403, wrong=wrong, next="/web/", address="")
    return page(request, "login.html", wrong="", address="", next=next_of(request.query_params))


async def sign_in(request: Request) -> Response:
    """Exchange a token for a cookie, or mail a code to the address that was typed."""
    form = await fields(request)
    check_post(request, "", form.get("token", ""))
    if "address" in form:
        return await signing_in.ask(request, form)
    secret = form.get("secret", "").strip()[:LONGEST_TOKEN]
    service = service_of(request)
    token = await service.people.tokens.token_of(secret) if secret else None
    if token is None or token.scope or token.session or await service.people.tokens.holder(token) is None:
        if secret:
            service.throttle.spend("wrong_tokens_per_host", neighbours(host_of(request)), VALID_COUNTS)
        wrong = "This token is unknown, has expired, or has a limited scope."
        return page(request, "login.html", status=403, wrong=wrong, next=next_of(form), address="")
    stay = min(STAY, token.expires - service.now()) if token.expires else STAY
    sealed = Sealed(Person(token.person, token.operator), token.id)
    return let_in(request, sealed, stay, next_of(form))


async def sign_out(request: Request) -> Response:
    """Delete the cookie, and the token that was made for this browser only."""
    who, _ = await read_form(request)
    service = service_of(request)
    if who.token in {token.id for token in await service.people.tokens.tokens(who.person) if token.use == "browser"}:
        await service.people.signing_in.end_visit(who.person, who.token, host_of(request))
    response = RedirectResponse("/web/login", 303)
    delete_cookie(request, response)
    return response


async def code(request: Request) -> Response:
    """Return a single-use sign-in link for the owner of the Unix socket, for the command line."""
    if not on_socket(request.scope) or "origin" in request.headers or "sec-fetch-site" in request.headers:
        raise NotFound("There is no such page.", hint="Links to sign in are made by the socket's owner.")
    owner = (await visitor(request)).person
    return JSONResponse({"url": f"{base_of(request)}/web/login?code={issue_code(service_of(request), owner)}"})
