"""Events: as pages of JSON, or live as Server-Sent Events."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic_core import to_json
from starlette.responses import Response, StreamingResponse

from sublet.api import described
from sublet.api.bodies import json_response
from sublet.api.people import person_of, service_of
from sublet.api.streams import while_welcome
from sublet.booking.model.events import Event
from sublet.booking.views.convert import event_view
from sublet.booking.views.events import EventPage
from sublet.kernel.streams import closing
from sublet.kernel.views import plain

router = APIRouter(prefix="/v1/events", tags=["Events"])

STREAM = "text/event-stream"
LAST = 2**53


@router.get("", response_model=EventPage, **described.EVENTS)
async def events(
    request: Request,
    session: Annotated[str | None, Query(description="Only of this session.")] = None,
    after: Annotated[int, Query(ge=0, le=LAST, description="Only those with a higher id.")] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
    """Events of your sessions, oldest first; with `Accept: text/event-stream` new ones follow as they happen.

    A stream that broke off is taken up after the event that the header `Last-Event-ID` names.
    """
    person = await person_of(request)
    service = service_of(request)
    if STREAM not in request.headers.get("accept", ""):
        listed = await service.events.events(person, after=after, session=session, limit=limit)
        views = tuple(event_view(event) for event in listed)
        return json_response(EventPage(items=views, next=views[-1].id if len(views) == limit else None))
    of = (await service.sessions.get(session, person)).id if session else None
    coming = _lines(service.events.watch(person, after=_last(request) or after, session=of))
    headers = {"cache-control": "no-store"}
    return StreamingResponse(while_welcome(request, person, coming), media_type=STREAM, headers=headers)


def _last(request: Request) -> int:
    """Return the id of the last event that the client saw before its stream broke off, or 0."""
    header = request.headers.get("last-event-id", "")
    return min(int(header), LAST) if header.isascii() and header.isdigit() else 0


async def _lines(events: AsyncIterator[Event | None]) -> AsyncIterator[bytes]:
    yield b": sublet\n\n"  # so that the headers go out at once
    async with closing(events) as events:
        async for event in events:
            if event is None:
                yield b": still here\n\n"
            else:
                data = to_json(plain(event_view(event)))
                yield b"id: %d\nevent: %s\ndata: %s\n\n" % (event.id, event.kind.encode(), data)
