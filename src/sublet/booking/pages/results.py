"""Downloads of a session's files."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from sublet.api.people import service_of
from sublet.booking.api.results import archive_response, file_response
from sublet.web.reading import visitor


async def result(request: Request) -> Response:
    """Download one file."""
    who = await visitor(request)
    return await file_response(service_of(request), who.person, request.path_params["id"], request.path_params["path"])


async def archive(request: Request) -> Response:
    """Download all files as one .tar.gz."""
    who = await visitor(request)
    return await archive_response(service_of(request), who.person, request.path_params["id"])
