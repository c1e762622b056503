"""The page of caches: sizes, last use, the sessions that need an entry, and its removal."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from starlette.requests import Request
from starlette.responses import Response

from sublet.api.people import service_of
from sublet.booking.model.amounts import parse_duration
from sublet.data.model.caches import KeptEntry
from sublet.data.model.roads import describe_bytes
from sublet.kernel.errors import SubletError
from sublet.web.confirming import Affected, Confirmation, confirm_page, is_confirmed
from sublet.web.drawing import page
from sublet.web.entry import Visitor
from sublet.web.reading import read_form, visitor

PAGE = "/web/caches"
EFFECTS = ("It is fetched again when a session needs it. Data that a session needs now stays.",)


async def look(request: Request) -> Response:
    """Show all caches, to the owner of a personal service or to operators."""
    return await _draw(request, await visitor(request))


async def _draw(request: Request, who: Visitor, wrong: SubletError | None = None, done: str = "") -> Response:
    reports = await service_of(request).caches.list(who.person)
    status = wrong.status if wrong else 200
    return page(request, "caches.html", who, status, reports=reports, wrong=wrong, done=done)


async def remove(request: Request) -> Response:
    """Remove one entry, or all that no session has used for a while, after confirmation."""
    who, form = await read_form(request)
    caches, platform = service_of(request).caches, request.path_params["platform"]
    names = [form["name"]] if form.get("name") else []
    try:
        idle = timedelta(0) if names else parse_duration(form.get("unused") or "0s")
        if not is_confirmed(form):
            meant = await caches.remove(who.person, platform, names, idle, is_trial=True)
            if not meant:
                nothing = f"Nothing to remove from {platform}: all of it is needed or newer."
                return await _draw(request, who, done=nothing)
            return confirm_page(request, who, _ask(platform, meant), form)
        gone = await caches.remove(who.person, platform, names, idle)
    except SubletError as error:
        return await _draw(request, who, error)
    size = describe_bytes(sum(entry.size for entry in gone))
    return await _draw(request, who, done=f"{_count(len(gone))}, {size}, removed from {platform}.")


def _ask(platform: str, meant: Sequence[KeptEntry]) -> Confirmation:
    size = describe_bytes(sum(entry.size for entry in meant))
    title = f"Remove {_count(len(meant))} ({size}) from {platform}?"
    affected = tuple(Affected(entry.title, describe_bytes(entry.size)) for entry in meant)
    return Confirmation(title, EFFECTS, "Remove", PAGE, affected)


def _count(number: int) -> str:
    return "1 entry" if number == 1 else f"{number} entries"
