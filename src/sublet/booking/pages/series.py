"""The visitor's recurring bookings: their times, accepting and cancelling them, and seats of group bookings."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sublet.api.people import service_of
from sublet.booking.model.series import SeriesState
from sublet.people.model.person import Person
from sublet.service import Service
from sublet.web.confirming import Confirmation, confirm_page, is_confirmed
from sublet.web.drawing import page
from sublet.web.reading import change_of, read_form, visitor

HERE = "/web/bookings"


async def look(request: Request) -> Response:
    """List the visitor's bookings, newest first, and the group bookings with seats for them."""
    who = await visitor(request)
    listed = await service_of(request).bookings.list_own(who.person)
    open_ones = {series.id for series in listed if series.state is SeriesState.OFFERED}
    shared = await service_of(request).group_seats.list_open(who.person)
    return page(request, "bookings.html", who, bookings=listed, open=open_ones, shared=shared, me=who.person.name)


async def change(request: Request) -> Response:
    """Accept or cancel a booking, take a seat of another's, or release free seats."""
    perform = change_of(request, CHANGES)
    who, form = await read_form(request)
    service, id = service_of(request), request.path_params["id"]
    if request.path_params["change"] == "cancel" and not is_confirmed(form):
        series = await service.bookings.get(id, who.person)
        effects = ("All of its sessions that are still to come are cancelled.",)
        return confirm_page(request, who, Confirmation(f"Cancel {series.name}?", effects, "Cancel it", HERE), form)
    await perform(service, id, who.person)
    return RedirectResponse(HERE, 303)


async def _accept(service: Service, id: str, person: Person) -> None:
    await service.bookings.accept(id, person)


async def _cancel(service: Service, id: str, person: Person) -> None:
    await service.bookings.cancel(id, person)


async def _claim(service: Service, id: str, person: Person) -> None:
    await service.group_seats.claim(id, person)


async def _release(service: Service, id: str, person: Person) -> None:
    await service.group_seats.release(id, person)


CHANGES: dict[str, Callable[[Service, str, Person], Awaitable[None]]] = {
    "accept": _accept,
    "cancel": _cancel,
    "claim": _claim,
    "release": _release,
}
