"""The first page: active sessions, and how busy the platforms are."""

from __future__ import annotations

from datetime import timedelta

from starlette.requests import Request
from starlette.responses import Response

from sublet.access.pledges import PledgeState
from sublet.api.people import service_of
from sublet.booking.model.phases import Phase
from sublet.booking.pages.calendar import Picture, draw
from sublet.booking.platforms.platforms import PlatformState
from sublet.kernel.errors import SubletError
from sublet.people.model.person import Person
from sublet.service import Service
from sublet.web.drawing import clock_of, page
from sublet.web.reading import visitor
from sublet.web.words import Clock

RECENT = (Phase.COMPLETED, Phase.FAILED, Phase.CANCELLED)
MOST_ACTIVE, MOST_RECENT = 12, 5


async def overview(request: Request) -> Response:
    """Show what runs now, what has ended, and the platforms."""
    who = await visitor(request)
    service = service_of(request)
    clock = clock_of(request)
    active = await service.sessions.page(who.person, active=True, limit=MOST_ACTIVE)
    recent = await service.sessions.page(who.person, phases=RECENT, limit=MOST_RECENT)
    states = await service.usable_platforms.states(who.person)
    platforms = [(state, await _day_ahead(service, who.person, state, clock)) for state in states if not state.ask]
    return page(
        request,
        "overview.html",
        who,
        active=active.items,
        more=active.next is not None,
        recent=recent.items,
        platforms=platforms,
        pledges=await _pledges(service, who.person),
        unopened=[state.name for state in states if state.ask],
        logins=service.logins.logins() if who.person.operator else set(),
        drawn=[(state.name, picture) for state, picture in platforms if picture],
    )


async def _pledges(service: Service, person: Person) -> dict[str, list[PledgeState]]:
    """Return the pledges of each platform that has some."""
    by_platform: dict[str, list[PledgeState]] = {}
    for pledge in await service.access.pledges.pledges(person):
        by_platform.setdefault(pledge.platform, []).append(pledge)
    return by_platform


async def _day_ahead(service: Service, person: Person, state: PlatformState, clock: Clock) -> Picture | None:
    """Draw a platform's calendar for a day, from an hour before the last full hour on; None if we don't keep it."""
    if state.survey is None or state.terms != "booked":
        return None
    start = clock.now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=1)
    end = start + timedelta(hours=24)
    try:
        busy = await service.usable_platforms.busy(state.name, person, start, end)
    except SubletError:
        return None
    takes = [take for steps in busy.takes.values() for take in steps]
    return draw(busy.nodes, takes, (), start, end, now=clock.now, zone=clock.zone)
