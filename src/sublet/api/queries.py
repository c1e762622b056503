"""Refuses unknown query parameters: if a filter were ignored, its answer would be misleading."""

from __future__ import annotations

from difflib import get_close_matches

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from sublet.kernel.errors import BadRequest

OWN = "/v1/"  # our own endpoints; old clients and IVOA's may send further parameters


def check_query(request: Request) -> None:
    """Raise BadRequest if the query has a parameter that the endpoint doesn't know."""
    route = request.scope.get("route")
    if not isinstance(route, APIRoute) or not route.path.startswith(OWN):
        return
    known = _names(route.dependant) if request.query_params else set()
    for name in request.query_params:
        if name not in known:
            raise BadRequest(detail=f"`{name[:60]}` is no parameter of this address.", hint=_advice(name, known))


def _names(dependant: Dependant) -> set[str]:
    """Return the query parameters of an endpoint and of all its dependencies."""
    own = {field.alias for field in dependant.query_params}
    return own.union(*(_names(dependency) for dependency in dependant.dependencies))


def _advice(name: str, known: set[str]) -> str:
    if not known:
        return "It takes none."
    close = get_close_matches(name, known, 1)
    return f"Did you mean `{close[0]}`?" if close else f"It takes: {', '.join(sorted(known))}."
