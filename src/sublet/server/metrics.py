"""Requests counted by route and answer."""

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
    """Count an answer, and leave it as it is."""
    route = getattr(scope.get("route"), "path", "") or "(none)"  # the template, never the address itself
    method = scope["method"] if scope["method"] in METHODS else "(other)"
    _counter(route, method, head["status"]).inc()
    return head


@cache
def _counter(route: str, method: str, code: int) -> Counter:
    """The counter of these labels, found once: there are as many as routes, methods and codes."""
    return requests.labels(route, method, code)
