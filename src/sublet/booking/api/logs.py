"""A session's output, by offset or as it is printed."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response, StreamingResponse

from sublet.api import described
from sublet.api.people import person_of, service_of
from sublet.api.streams import while_welcome
from sublet.booking.api.sessions import Id
from sublet.booking.model.amounts import parse_memory

router = APIRouter(prefix="/v1/sessions", tags=["Logs and results"])

TEXT = "text/plain; charset=utf-8"
PLAIN = {"x-content-type-options": "nosniff", "cache-control": "no-store"}
PIECE = 256 * 1024
FURTHEST = 2**53  # the largest whole number that every JSON reader keeps


@router.get("/{id}/logs", response_class=Response, **described.LOGS)
async def logs(
    request: Request,
    id: Id,
    stream: Literal["stdout", "stderr"] = "stdout",
    offset: Annotated[int, Query(ge=0, le=FURTHEST, description="In bytes.")] = 0,
    limit: Annotated[int, Query(ge=1, le=4 * PIECE, description="In bytes.")] = PIECE,
    tail: Annotated[
        str | None,
        Query(description="The end of it, from the beginning of a line on: `64KiB`, 1 MiB at most."),
    ] = None,
    follow: Annotated[bool, Query(description="Follow until the session ends.")] = False,
) -> Response:
    """Part of what it printed; the headers say where the next part begins and whether there will be more."""
    person = await person_of(request)
    service = service_of(request)
    size = _bytes(tail) if tail is not None else None
    if follow:
        session = await service.contents.session_to_read(id, person, "output")
        if size is not None:
            offset = (await service.output.output_tail(session.id, person, stream, size)).start
        coming = service.output.follow(session.id, person, stream, offset)
        return StreamingResponse(while_welcome(request, person, coming), media_type=TEXT, headers=PLAIN)
    if size is not None:
        chunk = await service.output.output_tail(id, person, stream, size)
    else:
        chunk = await service.output.output(id, person, stream, offset, limit)
    headers = {
        "sublet-offset": str(chunk.start),
        "sublet-next-offset": str(chunk.next),
        "sublet-ended": "true" if chunk.ended else "false",
    }
    return Response(chunk.data, headers=PLAIN | headers, media_type=TEXT)


def _bytes(text: str) -> int:
    """Parse a number of bytes, with or without a unit; at most 1 MiB."""
    size = int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else parse_memory(text)
    return min(size, 4 * PIECE)
