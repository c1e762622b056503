"""A parameter that an address does not know is refused: a filter that is ignored looks like an answer."""

from __future__ import annotations

from difflib import get_close_matches

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from sublet.kernel.errors import BadRequest

OWN = "/v1/"  # the addresses that are ours; old clients' and IVOA's take what those clients send


def check_query(request: Request) -> None:
    """Refuse what stands in the query of a request and its address has no use for."""
    route = request.scope.get("route")
    if not isinstance(route, APIRoute) or not route.path.startswith(OWN):
        return
    known = _names(route.dependant) if request.query_params else set()
    for name in request.query_params:
        if name not in known:
            raise BadRequest(detail=f"`{name[:60]}` is no parameter of this address.", hint=_advice(name, known))


def _names(dependant: Dependant) -> set[str]:
    """What an endpoint, and all that it depends on, reads of the query."""
    own = {field.alias for field in dependant.query_params}
    return own.union(*(_names(dependency) for dependency in dependant.dependencies))


def _advice(name: str, known: set[str]) -> str:
    if not known:
        return "It takes none."
    close = get_close_matches(name, known, 1)
    return f"Did you mean `{close[0]}`?" if close else f"It takes: {', '.join(sorted(known))}."
