"""Sign-in by an OpenID Connect provider: the browser is redirected there and back."""

from __future__ import annotations

import re

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sublet.api.people import base_of, host_of, service_of
from sublet.kernel.errors import BadRequest
from sublet.people.oidc import LASTS
from sublet.people.pages.signing_in import browser_of, let_browser_in
from sublet.web.drawing import page
from sublet.web.entry import next_of
from sublet.web.reading import read_form

KEPT = "sublet_oidc"  # the cookie by which a browser proves that it began a sign-in
PATH = "/web/sign-in/oidc"
CHALLENGE = re.compile("[0-9a-f]{64}")


async def begin(request: Request) -> Response:
    """Redirect a browser to a provider; a waiting terminal's challenge is passed along."""
    name = request.path_params["name"]
    challenge = request.query_params.get("challenge", "")
    if challenge and not CHALLENGE.fullmatch(challenge):
        raise BadRequest(detail="the challenge is none", hint="Type `sublet login URL --oidc NAME` again.")
    to = next_of(request.query_params)
    address, kept = await service_of(request).people.oidc.begin_oidc(
        name, _back(request, name), next=to, challenge=challenge
    )
    response = RedirectResponse(address, 303)
    _keep(request, response, kept)
    return response


async def link(request: Request) -> Response:
    """Link an identity to the visitor's own; only a form with an anti-forgery token can begin this."""
    who, _ = await read_form(request)
    name = request.path_params["name"]
    service = service_of(request)
    address, kept = await service.people.oidc.begin_oidc(
        name, _back(request, name), next="/web/account", link=who.person.name
    )
    response = page(request, "leaving.html", who, address=address, title=service.people.oidc.providers[name])
    _keep(request, response, kept)
    return response


async def back(request: Request) -> Response:
    """Sign in whoever comes back, or show the code to type in a waiting terminal."""
    name = request.path_params["name"]
    kept = request.cookies.get(KEPT, "")
    begun, token, secret = await service_of(request).people.oidc.end_oidc(
        kept, name, _back(request, name), request.query_params, host_of(request), browser_of(request)
    )
    if begun.challenge:
        response: Response = page(request, "terminal.html", code=secret)
    elif token is None:
        response = RedirectResponse(begun.next, 303)
    else:
        response = await let_browser_in(request, token, secret, begun.next)
    response.delete_cookie(KEPT, path=PATH)
    return response


def _back(request: Request, name: str) -> str:
    return f"{base_of(request)}{PATH}/{name}/back"


def _keep(request: Request, response: Response, kept: str) -> None:
    """Set the cookie for this path only; it must be sent when the provider redirects back, so it can't be strict."""
    response.set_cookie(
        KEPT,
        kept,
        max_age=int(LASTS.total_seconds()),
        path=PATH,
        secure=base_of(request).startswith("https:"),
        httponly=True,
        samesite="lax",
    )
