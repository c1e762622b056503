"""Pages of platforms: the list, and for operators one platform with its sessions, its pledges and its drain."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sublet.api.people import host_of, service_of
from sublet.booking.model.amounts import parse_duration
from sublet.booking.pages.platform_pledges import (
    LABELS,
    ask_removal,
    describe_pledge,
    fill_form,
    put_pledge,
    remove_pledge,
)
from sublet.booking.platforms.drains import USUAL_GRACE
from sublet.kernel.errors import BadAmount, OperatorsOnly, SubletError
from sublet.people.model.person import Person
from sublet.service import Service
from sublet.web.confirming import Confirmation, confirm_page, describe_affected_sessions, is_confirmed
from sublet.web.drawing import clock_of, page
from sublet.web.entry import Visitor
from sublet.web.reading import change_of, read_form, visitor
from sublet.web.words import Clock, count_text

MOST = 100  # sessions that are listed


async def listing(request: Request) -> Response:
    """List all platforms that the visitor may see, with their state."""
    who = await visitor(request)
    service = service_of(request)
    logins = service.logins.logins() if who.person.operator else set()
    return page(
        request, "platforms.html", who, platforms=await service.usable_platforms.states(who.person), logins=logins
    )


async def look(request: Request) -> Response:
    """Show the page of a platform."""
    return await _page(request, await visitor(request))


async def _page(
    request: Request, who: Visitor, wrong: SubletError | None = None, form: dict[str, str] | None = None
) -> Response:
    if not who.person.operator:
        raise OperatorsOnly
    service, name = service_of(request), request.path_params["name"]
    state = await service.usable_platforms.platform(name, who.person)
    pledged = bool(service.platforms.pledges_of(name))
    filled = fill_form(service, name, request.query_params.get("pledge", ""))
    listed = await service.sessions.page(who.person, of="everyone", platform=name, active=True, limit=MOST)
    return page(
        request,
        "platform.html",
        who,
        wrong.status if wrong else 200,
        state=state,
        sessions=listed.items,
        more=listed.next is not None,
        pledges=await service.access.pledges.parts_of(name, who.person) if pledged else [],
        pledged=pledged,
        labels=LABELS,
        describe_pledge=describe_pledge,
        form=form or filled,
        grace=USUAL_GRACE,
        wrong=wrong,
    )


async def change(request: Request) -> Response:
    """Drain or undrain a platform; add, change or remove a pledge."""
    act = change_of(request, CHANGES)
    who, form = await read_form(request)
    if not who.person.operator:
        raise OperatorsOnly
    name = request.path_params["name"]
    try:
        if act is _drain and form.get("end") == "now" and not is_confirmed(form):
            return confirm_page(request, who, await _question(service_of(request), who.person, name), form)
        if act is remove_pledge and not is_confirmed(form):
            return confirm_page(request, who, ask_removal(name, form.get("pledge", "")), form)
        await act(service_of(request), who.person, name, form, clock_of(request), host_of(request))
    except SubletError as error:
        return await _page(request, who, error, form)
    return RedirectResponse(f"/web/platforms/{quote(name, safe='')}", 303)


async def _question(service: Service, person: Person, name: str) -> Confirmation:
    """Return the question before a drain that cancels running sessions."""
    listed = await service.sessions.page(person, of="everyone", platform=name, active=True, limit=MOST)
    runs = [session for session in listed.items if session.job]
    effects = (
        f"{count_text(len(runs), 'session')} there {'is' if len(runs) == 1 else 'are'} cancelled after the grace.",
    )
    back = f"/web/platforms/{quote(name, safe='')}"
    return Confirmation(
        f"Drain {name} and cancel what runs?", effects, f"Drain {name}", back, describe_affected_sessions(runs)
    )


async def _drain(service: Service, person: Person, name: str, form: dict[str, str], clock: Clock, host: str) -> None:
    grace = None
    if form.get("end") == "now":
        grace = parse_duration(form["grace"]) if form.get("grace", "").strip() else USUAL_GRACE
    until = _until(form.get("until", "").strip(), clock)
    await service.drains.drain(person, name, until=until, reason=form.get("reason", ""), grace=grace, host=host)


async def _undrain(service: Service, person: Person, name: str, form: dict[str, str], clock: Clock, host: str) -> None:
    await service.drains.undrain(person, name, host)


CHANGES = {"drain": _drain, "undrain": _undrain, "pledge": put_pledge, "unpledge": remove_pledge}


def _until(text: str, clock: Clock) -> datetime | None:
    """Parse a time of the form, in the visitor's own time zone."""
    if not text:
        return None
    try:
        return datetime.fromisoformat(text).replace(tzinfo=clock.zone)
    except ValueError:
        raise BadAmount(text=text[:40], what="a day and a time", example="2026-12-01T18:00") from None
