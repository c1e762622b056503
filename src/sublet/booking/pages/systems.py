"""The page of a system: the state of its login, signing in and out, and its record of predicted starts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from sublet.api.people import service_of
from sublet.api.private import check_private
from sublet.kernel.errors import SubletError
from sublet.people.model.person import Person
from sublet.service import Service
from sublet.web.drawing import page
from sublet.web.reading import change_of, read_form, visitor

LONGEST = 4096  # characters of an answer


async def look(request: Request) -> Response:
    """Show the page of a system."""
    return await _page(request)


async def _page(request: Request, wrong: SubletError | None = None) -> Response:
    who = await visitor(request)
    service = service_of(request)
    name = request.path_params["name"]
    login = await service.logins.login_state(name, who.person)
    state = await service.usable_platforms.platform(name, who.person)
    record = await service.probing.record(name, who.person)
    status = wrong.status if wrong else 200
    return page(request, "system.html", who, status, login=login, state=state, record=record, wrong=wrong)


async def state(request: Request) -> Response:
    """Return a text that changes when the page has something new to show, for its script."""
    who = await visitor(request)
    return PlainTextResponse(
        (await service_of(request).logins.login_state(request.path_params["name"], who.person)).version
    )


async def change(request: Request) -> Response:
    """Sign in, answer a question, give up, or sign out."""
    act = change_of(request, CHANGES)
    check_private(request)
    who, form = await read_form(request)
    name = request.path_params["name"]
    try:
        await act(service_of(request), name, who.person, form)
    except SubletError as error:
        return await _page(request, error)
    return RedirectResponse(f"/web/systems/{name}", 303)


async def _login(service: Service, name: str, person: Person, form: dict[str, str]) -> None:
    await service.logins.sign_in(name, person)


async def _answer(service: Service, name: str, person: Person, form: dict[str, str]) -> None:
    await service.logins.answer(name, person, form.get("question", ""), form.get("answer", "")[:LONGEST])


async def _stop(service: Service, name: str, person: Person, form: dict[str, str]) -> None:
    await service.logins.give_up(name, person)


async def _logout(service: Service, name: str, person: Person, form: dict[str, str]) -> None:
    await service.logins.sign_out(name, person)


CHANGES: dict[str, Callable[[Service, str, Person, dict[str, str]], Awaitable[None]]] = {
    "login": _login,
    "answer": _answer,
    "stop": _stop,
    "logout": _logout,
}
