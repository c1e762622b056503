"""Calls endpoints whose arguments are simple to read directly, without FastAPI's parameter handling."""

from __future__ import annotations

import inspect
from copy import copy

from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, request_response
from starlette.types import ASGIApp

from sublet.server.arguments import find_arguments


def call_directly(route: BaseRoute) -> BaseRoute:
    """Return a route that calls its endpoint directly, if that answers completely and its arguments can be read so.

    FastAPI would resolve parameters and dependencies, and close them again, for each request. It still answers the
    requests that it has to check, as those with errors.
    """
    if type(route) is not APIRoute or not _returns_response(route):  # subclasses answer errors in their own way
        return route
    arguments = find_arguments(route.dependant)
    if arguments is None:
        return route
    endpoint, by_fastapi = route.endpoint, route.app

    async def handle(request: Request) -> Response | ASGIApp:
        values = arguments.read(request)
        if values is None:
            return by_fastapi
        answer: Response = await endpoint(**await arguments.complete(values))
        return answer

    direct = copy(route)
    direct.app = request_response(handle)  # type: ignore[arg-type]  # a response is an application, and so is FastAPI's
    return direct


def _returns_response(route: APIRoute) -> bool:
    """Whether an endpoint is asynchronous and returns a complete response."""
    signature = inspect.signature(route.endpoint, eval_str=True)
    return inspect.iscoroutinefunction(route.endpoint) and signature.return_annotation is Response
