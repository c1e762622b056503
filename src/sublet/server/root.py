"""The root of the service: a browser is led to the pages; programs find the Execution Broker's addresses below it."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from sublet.kernel.errors import NotFound


async def root(request: Request) -> Response:
    """The pages, for whoever asks for HTML."""
    if "text/html" in request.headers.get("accept", "").lower():
        return RedirectResponse("/web/", 303, {"vary": "accept"})
    raise NotFound(
        "There is no document at the root.",
        hint="Send requests to /requests (IVOA Execution Broker) or /v1; /openapi.json lists all. Pages are at /web/.",
    )


ROUTE = Route("/", root, methods=["GET"], include_in_schema=False)
