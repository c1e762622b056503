"""Web pages of annexes: the list, one annex with its leases and nodes, and changes that need no terminal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sublet.annexes.model.lease_state import LeaseWord, NodeWord
from sublet.annexes.pages.lease_questions import ask_about_lease
from sublet.api.people import service_of
from sublet.kernel.errors import SubletError
from sublet.people.model.person import Person
from sublet.service import Service
from sublet.web.confirming import confirm_page, is_confirmed
from sublet.web.drawing import page
from sublet.web.reading import change_of, read_form, visitor

TONES: dict[LeaseWord | NodeWord, str] = {
    "asked": "open",
    "queued": "open",
    "starting": "live",
    "up": "good",
    "dead": "bad",
    "ending": "live",
    "ended": "idle",
}


async def listing(request: Request) -> Response:
    """Show the visitor's annexes."""
    who = await visitor(request)
    states = await service_of(request).annexes.status.annex_states(who.person)
    return page(request, "annexes.html", who, annexes=states, lease_tones=TONES)


async def look(request: Request) -> Response:
    """Show one annex."""
    return await _page(request)


async def _page(request: Request, wrong: SubletError | None = None) -> Response:
    who = await visitor(request)
    service, name = service_of(request), request.path_params["name"]
    state = await service.annexes.status.annex_state(name, who.person)
    past, events = await service.annexes.status.annex_history(name, who.person)
    ended = [lease for lease in past.leases if lease.lease.ended]
    status = wrong.status if wrong else 200
    return page(
        request,
        "annex.html",
        who,
        status,
        state=state,
        ended=ended[::-1][:MOST],
        events=events[::-1][:MOST],
        wrong=wrong,
        lease_tones=TONES,
    )


async def change(request: Request) -> Response:
    """Open or close an annex, cancel a queued lease, or end one or all leases; ask for confirmation before ending."""
    act = change_of(request, CHANGES)
    who, form = await read_form(request)
    name, word = request.path_params["name"], request.path_params["change"]
    try:
        if word in ENDING and not is_confirmed(form):
            queued = word == "cancel"
            question = await ask_about_lease(service_of(request), _lease(name, form), who.person, queued=queued)
            return confirm_page(request, who, question, form)
        await act(service_of(request), name, who.person, form)
    except SubletError as error:
        return await _page(request, error)
    return RedirectResponse(f"/web/annexes/{name}", 303)


def _lease(name: str, form: dict[str, str]) -> str:
    """Return the name of the lease in the form, or else of the whole annex."""
    number = form.get("lease", "")
    return f"{name}#{number}" if number else name


async def _open(service: Service, name: str, person: Person, form: dict[str, str]) -> None:
    await service.annexes.sharing.open_annex(name, person, wide=True)


async def _close(service: Service, name: str, person: Person, form: dict[str, str]) -> None:
    await service.annexes.sharing.open_annex(name, person, wide=False)


async def _cancel(service: Service, name: str, person: Person, form: dict[str, str]) -> None:
    await service.annexes.leases.cancel_lease(_lease(name, form), person)


async def _shutdown(service: Service, name: str, person: Person, form: dict[str, str]) -> None:
    await service.annexes.leases.shutdown(_lease(name, form), person)


MOST = 20  # ended leases, and events, that are shown
ENDING = ("cancel", "shutdown")  # need a confirmation
CHANGES: dict[str, Callable[[Service, str, Person, dict[str, str]], Awaitable[None]]] = {
    "open": _open,
    "close": _close,
    "cancel": _cancel,
    "shutdown": _shutdown,
}
