"""The pages to sign in to a gateway: an address, the mailed code, and the second factor if there is one."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from sublet.api.people import host_of, service_of
from sublet.kernel.errors import SubletError, TooMany
from sublet.people.tokens import Token
from sublet.web.drawing import page
from sublet.web.entry import Sealed, check_post, is_known, let_in, next_of, remember
from sublet.web.reading import fields

LONGEST = 500  # characters of input
BROWSERS = {"Firefox/": "Firefox", "Edg/": "Edge", "OPR/": "Opera", "Chrome/": "Chrome", "Safari/": "Safari"}
MACHINES = {"Android": "Android", "iPhone": "iPhone", "iPad": "iPad", "Windows": "Windows", "Mac OS": "Mac"}
MACHINES |= {"CrOS": "ChromeOS", "Linux": "Linux"}


async def ask(request: Request, form: dict[str, str]) -> Response:
    """Mail a code to the address that was typed, and ask for it."""
    address = form.get("address", "")[:LONGEST]
    try:
        await service_of(request).people.signing_in.ask_code(
            address, host_of(request), known=is_known(request, address)
        )
    except SubletError as error:
        return _draw_again(request, "login.html", form, error, address=address)
    return page(request, "code.html", wrong="", address=address, next=next_of(form))


async def code(request: Request) -> Response:
    """Exchange a code for a cookie."""
    form = await fields(request)
    check_post(request, "", form.get("token", ""))
    address = form.get("address", "")[:LONGEST]
    try:
        made = await service_of(request).people.signing_in.sign_in_by_code(
            address, form.get("code", "")[:LONGEST], host_of(request), note=browser_of(request), use="browser"
        )
    except SubletError as error:
        return _draw_again(request, "code.html", form, error, address=address)
    response = await let_browser_in(request, *made, next_of(form))
    remember(request, response, address)
    return response


async def second(request: Request) -> Response:
    """Exchange a code of the second factor for a cookie, after the first code."""
    form = await fields(request)
    check_post(request, "", form.get("token", ""))
    half = form.get("half", "")[:LONGEST]
    try:
        made = await service_of(request).people.factors.second(half, form.get("code", "")[:LONGEST], host_of(request))
    except SubletError as error:
        return _draw_again(request, "second.html", form, error, half=half)
    return await let_browser_in(request, *made, next_of(form))


async def let_browser_in(request: Request, token: Token, secret: str, to: str) -> Response:
    """Set a browser's cookie for its token; for a half token, ask for the second factor first."""
    if token.use != "browser":
        return page(request, "second.html", wrong="", half=secret, next=to)
    service = service_of(request)
    person = await service.people.signing_in.visit(token.id)
    if person is None or token.expires is None:
        return page(request, "login.html", status=403, wrong="You may not come in.", next=to, address="")
    return let_in(request, Sealed(person, token.id), token.expires - service.now(), to)


def browser_of(request: Request) -> str:
    """Describe the browser for listings: `Firefox on Linux`."""
    agent = request.headers.get("user-agent", "")
    browser = next((name for sign, name in BROWSERS.items() if sign in agent), "A browser")
    machine = next((name for sign, name in MACHINES.items() if sign in agent), "")
    return f"{browser} on {machine}" if machine else browser


def _draw_again(request: Request, template: str, form: dict[str, str], error: SubletError, **values: Any) -> Response:
    """Show the same page again, with the error."""
    wrong = error.sentences
    answer = page(request, template, status=error.status, wrong=wrong, next=next_of(form), **values)
    if isinstance(error, TooMany):
        answer.headers["retry-after"] = str(error.values.get("seconds", 60))
    return answer
