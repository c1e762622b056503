"""Files that a web page sends by tus, like /v1/tus; the sender is known by cookie and anti-forgery token."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from sublet.data.api import tus
from sublet.people.model.person import Person
from sublet.web.entry import check_post
from sublet.web.reading import visitor

PATH = "/web/tus"
PROOF = "sublet-proof"  # the header with the anti-forgery token


async def create(request: Request) -> Response:
    """Create a file."""
    return await tus.create_file(request, await _find_sender(request), request.stream(), PATH)


async def look(request: Request) -> Response:
    """Return how much of a file has come."""
    return await tus.look_at_file(request, await _find_sender(request), request.path_params["id"])


async def append(request: Request) -> Response:
    """Append to a file."""
    return await tus.append_to_file(request, await _find_sender(request), request.stream(), request.path_params["id"])


async def remove(request: Request) -> Response:
    """Cancel a file's upload."""
    return await tus.remove_file(request, await _find_sender(request), request.path_params["id"])


async def _find_sender(request: Request) -> Person:
    who = await visitor(request)
    check_post(request, who.cookie, request.headers.get(PROOF, ""), PATH)
    return who.person
