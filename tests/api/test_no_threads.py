"""Nothing of an address runs in a thread of its own: that costs more than all that is read from a request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import iscoroutinefunction
from typing import Any

from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from sublet.server.app import NOUNS


def calls(dependant: Dependant) -> Iterator[Callable[..., Any] | None]:
    yield dependant.call
    for one in dependant.dependencies:
        yield from calls(one)


def test_no_address_and_nothing_that_one_depends_on_is_run_by_a_thread() -> None:
    routes = [route for noun in NOUNS for route in noun.router.routes if isinstance(route, APIRoute)]
    assert len(routes) > 100
    threads = {
        f"{route.path}: {getattr(call, '__name__', call)}"
        for route in routes
        for call in calls(route.dependant)
        if not iscoroutinefunction(call)
    }
    assert threads == set()
