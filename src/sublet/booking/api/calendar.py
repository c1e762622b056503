"""How busy a platform is, for drawing its calendar."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import AwareDatetime, BeforeValidator
from starlette.responses import Response

from sublet.api import described
from sublet.api.bodies import json_response
from sublet.api.people import person_of, service_of
from sublet.booking.views.convert import calendar_view
from sublet.booking.views.platforms import CalendarView
from sublet.kernel.errors import BadRequest, NotFound

router = APIRouter(prefix="/v1/calendar", tags=["Platforms"])


def _read_instant(value: object) -> datetime:
    """Parse an ISO 8601 instant; a bare number is not taken for seconds since 1970."""
    return datetime.fromisoformat(str(value))


Instant = Annotated[AwareDatetime, BeforeValidator(_read_instant)]
WEEK = timedelta(days=7)
LONGEST = timedelta(days=400)


@router.get("", response_model=CalendarView, responses=described.problems(400, 401, 403, 404, 503))
async def calendar(
    request: Request,
    platform: Annotated[
        str | None, Query(description="The platform's name; the first that you may use if not said.")
    ] = None,
    start: Annotated[Instant | None, Query(description="With a zone; now if not said.")] = None,
    end: Annotated[Instant | None, Query(description="With a zone; a week after the start if not said.")] = None,
) -> Response:
    """What is booked and held on a platform that you may use, node by node, without names of people."""
    person, service = await person_of(request), service_of(request)
    begins = start or service.now()
    try:
        ends: datetime = end or begins + WEEK
        if not timedelta(0) < ends - begins <= LONGEST:
            raise BadRequest(detail="`end` must be after `start`, and at most 400 days after it.")
    except OverflowError:
        raise BadRequest(detail="`start` and `end` are too far away.") from None
    name = platform or next(iter(await service.usable_platforms.usable(person)), None)
    if name is None:
        raise NotFound("There is no platform that you may use.", hint="`sublet access` shows what you can ask for.")
    busy = await service.usable_platforms.busy(name, person, begins, ends)
    return json_response(calendar_view(name, begins, ends, busy.nodes, busy.pools, busy.takes))


def in_utc(time: datetime | None) -> datetime | None:
    """Convert an instant of a query to UTC; raise BadRequest if it is out of range."""
    try:
        return time and time.astimezone(UTC)
    except OverflowError:
        raise BadRequest(detail="`since` and `until` are too far away.") from None
