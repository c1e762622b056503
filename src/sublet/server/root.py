"""The root of the service: it redirects browsers to the pages; the Execution Broker's addresses are below it."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from sublet.kernel.errors import NotFound


async def root(request: Request) -> Response:
    """Redirect to the pages if the client accepts HTML, or else answer 404."""
    if "text/html" in request.headers.get("accept", "").lower():
        return RedirectResponse("/web/", 303, {"vary": "accept"})
    raise NotFound(
        "There is no document at the root.",
        hint="Send requests to /requests (IVOA Execution Broker) or /v1; /openapi.json lists all. Pages are at /web/.",
    )


ROUTE = Route("/", root, methods=["GET"], include_in_schema=False)
