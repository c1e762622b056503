"""Platforms, and their calendars."""

from __future__ import annotations

from datetime import datetime

from sublet.booking.views.platforms import CalendarView, CheckList, PlatformList, PlatformView, SweptView
from sublet.client.call import Call, as_view, body_of, path_of
from sublet.kernel.views import instant_text


def platforms(anew: bool = False) -> Call[PlatformList]:
    """The platforms that the service asks; `anew`: as they are now, and not as they were seen lately."""
    return Call("GET", path_of("platforms"), as_view(PlatformList), query={"anew": anew})


def platform(name: str) -> Call[PlatformView]:
    """One of them, with what it has."""
    return Call("GET", path_of("platforms", name), as_view(PlatformView))


def check(name: str) -> Call[CheckList]:
    """Try the platform's contract on the live thing."""
    return Call("POST", path_of("platforms", name, "check"), as_view(CheckList))


def sweep(name: str, *, all: bool = False) -> Call[SweptView]:
    """Remove what is left there and no session needs."""
    return Call("POST", path_of("platforms", name, "sweep"), as_view(SweptView), query={"all": all})


def drain(name: str, *, until: str = "", reason: str = "", now: bool = False, grace: str = "") -> Call[PlatformView]:
    """Let nothing new begin there; with `now`, what still runs after the grace is cancelled."""
    wish = {"reason": reason, "now": now, "grace": grace, **({"until": until} if until else {})}
    return Call("POST", path_of("platforms", name, "drain"), as_view(PlatformView), body=body_of(wish))


def undrain(name: str) -> Call[PlatformView]:
    """Let it be used again."""
    return Call("POST", path_of("platforms", name, "undrain"), as_view(PlatformView))


def calendar(platform: str, start: datetime, end: datetime) -> Call[CalendarView]:
    """What is taken there, between two instants."""
    query = {"platform": platform, "start": instant_text(start), "end": instant_text(end)}
    return Call("GET", path_of("calendar"), as_view(CalendarView), query=query)
