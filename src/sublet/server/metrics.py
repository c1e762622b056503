"""A counter of HTTP requests by route and status."""

from __future__ import annotations

from functools import cache

from prometheus_client import Counter
from starlette.types import Message, Scope

from sublet.kernel.metrics import registry

requests = Counter(
    "sublet_http_requests", "HTTP requests, by route and answer.", ["route", "method", "code"], registry=registry
)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def count_answer(scope: Scope, head: Message) -> Message:
    """Count a response and return it unchanged."""
    route = getattr(scope.get("route"), "path", "") or "(none)"  # the route's template, never the address itself
    method = scope["method"] if scope["method"] in METHODS else "(other)"
    _counter(route, method, head["status"]).inc()
    return head


@cache
def _counter(route: str, method: str, code: int) -> Counter:
    """Return the counter for these labels; cached, since there are only as many as routes, methods and status codes."""
    return requests.labels(route, method, code)
