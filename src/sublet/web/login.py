"""Sign in with a token or a link, and sign out."""

from __future__ import annotations

from datetime import timedelta

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from sublet.api.people import base_of, on_socket, service_of
from sublet.errors import NotFound
from sublet.service.desk import Person
from sublet.web.drawing import page
from sublet.web.entry import COOKIE, STAY, Sealed, check_post, issue_code, seal, unseal
from sublet.web.reading import fields, posted, visitor

LONGEST_TOKEN = 500


async def look(request: Request) -> Response:
    """The page to sign in on; with a good `code` in its address it lets its person in, once."""
    if on_socket(request.scope):
        return RedirectResponse("/web/", 303)
    code = request.query_params.get("code", "")
    if code:
        service = service_of(request)
        sealed = unseal(service, "code", code)
        if sealed and request.app.state.used_codes.first_use(code, service.now()):
            return _let_in(request, sealed, STAY, "/web/")
        wrong = "This link has been used, or is more than five minutes old."
        return page(request, "login.html", status=403, wrong=wrong, next="/web/")
    return page(request, "login.html", wrong="", next=_next(request.query_params.get("next", "")))


async def sign_in(request: Request) -> Response:
    """A token for a cookie."""
    form = await fields(request)
    check_post(request, "", form.get("token", ""))
    secret = form.get("secret", "").strip()[:LONGEST_TOKEN]
    service = service_of(request)
    token = await service.token_of(secret) if secret else None
    if token is None or token.scope or token.session:
        wrong = "This token is not known here, has expired, or is for less than all that its person may."
        return page(request, "login.html", status=403, wrong=wrong, next=_next(form.get("next", "")))
    stay = min(STAY, token.expires - service.now()) if token.expires else STAY
    sealed = Sealed(Person(token.person, token.operator), token.id)
    return _let_in(request, sealed, stay, _next(form.get("next", "")))


async def sign_out(request: Request) -> Response:
    """Forget the cookie."""
    await posted(request)
    response = RedirectResponse("/web/login", 303)
    response.delete_cookie(COOKIE, path="/web")
    return response


async def code(request: Request) -> Response:
    """For the command line, by the Unix socket: an address that signs the socket's owner in, once."""
    if not on_socket(request.scope) or "origin" in request.headers or "sec-fetch-site" in request.headers:
        raise NotFound("There is no such page.", hint="Links to sign in are made by the socket's owner.")
    owner = (await visitor(request)).person
    return JSONResponse({"url": f"{base_of(request)}/web/login?code={issue_code(service_of(request), owner)}"})


def _let_in(request: Request, sealed: Sealed, stay: timedelta, to: str) -> Response:
    response = RedirectResponse(to, 303)
    response.set_cookie(
        COOKIE,
        seal(service_of(request), "cookie", sealed, stay),
        max_age=int(stay.total_seconds()),
        path="/web",
        secure=base_of(request).startswith("https:"),
        httponly=True,
        samesite="strict",
    )
    return response


def _next(path: str) -> str:
    """Where to go after signing in: a page of ours, whatever the address says."""
    ours = path.startswith("/web/") and "\\" not in path and path.isprintable()
    return path if ours else "/web/"
