"""Calls endpoints that take only a request and parts of its path directly, without FastAPI's parameter handling."""

from __future__ import annotations

import inspect
from typing import Any

from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, request_response


def call_directly(route: BaseRoute) -> BaseRoute:
    """Make a route call its endpoint directly, if FastAPI needn't read, check or convert any parameter for it.

    FastAPI would resolve parameters and dependencies, and close them again, for each request.
    """
    if type(route) is APIRoute and _reads_for_itself(route):  # subclasses answer errors in their own way
        endpoint, name = route.endpoint, route.dependant.request_param_name

        async def handle(request: Request) -> Response:
            answer: Response = await endpoint(**{str(name): request}, **request.path_params)
            return answer

        route.app = request_response(handle)
    return route


def _reads_for_itself(route: APIRoute) -> bool:
    """Whether an endpoint takes only the request and text from its path, and returns a complete response."""
    needed = route.dependant
    others = (needed.query_params, needed.header_params, needed.cookie_params, needed.body_params, needed.dependencies)
    given = (needed.response_param_name, needed.background_tasks_param_name, needed.security_scopes_param_name)
    return (
        needed.request_param_name is not None
        and needed.http_connection_param_name is None
        and not any((*others, *given))
        and all(_is_text(field) for field in needed.path_params)
        and inspect.iscoroutinefunction(route.endpoint)
        and inspect.signature(route.endpoint, eval_str=True).return_annotation is Response
    )


def _is_text(field: Any) -> bool:
    """Whether a path parameter is passed on unchanged."""
    info = field.field_info
    return info.annotation is str and not info.metadata and field.alias == field.name
