"""Calls about platforms and their calendars."""

from __future__ import annotations

from datetime import datetime

from sublet.booking.views.platforms import CalendarView, CheckList, PlatformList, PlatformView, SweptView
from sublet.client.call import Call, as_view, body_of, path_of
from sublet.kernel.views import instant_text

CHECKING = 7200.0  # seconds: each of its jobs may wait in a queue


def platforms(anew: bool = False) -> Call[PlatformList]:
    """List the platforms; with `anew`, as they are now instead of as last seen."""
    return Call("GET", path_of("platforms"), as_view(PlatformList), query={"anew": anew})


def platform(name: str) -> Call[PlatformView]:
    """Return one platform, with what it has."""
    return Call("GET", path_of("platforms", name), as_view(PlatformView))


def check(name: str) -> Call[CheckList]:
    """Run the conformance checks on the live platform."""
    return Call("POST", path_of("platforms", name, "check"), as_view(CheckList), patience=CHECKING)


def sweep(name: str, *, all: bool = False) -> Call[SweptView]:
    """Remove files on a platform that no session needs."""
    return Call("POST", path_of("platforms", name, "sweep"), as_view(SweptView), query={"all": all})


def drain(name: str, *, until: str = "", reason: str = "", now: bool = False, grace: str = "") -> Call[PlatformView]:
    """Let nothing new start on a platform; with `now`, sessions that still run after the grace are cancelled."""
    wish = {"reason": reason, "now": now, "grace": grace, **({"until": until} if until else {})}
    return Call("POST", path_of("platforms", name, "drain"), as_view(PlatformView), body=body_of(wish))


def undrain(name: str) -> Call[PlatformView]:
    """End the drain of a platform."""
    return Call("POST", path_of("platforms", name, "undrain"), as_view(PlatformView))


def calendar(platform: str, start: datetime, end: datetime) -> Call[CalendarView]:
    """Return what is booked and held on a platform between two instants."""
    query = {"platform": platform, "start": instant_text(start), "end": instant_text(end)}
    return Call("GET", path_of("calendar"), as_view(CalendarView), query=query)
